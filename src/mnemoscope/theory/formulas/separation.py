"""Start-End separation rank of recurrent arithmetic circuits: proved, conjectured and sharper bounds.

M input channels, R hidden channels, T steps, L layers; mc(n, k) counts the multisets of size k from n kinds. Generic
weights are meant throughout: all but a set of measure zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import comb, prod
from typing import Any

import numpy as np
from jaxtyping import UInt64

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.core.ring import Prime

__all__ = [
    "attaining_weights",
    "conjecture_bound",
    "conjecture_weights",
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


Weights = dict[str, UInt64[np.ndarray, "rows columns"]]


def attaining_weights(
    field: Prime, M: int, R: int, T: int, *, templates: Any = None, classes: int = 1, base: int = 3
) -> Weights:
    """Return weights of two layers whose separation rank is exactly Theorem 1's mc(min(M, R), T/2).

    Z (R x M) has z^(Omega^i) at (i, i), ones elsewhere in its rows i <= M, zeros below, with Omega > (T/2)^2. The
    first layer reads W_I1 = Z (F^T)^-1, where row i of F is template i; the second one reads the sum of the first,
    W_I2 = e_1 1^T; W_H = I in both, and every class reads component 1.

    Parameters
    ----------
    field
        The prime field to build them in.
    M, R, T
        Input channels, hidden channels, steps (even).
    templates
        M linearly independent rows of length M; by default the one-hot vectors.
    classes
        Rows of ``weight_out``.
    base
        The number z.

    Returns
    -------
    dict
        By the names of `mnemoscope.nn.RAC`'s parameters: ``weight_ih_l0``, ``weight_hh_l0``, .., ``weight_out``.

    Examples
    --------
    >>> from mnemoscope.core.ring import PRIMES
    >>> weights = attaining_weights(Prime(PRIMES[0]), M=2, R=3, T=4)
    >>> weights["weight_ih_l1"].tolist()
    [[1, 1, 1], [0, 0, 0], [0, 0, 0]]
    """
    _check(M, R, T, 2)
    spread = (T // 2) ** 2 + 1
    live = min(M, R)
    z = field.zeros((R, M))
    z[:live] = 1
    z[np.arange(live), np.arange(live)] = [pow(base, spread**i, field.p) for i in range(1, live + 1)]
    if templates is not None:
        rows = field.array(templates)
        if rows.shape != (M, M):
            raise expected("templates", f"of shape ({M}, {M})", rows.shape)
        z = field.matmul(z, field.inverse(np.ascontiguousarray(rows.T)))
    return {
        "weight_ih_l0": z,
        "weight_hh_l0": field.array(np.eye(R)),
        "weight_ih_l1": _first_row_of_ones(field, R),
        "weight_hh_l1": field.array(np.eye(R)),
        "weight_out": _reads_first(field, classes, R),
    }


def conjecture_weights(field: Prime, M: int, R: int, T: int, L: int, *, seed: int = 0, classes: int = 1) -> Weights:
    """Return weights of L >= 2 layers that met the bound of Conjecture 1 wherever it was tried.

    The appendix that motivates the conjecture takes W_H1 = I, with which the rank is at most mc(min(M, R), T/2) at
    any depth. Here the first layer is generic, the second reads its sum (a matrix of rank one), higher layers read
    by ones, and W_H = I above the first layer.

    Parameters
    ----------
    field
        The prime field to build them in.
    M, R, T, L
        Input channels, hidden channels, steps (even), layers (two or more).
    seed
        Draws the first layer.
    classes
        Rows of ``weight_out``.

    Examples
    --------
    >>> from mnemoscope.core.ring import PRIMES
    >>> sorted(conjecture_weights(Prime(PRIMES[0]), M=2, R=2, T=4, L=2))
    ['weight_hh_l0', 'weight_hh_l1', 'weight_ih_l0', 'weight_ih_l1', 'weight_out']
    """
    _check(M, R, T, L)
    if L < 2:
        raise expected("L", "at least 2", L)
    draw = np.random.default_rng(seed)
    weights = {
        "weight_ih_l0": draw.integers(1, field.p, size=(R, M), dtype=np.uint64),
        "weight_hh_l0": draw.integers(1, field.p, size=(R, R), dtype=np.uint64),
        "weight_ih_l1": _first_row_of_ones(field, R),
    }
    for layer in range(1, L):
        weights[f"weight_hh_l{layer}"] = field.array(np.eye(R))
        weights.setdefault(f"weight_ih_l{layer}", field.ones((R, R)))
    return {**weights, "weight_out": _reads_first(field, classes, R)}


def _first_row_of_ones(field: Prime, size: int) -> np.ndarray:
    found = field.zeros((size, size))
    found[0] = 1
    return found


def _reads_first(field: Prime, classes: int, size: int) -> np.ndarray:
    found = field.zeros((classes, size))
    found[:, 0] = 1
    return found
