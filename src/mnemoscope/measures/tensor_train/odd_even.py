"""Odd-even rank of a tensor train: the width that a shallow network needs to compute the same."""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Int64

from mnemoscope.core.errors import UserError, expected
from mnemoscope.core.result import Result, result
from mnemoscope.core.ring import PRIMES, Prime
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.tensor_train.cores import (
    Cores,
    checked_cores,
    entries,
    exact_tt_ranks,
    matricisation_rank,
    rank_ceiling,
)
from mnemoscope.theory.formulas.tensor_train import generic_odd_even_rank, odd_even_bound

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["OddEvenRank", "odd_even_rank"]

_MOST = 12  # positions whose 2^(d-1) partitions are searched


@result
class OddEvenRank(Result):
    """The exact rank of a matricisation of a tensor train.

    Attributes
    ----------
    rank
        Of the matricisation.
    bound
        The published q^(d/2), q = min(n, r-1), for generic cores; None for other partitions, odd d, or unequal sizes.
    generic
        min(n, r) min(n, r^2)^(d/2-1), the rank of almost all cores of these sizes; None where `bound` is.
    upper
        What no cores of these shapes exceed.
    shallow_width
        The width without which no shallow (CP) network has this tensor: the rank.
    shape
        Of the matricisation, which is not built as a whole.
    rows
        The positions, from 0, of its rows.
    tt_ranks
        Exact ranks of all unfoldings, positions 1..k by k+1..d.
    bonds
        The sizes r_k that the cores were given with.
    primes
        Modulo which the rank was computed; one suffices where it reaches `upper`.
    """

    measure: ClassVar[str] = "odd-even-rank"
    references: ClassVar[tuple[str, ...]] = ("alkin2024", "khrulkov2018")

    rank: int
    bound: int | None
    generic: int | None
    upper: int
    shallow_width: int
    shape: tuple[int, int]
    rows: tuple[int, ...]
    tt_ranks: Int64[np.ndarray, " bonds"]
    bonds: Int64[np.ndarray, " bonds"]
    primes: tuple[int, ...]

    def __str__(self) -> str:
        kind = "odd-even rank" if self.rows == _odd(len(self.bonds) + 1) else f"rank of rows {self.rows}"
        theory = "" if self.bound is None else f", theorem: at least {self.bound}, generic {self.generic}"
        return f"{kind} {self.rank} (exact{theory}, at most {self.upper}): no narrower shallow network has this tensor"

    def plot(self) -> chart.Chart:
        """Draw the TT-ranks beside the sizes of the cores."""
        from mnemoscope.report import chart

        at = np.arange(1, len(self.bonds) + 1)
        return chart.lines(
            {"TT-rank (exact)": (at, self.tt_ranks), "size of the core": (at, self.bonds)},
            x="bond, after position k",
            y="rank",
            title=f"Rank of the matricisation: {self.rank}",
            points=True,
        )


_COST = Cost(
    time={"D^3": 2e-8},
    memory="D^2",
    sizes={"D": lambda given: math.sqrt(entries(given["cores"]))},
    letters={"D": "rows of the matrix, n^(d/2) for d cores of n values unless ranks are smaller"},
)


