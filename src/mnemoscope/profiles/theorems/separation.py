"""What is known of the Start-End separation rank: of circuits of products, and of whatever passes through few units."""

from __future__ import annotations

from mnemoscope.core.numbers import number
from mnemoscope.nn.networks.birnn import Bilinear
from mnemoscope.nn.networks.cprnn import CPRNN
from mnemoscope.nn.networks.mirnn import MIRNN
from mnemoscope.nn.networks.rac import RAC
from mnemoscope.nn.networks.second_order import SecondOrderRNN
from mnemoscope.profiles.theorems.subject import Subject
from mnemoscope.profiles.theorems.table import Finding, theorem
from mnemoscope.theory.formulas.rac_graph import network_leaves, start_end_units
from mnemoscope.theory.formulas.separation import (
    conjecture_bound,
    depth_two_rank,
    mc,
    separation_theorem,
    separation_upper,
    shallow_width,
)

HORIZONS = (4, 6, 8)
"""Steps at which ranks are given, as they are measured."""

_LONG = 20


def _rac(s: Subject) -> bool:
    return s.is_a(RAC) and s.one_way


def _at_horizons(rank: dict[int, int]) -> str:
    return ", ".join(f"{number(value)} at T = {T}" for T, value in rank.items())


@theorem(
    "separation-shallow",
    topic="separation",
    applies=lambda s: _rac(s) and s.layers == 1,
    reference="ziv2020",
    claims=("ziv-theorem-1-shallow", "ziv-min-cut"),
)
def shallow(s: Subject) -> Finding:
    """min(R, M^(T/2))."""
    ranks = {T: separation_theorem(s.d, s.n, T, 1) for T in HORIZONS}
    text = (
        f"Its Start-End separation rank on {s.d} templates is min(R, M^(T/2)) for almost all weights: "
        f"{_at_horizons(ranks)}. One layer of R = {s.n} units never exceeds {s.n}, at any length."
    )
    return Finding(text, ranks[HORIZONS[-1]], "exact")


@theorem(
    "separation-two-layers",
    topic="separation",
    applies=lambda s: _rac(s) and s.layers == 2,
    reference="ziv2020",
    claims=("ziv-theorem-1-deep", "ziv-attaining-weights", "ziv-templates", "ziv-float-rank"),
)
def two_layers(s: Subject) -> Finding:
    """mc(min(M, R), T/2)."""
    ranks = {T: separation_theorem(s.d, s.n, T, 2) for T in HORIZONS}
    text = f"Its Start-End separation rank is at least {_at_horizons(ranks)}, for almost all weights (Theorem 1)."
    return Finding(text, ranks[HORIZONS[-1]], "bound")


@theorem(
    "separation-two-layers-sharp",
    topic="separation",
    applies=lambda s: _rac(s) and s.layers == 2,
    reference="ziv2020",
    claims=("ziv-depth-two-rank",),
)
def two_layers_sharp(s: Subject) -> Finding:
    """min(R mc(R, T/2), min(M, R) M^(T/2-1))."""
    ranks = {T: depth_two_rank(s.d, s.n, T) for T in HORIZONS}
    text = f"On one-hot templates the rank of two layers was {_at_horizons(ranks)} in every case that was tried."
    return Finding(text, ranks[HORIZONS[-1]], "conjecture")


@theorem(
    "separation-conjecture",
    topic="separation",
    applies=lambda s: _rac(s) and s.layers > 2,
    reference="ziv2020",
    claims=("ziv-conjecture-1", "ziv-conjecture-motivation", "ziv-conjecture-coincides"),
)
def conjecture(s: Subject) -> Finding:
    """Conjecture 1."""
    ranks = {T: conjecture_bound(s.d, s.n, T, s.layers) for T in HORIZONS}
    text = f"Its Start-End separation rank is at least {_at_horizons(ranks)}, if Conjecture 1 is right."
    return Finding(text, ranks[HORIZONS[-1]], "conjecture")


