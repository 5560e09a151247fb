"""What is known of the spectrum, and of what the parametrisation of a matrix can reach."""

from __future__ import annotations

import math

import numpy as np

from mnemoscope.core.numbers import number
from mnemoscope.measures.spectral.kreiss import kreiss_constant
from mnemoscope.nn.maps.exponential import Exponential
from mnemoscope.nn.maps.fourier import Fourier
from mnemoscope.nn.maps.givens import Givens
from mnemoscope.nn.maps.householder import Householder
from mnemoscope.nn.networks.nnrnn import NNRNN
from mnemoscope.profiles.theorems.subject import Subject
from mnemoscope.profiles.theorems.table import Finding, theorem

_MOST = 128
"""Units up to which the Kreiss constant is computed here."""


def _one_layer(s: Subject) -> bool:
    return s.first_order and s.layers == 1


@theorem(
    "spectrum-orthogonal",
    topic="spectrum",
    applies=lambda s: _one_layer(s) and s.orthogonal,
    reference="trefethen2005",
    claims=("ziv-cayley-signs",),
)
def on_the_circle(s: Subject) -> Finding:
    """Orthogonal and unitary matrices."""
    kept = "by construction" if s.stays_orthogonal else "with these weights; training may leave it"
    group = "unitary" if s.complex else "orthogonal"
    text = (
        f"V is {group} {kept}: all {len(s.V)} eigenvalues lie on the unit circle, Henrici's departure from normality "
        f"is 0, the Kreiss constant and the largest transient amplification are 1."
    )
    return Finding(text, 1.0, "exact")


@theorem(
    "spectrum-moduli",
    topic="spectrum",
    applies=lambda s: s.is_a(NNRNN) and _one_layer(s) and s.option("block") != "published",
    reference="kerg2019",
    claims=("kerg-nnrnn-moduli",),
)
def moduli(s: Subject) -> Finding:
    """The moduli of nnRNN's eigenvalues are its gammas."""
    values = np.abs(np.linalg.eigvals(s.V))
    clamped = ", and stay so in training" if s.option("gamma") == "clamped" else ""
    text = (
        f"The moduli of its eigenvalues are its gammas whatever stands in the triangle below them: from "
        f"{number(float(values.min()))} to {number(float(values.max()))} with these weights{clamped}."
    )
    return Finding(text, float(values.max()), "exact")


@theorem(
    "spectrum-published-blocks",
    topic="spectrum",
    applies=lambda s: s.is_a(NNRNN) and s.option("block") == "published",
    reference="kerg2019",
    claims=("kerg-nnrnn-moduli",),
)
def published(s: Subject) -> Finding:
    """With the printed equation the moduli are not gamma."""
    radius = float(np.abs(np.linalg.eigvals(s.V)).max())
    text = (
        f"With the published blocks the moduli of its eigenvalues are not its gammas once the triangle is learned; "
        f"with these weights the largest is {number(radius)}. block='rotation' repairs that."
    )
    return Finding(text, radius, "exact")


def _kreiss_applies(s: Subject) -> bool:
    return _one_layer(s) and not s.orthogonal and s.n <= _MOST and float(np.abs(np.linalg.eigvals(s.V)).max()) < 1


@theorem(
    "spectrum-kreiss",
    topic="spectrum",
    applies=_kreiss_applies,
    reference="spijker1991",
    claims=("kreiss-matrix-theorem",),
)
def kreiss(s: Subject) -> Finding:
    """K <= sup_k |W^k| <= e N K."""
    K = float(kreiss_constant(s.V, tolerance=1e-3).value)
    top = math.e * len(s.V) * K
    text = (
        f"The powers of V reach a norm between its Kreiss constant K = {number(K)} and e n K = {number(top)} before "
        f"they decay, with these weights."
    )
    return Finding(text, top, "bound")


# What training can reach -----------------------------------------------------------------------------------------


def _dimension(s: Subject) -> tuple[int, int]:
    """Return the dimension of what the map can reach at most, and that of the whole group."""
    n, transition = len(s.V), s.map
    group = n * n if s.complex else n * (n - 1) // 2
    if isinstance(transition, Householder):
        m = transition.reflections
        return m * n - m * (m + 1) // 2, group
    assert transition is not None
    return min(group, sum(math.prod(shape) for shape in transition.shapes)), group


@theorem(
    "reach-part",
    topic="reach",
    applies=lambda s: isinstance(s.map, Fourier | Givens | Householder) and _dimension(s)[0] < _dimension(s)[1],
    reference="wisdom2016",
)
def part(s: Subject) -> Finding:
    """A smooth map cannot cover a space of more dimensions than it has parameters."""
    reached, group = _dimension(s)
    kind = "unitary" if s.complex else "orthogonal"
    text = (
        f"It cannot reach every {kind} matrix: those of size {len(s.V)} have {number(group)} dimensions, its V moves "
        f"in {number(reached)} of them at most, {number(100 * reached / group)}%."
    )
    return Finding(text, reached / group, "bound")


@theorem(
    "reach-whole",
    topic="reach",
    applies=lambda s: s.stays_orthogonal and _dimension(s)[0] == _dimension(s)[1],
    reference="lezcano2019",
    claims=("kerg-scornn-gradient", "kerg-exprnn-gradient"),
)
def whole(s: Subject) -> Finding:
    """As many parameters as the group has dimensions; the real group falls into two parts."""
    _, group = _dimension(s)
    if s.complex:
        side = "all unitary matrices, or all but a set of measure zero"
    elif isinstance(s.map, Exponential):
        side = "every rotation (determinant 1), no reflection"
    else:
        sign = round(float(np.linalg.slogdet(s.V)[0].real))
        side = f"the half of the orthogonal group with determinant {sign:+d}, or all of it but a set of measure zero"
    text = f"Its V moves in all {number(group)} dimensions of its group: training can reach {side}."
    return Finding(text, float(group), "exact")


@theorem(
    "reach-schur",
    topic="reach",
    applies=lambda s: s.is_a(NNRNN),
    reference="kerg2019",
    claims=("kerg-nnrnn-reach",),
)
def schur(s: Subject) -> Finding:
    """Which blocks reach which matrices."""
    if s.option("block") == "balanced":
        return Finding("Its blocks reach every real matrix whose eigenvalues come in conjugate pairs.", None, "exact")
    text = (
        "Its plain rotations do not reach every real matrix with conjugate pairs of eigenvalues, as [[0, -4], [1/4, "
        "0]]; block='balanced' does."
    )
    return Finding(text, None, "exact")
