"""What is known of gradients on their way back, and of Lyapunov exponents."""

from __future__ import annotations

import math

import numpy as np

from mnemoscope.core.numbers import number
from mnemoscope.nn.networks.nnrnn import NNRNN
from mnemoscope.nn.networks.soft_orth import SoftOrth
from mnemoscope.profiles.theorems.subject import Subject
from mnemoscope.profiles.theorems.table import Finding, theorem

_STEPS = 100
_ROUNDING = 1e-6
"""What single precision leaves of a rate of zero."""


def _rate(gain: float) -> float:
    """Return ln of a gain per step; of one that single precision cannot tell from 1, zero."""
    found = math.log(gain) if gain > 0 else -math.inf
    return 0.0 if abs(found) < _ROUNDING else found


def _words(rate: float) -> str:
    return number(rate) if math.isfinite(rate) else "minus infinity"


def _slopes_at_most_one(s: Subject) -> bool:
    """Whether the state Jacobian is D V with |D| <= 1; a complex modReLU with positive biases has larger slopes."""
    return s.first_order and s.layers == 1 and (s.straight or not s.complex)


@theorem(
    "gradient-constant",
    topic="gradients",
    applies=lambda s: s.straight and s.orthogonal,
    reference="arjovsky2016",
)
def constant(s: Subject) -> Finding:
    """An orthogonal V keeps every gradient's norm."""
    kept = "stays orthogonal in training" if s.stays_orthogonal else "is orthogonal as these weights are"
    text = (
        f"Its V {kept} and nothing bends the state between steps, so gradients keep their norm exactly, however far "
        f"back they go: rate 0, and every Lyapunov exponent 0."
    )
    return Finding(text, 0.0, "exact")


@theorem(
    "gradient-orthogonal",
    topic="gradients",
    applies=lambda s: _slopes_at_most_one(s) and not s.straight and s.orthogonal,
    reference="arjovsky2016",
    claims=("ziv-orthogonal-relu",),
)
def never_explodes(s: Subject) -> Finding:
    """With slopes of at most 1 an orthogonal V lets no gradient grow."""
    kept = "stays orthogonal in training" if s.stays_orthogonal else "is orthogonal as these weights are"
    text = (
        f"Its V {kept} and {s.phi} has no slope above 1, so gradients never grow on their way back: rate at most 0. "
        f"That they do not vanish is not promised."
    )
    return Finding(text, 0.0, "bound")


@theorem(
    "gradient-norm",
    topic="gradients",
    applies=lambda s: _slopes_at_most_one(s) and not s.orthogonal,
    reference="pascanu2013",
)
def at_most(s: Subject) -> Finding:
    """The product of the Jacobians' norms."""
    top = float(np.linalg.norm(s.V, 2))
    rate = _rate(top)
    then = f"below {number(math.exp(_STEPS * rate))} of it {_STEPS} steps back" if rate < 0 else "growth is possible"
    text = (
        f"One step back changes a gradient by at most the largest singular value of V, {number(top)}: a rate of at "
        f"most {_words(rate)} per step with these weights; {then}."
    )
    return Finding(text, rate, "bound")


@theorem(
    "gradient-deep",
    topic="gradients",
    applies=lambda s: s.first_order and s.layers > 1 and (s.phi == "identity" or not s.complex),
    reference="pascanu2013",
)
def deep(s: Subject) -> Finding:
    r"""Norms of blocks: products of Jacobians are below powers of a triangular matrix with \|V_l\| on its diagonal."""
    rate = _rate(s.recurrent_norm)
    text = (
        f"Over k steps back gradients grow at most as {number(s.recurrent_norm)}^k, the largest singular value of its "
        f"{s.layers} matrices V, times a polynomial of degree {s.layers - 1} in k: a rate of at most {_words(rate)} "
        f"per step over long times, with these weights."
    )
    return Finding(text, rate, "bound")


@theorem(
    "gradient-margin",
    topic="gradients",
    applies=lambda s: s.is_a(SoftOrth) and s.option("mode") == "factorised" and _slopes_at_most_one(s),
    reference="vorontsov2017",
)
def margin(s: Subject) -> Finding:
    """Singular values within a margin of one stay there in training."""
    m = float(s.option("margin"))
    value = math.log1p(m)
    text = (
        f"However it is trained, the singular values of V stay within [{number(1 - m)}, {number(1 + m)}]: gradients "
        f"grow by at most {number(value)} nats per step back."
    )
    return Finding(text, value, "bound")


@theorem(
    "lyapunov-eigenvalues",
    topic="gradients",
    applies=lambda s: s.linear or s.straight,
    reference="benettin1980",
)
def exponents(s: Subject) -> Finding:
    """Where the Jacobian is the same everywhere the exponents are ln of the moduli of its eigenvalues."""
    value = _rate(s.radius)
    text = (
        f"Its state Jacobian is the same everywhere, so its Lyapunov exponents are ln |eigenvalues| exactly, the "
        f"largest ln {number(s.radius)} = {_words(value)}: the rate of gradients "
        f"over long times."
    )
    return Finding(text, value, "exact")


@theorem(
    "gradient-polynomial",
    topic="gradients",
    applies=lambda s: s.is_a(NNRNN) and s.straight and s.option("block") != "published",
    reference="kerg2019",
    claims=("kerg-polynomial-powers", "kerg-polynomial-gradients"),
)
def polynomial(s: Subject) -> Finding:
    """Block triangular with blocks of moduli gamma: a walk has fewer jumps than there are blocks."""
    order = -(-s.n // 2) - 1
    text = (
        f"The powers of its V grow at most as gamma^k times a polynomial of degree {order} in the lag k, gamma = "
        f"{number(s.radius)} being the largest modulus: at gamma = 1 gradients grow polynomially, never exponentially."
    )
    return Finding(text, order, "bound")
