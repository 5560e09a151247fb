"""Start-End separation rank of recurrent arithmetic circuits: proved, conjectured and sharper bounds.

M input channels, R hidden channels, T steps, L layers; mc(n, k) counts the multisets of size k from n kinds. Generic
weights are meant throughout: all but a set of measure zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import comb, prod

from mnemoscope.core.errors import expected, positive_int

__all__ = [
    "conjecture_bound",
    "depth_two_rank",
    "mc",
    "separation_lower",
    "separation_theorem",
    "separation_upper",
    "shallow_width",
]


def mc(n: int, k: int) -> int:
    """Return the multiset coefficient C(n + k - 1, k): multisets of size k from n kinds.

    Examples
    --------
    >>> mc(4, 3)
    20
    """
    if n < 0 or k < 0:
        raise expected("n and k", "at least 0", (n, k))
    return comb(n + k - 1, k) if n else int(k == 0)


def separation_theorem(M: int, R: int, T: int, L: int) -> int:
    """Return what Theorem 1 of Ziv proves: min(R, M^(T/2)) at L=1, the rank itself; mc(min(M, R), T/2) at L=2.

    Parameters
    ----------
    M, R, T, L
        Input channels, hidden channels, steps (even), layers (1 or 2).

    Examples
    --------
    >>> separation_theorem(M=3, R=3, T=6, L=1), separation_theorem(M=3, R=3, T=6, L=2)
    (3, 10)
    """
    _check(M, R, T, L)
    if L > 2:
        raise expected("L", "1 or 2, of which Theorem 1 speaks", L)
    return min(R, int(M ** (T // 2))) if L == 1 else mc(min(M, R), T // 2)


def conjecture_bound(M: int, R: int, T: int, L: int) -> int:
    """Return the lower bound of Ziv's Conjecture 1: min(mc(min(M, R), mc(T/2, L-1)), M^(T/2)), at every L as printed.

    At L=1 the printed formula is min(M, R), less than the rank min(R, M^(T/2)) when R > M.

    Parameters
    ----------
    M, R, T, L
        Input channels, hidden channels, steps (even), layers.

    Examples
    --------
    >>> [conjecture_bound(M=4, R=4, T=8, L=L) for L in (1, 2, 3)]
    [4, 35, 256]
    """
    _check(M, R, T, L)
    return min(mc(min(M, R), mc(T // 2, L - 1)), int(M ** (T // 2)))


def separation_lower(M: int, R: int, T: int, L: int) -> int:
    """Return the lower bound to show beside a rank: Theorem 1 at L = 1 and 2, Conjecture 1 above."""
    return separation_theorem(M, R, T, L) if L <= 2 else conjecture_bound(M, R, T, L)


def depth_two_rank(M: int, R: int, T: int) -> int:
    """Return the rank of a generic RAC of two layers on one-hot templates: min(R mc(R, T/2), min(M, R) M^(T/2-1)).

    Parameters
    ----------
    M, R, T
        Input channels, hidden channels, steps (even).

    Examples
    --------
    >>> depth_two_rank(M=3, R=2, T=6), separation_theorem(M=3, R=2, T=6, L=2)
    (8, 4)
    """
    _check(M, R, T, 2)
    return min(R * mc(R, T // 2), min(M, R) * int(M ** (T // 2 - 1)))


def shallow_width(M: int, R: int, T: int) -> int:
    """Return the width mc(min(M, R), T/2) without which no shallow RAC equals a generic RAC of two layers (Theorem 1).

    Parameters
    ----------
    M, R, T
        Input channels, hidden channels, steps (even).

    Examples
    --------
    >>> shallow_width(M=10, R=64, T=20)
    92378
    """
    return separation_theorem(M, R, T, 2)


def separation_upper(
    M: int, R: int, T: int, L: int, start: Iterable[int] | None = None, templates: int | None = None
) -> int:
    r"""Return an upper bound of the separation rank of a RAC, for any number of templates and any partition.

    With q = min(M, R) and the first half as the start,

    .. math::
        \min\Big(\prod_{l=1}^{L} mc(R, mc(T/2, L-l)),\; \prod_{j=1}^{T/2} mc(q, mc(j, L-1))\Big).

    The output is a homogeneous polynomial of degree mc(e, L-l) in the state of layer l when e steps are still to
    come, and of degree mc(j, L-1) in the input that is the j-th from the end. Polynomials of that degree in R
    (or q) unknowns have mc(R, degree) coefficients. The first product counts what can pass through the state, the
    second what the inputs of one side can express. For another partition the state is passed at every change of
    side, and the inputs of either side may be counted.

    Parameters
    ----------
    M, R, T, L
        Input channels, hidden channels, steps, layers.
    start
        The steps, from 0, of the start set; by default the first half.
    templates
        How many templates there are: then no input expresses more than that; by default any number.

    Examples
    --------
    >>> separation_upper(M=2, R=2, T=4, L=2)
    6
    >>> separation_upper(M=2, R=2, T=4, L=2, templates=2)
    4
    >>> separation_upper(M=2, R=3, T=4, L=1, start=(0, 2))
    4
    """
    _check(M, R, T, L, half=start is None)
    first = set(range(T // 2)) if start is None else set(start)
    q = min(M, R)
    changes = [t for t in range(1, T) if (t in first) != (t - 1 in first)]
    states = prod(mc(R, mc(T - t, L - layer)) for t in changes for layer in range(1, L + 1))
    expressible = [mc(q, mc(T - t, L - 1)) for t in range(T)]
    if templates is not None:
        expressible = [min(positive_int("templates", templates), one) for one in expressible]
    rows = prod(expressible[t] for t in range(T) if t in first)
    columns = prod(expressible[t] for t in range(T) if t not in first)
    return min(states, rows, columns)


def _check(M: int, R: int, T: int, L: int, half: bool = True) -> None:
    for name, value in zip("MRTL", (M, R, T, L), strict=True):
        positive_int(name, value)
    if half and T % 2:
        raise expected("T", "even, so that it has two halves", T)
