"""Networks that are polynomials of their inputs: of which degree, and what that makes possible and impossible."""

from __future__ import annotations

from mnemoscope.core.numbers import number
from mnemoscope.nn.networks.birnn import BIRNN, Bilinear
from mnemoscope.nn.networks.cprnn import CPBIRNN, CPRNN
from mnemoscope.nn.networks.mirnn import MIRNN
from mnemoscope.nn.networks.rac import RAC
from mnemoscope.nn.networks.second_order import SecondOrderRNN
from mnemoscope.profiles.theorems.subject import Subject
from mnemoscope.profiles.theorems.table import Finding, theorem
from mnemoscope.theory.formulas.degree import birnn_degree, birnn_input_degree, cp_image_dimension

_STEPS = 8


def _products(s: Subject) -> bool:
    return s.is_a(RAC, Bilinear) and s.one_way


def _polynomial(s: Subject) -> bool:
    second = s.is_a(SecondOrderRNN, CPRNN, MIRNN) and s.phi == "identity" and s.one_way
    return _products(s) or second


@theorem(
    "degree",
    topic="degree",
    applies=_polynomial,
    reference="lizaire2026",
    claims=("depth-polynomial-order", "depth-exponential-degree"),
)
def total(s: Subject) -> Finding:
    """C(T+L-1, L) in all."""
    value = birnn_degree(_STEPS, s.layers)
    first = birnn_input_degree(1, _STEPS, s.layers)
    most = "at most " if s.is_a(MIRNN) else ""
    published = f" (the published T^L = {number(_STEPS**s.layers)} is only an upper bound)" if s.layers > 1 else ""
    text = (
        f"After T = {_STEPS} steps its states are polynomials of the inputs of {most}degree C(T+L-1, L) = "
        f"{number(value)}, and {most}{number(first)} in the first input, for almost all weights{published}."
    )
    return Finding(text, value, "bound" if s.is_a(MIRNN) else "exact")


@theorem(
    "degree-two-steps",
    topic="degree",
    applies=lambda s: _polynomial(s) and s.layers > 1,
    reference="lizaire2026",
    claims=("depth-theorem-3-strict",),
)
def two_steps(s: Subject) -> Finding:
    """Degree L in x_1 after two steps."""
    text = (
        f"After two steps it has at most degree L = {s.layers} in the first input, which one layer fewer cannot have: "
        f"depth adds functions that width does not."
    )
    return Finding(text, s.layers, "bound")


@theorem(
    "degree-inclusion",
    topic="degree",
    applies=lambda s: s.is_a(Bilinear) and not s.option("residual") and s.layers > 1,
    reference="lizaire2026",
    claims=("depth-theorem-3-inclusion",),
)
def inclusion(s: Subject) -> Finding:
    """Without residual connections a deeper network is not a larger class."""
    text = (
        f"Without residual connections it does not compute everything that {s.layers - 1} of its {s.layers} layers "
        f"would: its states are homogeneous polynomials. residual=True repairs that."
    )
    return Finding(text, None, "exact")


@theorem(
    "degree-image",
    topic="degree",
    applies=lambda s: s.is_a(CPBIRNN) and s.one_way,
    reference="lizaire2026",
    claims=("depth-theorem-4",),
)
def image(s: Subject) -> Finding:
    """min(d, n, R)."""
    rank = int(s.option("rank"))
    value = cp_image_dimension(s.d, s.n, rank)
    text = (
        f"What its first step can do with an input has min(d, n, R) = min({s.d}, {s.n}, {rank}) = {value} dimensions, "
        f"at every depth, for almost all weights."
    )
    return Finding(text, value, "exact")


@theorem(
    "degree-zero",
    topic="degree",
    applies=lambda s: _products(s) and not s.option("residual", False),
    reference="ziv2020",
    claims=("ziv-initial-state",),
)
def erased(s: Subject) -> Finding:
    """A product with zero is zero for ever."""
    text = "A single input of zeros erases all that it remembers, for ever: every state is a product with every input."
    return Finding(text, 0.0, "exact")


# State tracking --------------------------------------------------------------------------------------------------


def _tracks_parity(s: Subject) -> bool:
    enough = s.n >= s.d and int(s.option("rank", s.d)) >= s.d
    return _polynomial(s) and enough and s.layers == 1


@theorem(
    "tracking-parity",
    topic="tracking",
    applies=_tracks_parity,
    reference="lizaire2026",
    claims=("depth-parity-linear-2rnn",),
)
def parity(s: Subject) -> Finding:
    """The product of signs, channel by channel."""
    text = (
        f"There are weights with which it tracks the parity of all {s.d} input channels exactly, at any length: its "
        f"{s.n} units multiply the signs."
    )
    return Finding(text, s.d, "exact")


@theorem(
    "tracking-automaton",
    topic="tracking",
    applies=lambda s: s.is_a(BIRNN) and s.one_way and s.layers == 1,
    reference="rabusseau2019",
)
def automaton(s: Subject) -> Finding:
    """One-hot letters make it a weighted automaton."""
    text = (
        f"On one-hot letters it is a weighted automaton of {s.n} states over {s.d} letters, and every such automaton "
        f"is one of its settings (with its initial state learned): it tracks any finite automaton of at most {s.n} "
        f"states."
    )
    return Finding(text, s.n, "exact")


@theorem(
    "tracking-confused",
    topic="tracking",
    applies=lambda s: s.linear or (s.straight and s.option("activation") == "depth" and not s.complex),
    reference="lizaire2026",
    claims=("depth-lemma-4", "depth-theorem-5", "depth-equation-2"),
)
def confused(s: Subject) -> Finding:
    """More inputs than units: a null vector."""
    size = s.state_size or 0
    steps = size // s.d + 1
    text = (
        f"There are two different histories of {steps} steps that lead it to the same state, and so to the same "
        f"outputs ever after: {number(steps * s.d)} numbers came in, the state holds {number(size)} linear functions "
        f"of them. A second-order network tells them apart."
    )
    return Finding(text, steps, "exact")


@theorem(
    "tracking-embedding",
    topic="tracking",
    applies=lambda s: s.first_order and s.linear and s.layers > 1 and not s.complex,
    reference="lizaire2026",
    claims=("depth-theorem-6",),
)
def embedding(s: Subject) -> Finding:
    """A deep linear network is a wide one, and few wide ones are deep."""
    wide = s.n * s.layers
    text = (
        f"One linear layer of n L = {number(wide)} units can do all that it does, with "
        f"{number(wide * (wide + s.d + 1))} parameters; most layers of that width are no network of {s.layers} layers."
    )
    return Finding(text, wide, "exact")