@theorem(
    "separation-upper",
    topic="separation",
    applies=lambda s: _rac(s) and s.layers > 1,
    reference="ziv2020",
    claims=("ziv-separation-upper",),
)
def upper(s: Subject) -> Finding:
    """Our own upper bound, on as many templates as inputs."""
    ranks = {T: separation_upper(s.d, s.n, T, s.layers, templates=s.d) for T in HORIZONS}
    text = f"Its Start-End separation rank on {s.d} templates is at most {_at_horizons(ranks)}, for all weights."
    return Finding(text, ranks[HORIZONS[-1]], "bound")


@theorem(
    "separation-shallow-width",
    topic="separation",
    applies=lambda s: _rac(s) and s.layers > 1,
    reference="ziv2020",
    claims=("ziv-theorem-1-deep",),
)
def width(s: Subject) -> Finding:
    """What a shallow RAC would need."""
    units = shallow_width(s.d, s.n, _LONG)
    text = (
        f"A single layer that computes the same over T = {_LONG} steps needs at least {number(units)} units, for "
        f"almost all weights; this network has {s.layers} layers of {s.n}."
    )
    return Finding(text, units, "bound")


@theorem(
    "separation-tensor-network",
    topic="separation",
    applies=lambda s: _rac(s) and s.layers > 1,
    reference="levine2017",
    claims=("ziv-tensor-network", "ziv-claim-3", "ziv-claim-4", "ziv-claim-4-sum", "ziv-network-growth"),
)
def network(s: Subject) -> Finding:
    """How large the tensor network is, and how often start and end meet in it."""
    T = HORIZONS[-1]
    leaves, units = network_leaves(T, s.layers), start_end_units(T, s.layers)
    text = (
        f"As a tensor network over T = {T} steps it has {number(leaves)} inputs, copies counted, and start and end "
        f"meet in {number(units)} of its units (one layer: in {number(mc(T // 2, 0))})."
    )
    return Finding(text, units, "exact")


@theorem(
    "separation-linear",
    topic="separation",
    applies=lambda s: s.linear,
    reference="ziv2020",
)
def of_linear(s: Subject) -> Finding:
    """A linear output is a function of the start plus a function of the end."""
    text = (
        "Its Start-End separation rank is at most 2, at every length, width and depth: its output is a function of the "
        "start plus a function of the end."
    )
    return Finding(text, 2, "bound")


def _products(s: Subject) -> bool:
    return s.is_a(Bilinear) and s.one_way and s.layers == 1


def _polynomial_second_order(s: Subject) -> bool:
    return s.is_a(SecondOrderRNN, CPRNN, MIRNN) and s.one_way and s.phi == "identity"


@theorem(
    "separation-automaton",
    topic="separation",
    applies=lambda s: _products(s) or (_polynomial_second_order(s) and s.layers == 1),
    reference="rabusseau2019",
)
def through_units(s: Subject) -> Finding:
    """What the end computes is linear (or affine) in the state that the start left."""
    units = s.n if _products(s) else s.n + 1
    ranks = {T: min(units, s.d ** (T // 2)) for T in HORIZONS}
    what = "linear in the state" if _products(s) else "affine in the state"
    text = (
        f"Its Start-End separation rank on {s.d} templates is at most {_at_horizons(ranks)}: the output is {what} at "
        f"half-time, which has {s.n} units, as that of a weighted automaton of so many states."
    )
    return Finding(text, ranks[HORIZONS[-1]], "bound")


@theorem(
    "separation-tensor-train",
    topic="separation",
    applies=lambda s: _rac(s) and s.layers == 1,
    reference="khrulkov2018",
    claims=("tt-shallow-rac",),
)
def tensor_train(s: Subject) -> Finding:
    """A shallow RAC is a tensor train with equal cores."""
    text = f"It is a tensor train with equal cores, of TT-rank at most {s.n}: layer.to_tt(length) builds it."
    return Finding(text, s.n, "exact")
