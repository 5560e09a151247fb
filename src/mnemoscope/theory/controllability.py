"""What an input can reach: exact rank and polynomial of a pair (W, v), its floats taken as the rationals they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from jaxtyping import Bool, Float

from mnemoscope.core.arrays import square, vector

__all__ = [
    "controllability_rank",
    "independent_units",
    "reachable_polynomial",
    "reachable_units",
    "working_precision",
]

PRIME = (1 << 61) - 1
"""Ranks are computed modulo this Mersenne prime: too low only if it divides a minor, a chance of about N / 2^61."""


def controllability_rank(W: Any, v: Any) -> int:
    """Return the rank of [v, W v, W^2 v, ..], exactly.

    Every float is the rational number m 2^e that it stands for; the rank is that of these rationals, modulo a large
    prime, so that neither the size of the powers nor their near dependence matters.

    Parameters
    ----------
    W
        The recurrent matrix.
    v
        The input vector.

    Examples
    --------
    >>> W = np.diag([0.5, 0.5, 0.3])
    >>> controllability_rank(W, [1.0, 1.0, 1.0])
    2
    """
    W = square("W", W)
    return len(independent_units(W, vector("v", v, len(W))))


def reachable_units(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Return which units a path of non-zero weights connects with the input."""
    found: Bool[np.ndarray, " n"] = v != 0
    while True:
        further = found | (W[:, found] != 0).any(axis=1)
        if np.array_equal(further, found):
            return found
        found = further


def reachable_polynomial(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]) -> list[Fraction]:
    """Return a_0 = 1, a_1, .., a_r of det(I - z W), W restricted to what v reaches: exact.

    The sequences c^T W^k v, for all readouts c, are the Taylor coefficients of p(z) / a(z) with deg p < r.
    """
    units = reachable_units(W, v)
    W, v = W[np.ix_(units, units)], v[units]
    pivots = independent_units(W, v)
    rank = len(pivots)
    integers, exponent = _integers(W)
    if rank == len(W):
        coefficients = [int(c) for c in integers.charpoly().coeffs()]
    else:
        coefficients = _minimal(integers, _integers(v[:, None])[0], pivots)
    return [Fraction(c, 1 << (exponent * j)) for j, c in enumerate(reversed(coefficients))]


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Compute with balls of this precision inside, and leave flint's own setting as it was."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def _minimal(W: Any, v: Any, pivots: list[int]) -> list[int]:
    """Return the monic q of least degree with q(W) v = 0, lowest coefficient first: integers, as W and v are."""
    columns = [v]
    for _ in pivots:
        columns.append(W * columns[-1])
    rows = [[column[i, 0] for column in columns] for i in pivots]
    left = flint.fmpz_mat([row[:-1] for row in rows])
    right = flint.fmpz_mat([[-row[-1]] for row in rows])
    found = flint.fmpq_mat(left).solve(flint.fmpq_mat(right))
    return [int(found[i, 0].p) // int(found[i, 0].q) for i in range(len(pivots))] + [1]


def independent_units(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]) -> list[int]:
    """Return units whose rows of [v, W v, ..] are a basis of its row space."""
    size = len(W)
    matrix, column = _modular(W), _modular(v[:, None])
    entries: list[Any] = []
    for _ in range(size):
        entries.extend(column.entries())
        column = matrix * column
    # The rows of this transposed matrix are the columns W^k v: its pivots are units.
    reduced, rank = flint.nmod_mat(size, size, entries, PRIME).rref()
    found, unit = [], 0
    for k in range(rank):
        while int(reduced[k, unit]) == 0:
            unit += 1
        found.append(unit)
    return found


def _modular(array: Float[np.ndarray, "rows columns"]) -> Any:
    """Return the rationals m 2^e that floats are, modulo 2^61 - 1: there a power of two is a rotation of 61 bits."""
    fractions, exponents = np.frexp(array)
    mantissas = np.abs(fractions * 2.0**53).astype(np.uint64)
    turn = ((exponents.astype(np.int64) - 53) % 61).astype(np.uint64)
    rotated = ((mantissas << turn) & np.uint64(PRIME)) | (mantissas >> (np.uint64(61) - turn))
    residues = np.where((array < 0) & (rotated != 0), np.uint64(PRIME) - rotated, rotated)
    return flint.nmod_mat(array.shape[0], array.shape[1], residues.ravel().tolist(), PRIME)


def _integers(array: Float[np.ndarray, "rows columns"]) -> tuple[Any, int]:
    """Return the integers 2^e array, and the least e >= 0 that makes them integers."""
    ratios = [[x.as_integer_ratio() for x in row] for row in array.tolist()]
    exponent = max(bottom.bit_length() - 1 for row in ratios for _, bottom in row)
    return flint.fmpz_mat([[top * ((1 << exponent) // bottom) for top, bottom in row] for row in ratios]), exponent