@measure("odd-even-rank", kinds=("classifier",), matrices={"cores": "core"}, cost=_COST)
def odd_even_rank(
    cores: Any, label: int = 0, partition: tuple[int, ...] | None = None, *, best: bool = False
) -> OddEvenRank:
    r"""Return the exact rank of the odd-even matricisation of a tensor train.

    The tensor

    .. math::
        X[i_1, .., i_d] = G_1[i_1, :] \, G_2[:, i_2, :] \cdots G_d[:, i_d]

    is read as a matrix with the rows :math:`(i_1, i_3, ..)` and the columns :math:`(i_2, i_4, ..)`. Its rank is at most
    the CP-rank, the width of a shallow network with the same tensor. It is computed for the exact rational values of
    the cores, modulo primes near 2^61 that agree; the tensor of n^d entries is never built (see the notes).

    Parameters
    ----------
    cores
        First (n, r), inner (r, n, r), last (r, n); sizes may differ as long as they chain. Or a TT network.
    label
        The class of a network.
    partition
        The positions of the rows, from 0; by default 0, 2, 4, ..: the odd ones, counted from 1.
    best
        Whether to search all partitions for the largest rank, up to 12 positions.

    Notes
    -----
    Bonds are first reduced to the TT-ranks, modes to their independent entries, min(n, r^2) at most; bonds of rank 1
    split the matrix into Kronecker factors. What is left is eliminated, with at most min(n,r) min(n,r^2)^(d/2-1) rows.

    Examples
    --------
    >>> from mnemoscope.theory.formulas.tensor_train import attaining_cores
    >>> found = odd_even_rank(attaining_cores(features=3, rank=3, length=6))
    >>> found.rank, found.bound, found.generic
    (27, 8, 27)
    """
    found = checked_cores(cores, label)
    rows = _checked_rows(partition, len(found))
    if best:
        if partition is not None:
            raise UserError("partition must be left out where the best one is searched")
        rows = best_partition(found)
    rank, primes = exact_matricisation_rank(found, rows)
    sizes = _uniform(found) if rows == _odd(len(found)) else None
    side = [prod(core.shape[1] for k, core in enumerate(found) if (k in rows) is which) for which in (True, False)]
    return OddEvenRank(
        status="exact",
        digits=16,
        assumptions=("cores are the exact rational values of their floats", "no minor vanishes modulo the primes"),
        cost="O(d n r^3) for the bonds, O(D^3) time and O(D^2) memory for D = min(n,r) min(n,r^2)^(d/2-1) rows",
        rank=rank,
        bound=None if sizes is None else odd_even_bound(*sizes),
        generic=None if sizes is None else generic_odd_even_rank(*sizes),
        upper=rank_ceiling(found, rows),
        shallow_width=rank,
        shape=(side[0], side[1]),
        rows=rows,
        tt_ranks=np.array(exact_tt_ranks(found), dtype=np.int64),
        bonds=np.array([core.shape[2] for core in found[:-1]], dtype=np.int64),
        primes=primes,
    )


def exact_matricisation_rank(cores: Cores, rows: Collection[int]) -> tuple[int, tuple[int, ...]]:
    """Return the rank of a matricisation and the primes modulo which it was found.

    A rank modulo a prime is never too large: it is settled when it reaches the ceiling of the shapes, or when two
    primes give the largest rank seen.
    """
    ceiling = rank_ceiling(cores, rows)
    found: list[int] = []
    for p in PRIMES:
        found.append(matricisation_rank(Prime(p), cores, rows))
        if found[-1] == ceiling or found.count(max(found)) == 2:
            return max(found), PRIMES[: len(found)]
    raise UserError(f"an exact rank was sought and ranks {found} modulo {len(PRIMES)} primes were found: no two agree")


def best_partition(cores: Cores) -> tuple[int, ...]:
    """Return the rows, from 0 and with position 0 among them, of a matricisation of the largest rank.

    Partitions whose ceiling does not exceed the best rank found so far are passed over.
    """
    d = len(cores)
    if d > _MOST:
        raise expected("cores", f"at most {_MOST}, to search all their partitions", d)
    rows = [(0, *rest) for size in range(d - 1) for rest in combinations(range(1, d), size)]
    ceilings = {each: rank_ceiling(cores, each) for each in rows}
    best, chosen = -1, _odd(d)
    # the odd ones first among equals: generic cores reach their ceiling there
    for each in sorted(rows, key=lambda each: (-ceilings[each], each != _odd(d))):
        if ceilings[each] > best:
            rank = matricisation_rank(Prime(PRIMES[0]), cores, each)
            best, chosen = (rank, each) if rank > best else (best, chosen)
    return chosen


def _odd(length: int) -> tuple[int, ...]:
    return tuple(range(0, length, 2))


def _checked_rows(partition: Any, length: int) -> tuple[int, ...]:
    if partition is None:
        return _odd(length)
    what = f"positions from 0 to {length - 1}, each at most once, neither none nor all of them"
    try:
        rows = tuple(sorted(int(k) for k in partition if int(k) == k))
        whole = len(rows) == len(list(partition))
    except (TypeError, ValueError):
        raise expected("partition", what, partition) from None
    distinct = set(rows)
    if not (whole and len(distinct) == len(rows) and distinct <= set(range(length)) and 0 < len(rows) < length):
        raise expected("partition", what, partition)
    return rows


def _uniform(cores: Cores) -> tuple[int, int, int] | None:
    """Return n, r and d where all modes and bonds are equal and d is even."""
    modes, bonds = {core.shape[1] for core in cores}, {core.shape[2] for core in cores[:-1]}
    if len(modes) > 1 or len(bonds) > 1 or len(cores) % 2:
        return None
    return modes.pop(), bonds.pop(), len(cores)
