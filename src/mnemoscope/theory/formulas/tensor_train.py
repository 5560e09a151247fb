"""Tensor trains against shallow networks: how large the odd-even rank of n x .. x n tensors with TT-rank r is.

The positions 1, 3, 5, .. of a tensor of order d are the rows, 2, 4, 6, .. the columns of its odd-even matricisation.
Its rank is a lower bound of the CP-rank, which is the width of a shallow network that computes the same.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from mnemoscope.core.errors import expected, positive_int

__all__ = ["attaining_cores", "generic_odd_even_rank", "odd_even_bound"]


def odd_even_bound(features: int, rank: int, length: int) -> int:
    """Return the published lower bound q^(d/2), q = min(n, r-1), of the generic odd-even rank, and so of the CP-rank.

    Parameters
    ----------
    features, rank, length
        n, r and d (even).

    Examples
    --------
    >>> odd_even_bound(features=4, rank=3, length=8)
    16
    """
    n, r, half = _checked(features, rank, length)
    return int(min(n, r - 1) ** half)


def generic_odd_even_rank(features: int, rank: int, length: int) -> int:
    """Return the odd-even rank min(n, r) min(n, r^2)^(d/2-1) of almost every tensor train, cores equal or not.

    A core's mode has n entries and is joined to the others by r^2 numbers, or r at the ends, so no rank is larger.

    Parameters
    ----------
    features, rank, length
        n, r and d (even).

    Examples
    --------
    >>> generic_odd_even_rank(features=4, rank=3, length=8)
    192
    """
    n, r, half = _checked(features, rank, length)
    return int(min(n, r) * min(n, r * r) ** (half - 1))


def attaining_cores(features: int, rank: int, length: int) -> list[Int64[np.ndarray, " ..."]]:
    """Return equal cores of zeros and ones whose odd-even rank is min(n, r)^(d/2), as Alkin (2024) constructs them.

    With q = min(n, r-1) the state is the last odd letter after odd positions and q+1 after even ones:
    ``G_1 = [i = a]``, ``G_d = [a = i]`` and between them ``G[a, i, b] = [a = i] [b = q+1]`` for a <= q, ``[i = b]`` for
    a = q+1, zero above.

    Parameters
    ----------
    features, rank, length
        n, r (at least 2) and d (even).

    Examples
    --------
    >>> [core.shape for core in attaining_cores(features=3, rank=2, length=4)]
    [(3, 2), (2, 3, 2), (2, 3, 2), (2, 3)]
    """
    n, r, half = _checked(features, rank, length)
    if r < 2:
        raise expected("rank", "at least 2 for this construction", rank)
    q = min(n, r - 1)
    ends = np.eye(n, r, dtype=np.int64)
    inner = np.zeros((r, n, r), dtype=np.int64)
    inner[np.arange(q), np.arange(q), q] = 1
    inner[q] = ends
    return [ends, *[inner.copy() for _ in range(2 * half - 2)], ends.T.copy()]


def _checked(features: int, rank: int, length: int) -> tuple[int, int, int]:
    n, r, d = positive_int("features", features), positive_int("rank", rank), positive_int("length", length)
    if d % 2:
        raise expected("length", "even, as many odd as even positions", length)
    return n, r, d // 2
