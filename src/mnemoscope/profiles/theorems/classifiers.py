"""What is known of classifiers made of tensor decompositions."""

from __future__ import annotations

from mnemoscope.core.numbers import number
from mnemoscope.nn.networks.cp import CP
from mnemoscope.nn.networks.tt import TT
from mnemoscope.profiles.theorems.subject import Subject
from mnemoscope.profiles.theorems.table import Finding, theorem
from mnemoscope.theory.formulas.tensor_train import generic_odd_even_rank, odd_even_bound


def _sizes(s: Subject) -> tuple[int, int, int]:
    return int(s.option("features")), int(s.option("rank")), int(s.option("length"))


def _even(s: Subject) -> bool:
    return s.is_a(TT) and _sizes(s)[2] % 2 == 0


@theorem(
    "classifier-odd-even",
    topic="separation",
    applies=_even,
    reference="khrulkov2018",
    claims=("tt-theorem-1", "tt-lemma-2"),
)
def odd_even(s: Subject) -> Finding:
    """q^(d/2)."""
    n, r, d = _sizes(s)
    value = odd_even_bound(n, r, d)
    text = (
        f"A shallow network (a CP decomposition) needs at least min(n, r-1)^(d/2) = {number(value)} terms to compute "
        f"what almost all of its weights compute: its odd-even rank."
    )
    return Finding(text, value, "bound")


@theorem(
    "classifier-odd-even-generic",
    topic="separation",
    applies=_even,
    reference="khrulkov2018",
    claims=("tt-generic-rank",),
)
def generic(s: Subject) -> Finding:
    """min(n, r) min(n, r^2)^(d/2-1)."""
    n, r, d = _sizes(s)
    value = generic_odd_even_rank(n, r, d)
    text = (
        f"In every case that was tried its odd-even rank was min(n, r) min(n, r^2)^(d/2-1) = {number(value)}, with "
        f"equal cores as with different ones."
    )
    return Finding(text, value, "conjecture")


@theorem(
    "classifier-construction",
    topic="separation",
    applies=lambda s: _even(s) and _sizes(s)[1] >= 2,
    reference="khrulkov2018",
    claims=("tt-construction", "tt-construction-ranks", "tt-cp-interval"),
)
def construction(s: Subject) -> Finding:
    """min(n, r)^(d/2)."""
    n, r, d = _sizes(s)
    value = min(n, r) ** (d // 2)
    text = f"Equal cores of zeros and ones of this size are known with odd-even rank min(n, r)^(d/2) = {number(value)}."
    return Finding(text, value, "exact")


@theorem(
    "classifier-cp", topic="separation", applies=lambda s: s.is_a(CP), reference="cohen2016", claims=("tt-lemma-2",)
)
def shallow(s: Subject) -> Finding:
    """No matricisation has a rank above the number of terms."""
    rank = _sizes(s)[1]
    text = f"However its inputs are split in two, its separation rank is at most its {number(rank)} terms."
    return Finding(text, rank, "bound")


@theorem("classifier-degree", topic="degree", applies=lambda s: s.is_a(TT, CP), reference="cohen2016")
def multilinear(s: Subject) -> Finding:
    """Degree one in every vector of features."""
    _, _, d = _sizes(s)
    text = (
        f"Its scores are linear in the features of each of its {d} inputs, and of degree {d} in all of them together."
    )
    return Finding(text, d, "exact")
