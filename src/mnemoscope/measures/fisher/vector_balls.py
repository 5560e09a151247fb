"""Linear algebra on FLINT's matrices of balls, as far as Fisher memory needs it."""

from __future__ import annotations

from typing import Any

import flint
import numpy as np
from jaxtyping import Float

from mnemoscope.measures.fisher.vector_factor import DOUBLINGS

__all__ = ["Balls", "balls", "cholesky", "floats", "norm_squared", "sum_of_powers"]

Balls = Any
"""FLINT's `arb_mat`; it has no annotations."""

_SMALL = 16  # at this size a Cholesky decomposition is written out


def balls(array: Float[np.ndarray, "rows columns"]) -> Balls:
    """Return a matrix of floats as they are: balls of radius zero."""
    return flint.arb_mat(array.tolist())


def floats(matrix: Balls) -> Float[np.ndarray, "rows columns"]:
    """Return the midpoints, rounded to float64."""
    return np.array([float(entry.mid()) for entry in matrix.entries()]).reshape(matrix.nrows(), matrix.ncols())


def norm_squared(matrix: Balls) -> Any:
    """Enclose the squared Frobenius norm."""
    return sum((entry * entry for entry in matrix.entries()), flint.arb(0))


def sum_of_powers(W: Balls, terms: int | None, negligible: float) -> Balls | None:
    """Enclose the sum of W^k W^kT over k < terms, an infinite one up to `negligible`; None where it diverges."""
    identity = balls(np.eye(W.nrows()))
    total, power = identity, W
    digits = [False] * DOUBLINGS if terms is None else [digit == "1" for digit in bin(terms)[3:]]
    for odd in digits:
        total = total + power * total * power.transpose()
        power = power * power
        if odd:
            total = identity + W * total * W.transpose()
            power = W * power
        remainder = norm_squared(power)
        if not remainder.is_finite():
            return None
        # The sum is at least the identity, so that an absolute remainder is also a relative one.
        if remainder * norm_squared(total).sqrt() < negligible:
            return total
    return None if terms is None else total


def cholesky(matrix: Balls) -> Balls | None:
    """Return L with L L^T near a symmetric matrix of exact entries, or None where rounding has made it indefinite.

    By halves, so that the work is in FLINT's products. Midpoints only, since balls would grow exponentially: who uses
    the factor checks the residual.
    """
    size = matrix.nrows()
    if size <= _SMALL:
        return _cholesky_by_hand(matrix)
    half = size // 2
    rows = matrix.tolist()
    top = cholesky(flint.arb_mat([row[:half] for row in rows[:half]]))
    if top is None:
        return None
    left = top.solve(flint.arb_mat([row[half:] for row in rows[:half]]), algorithm="approx").transpose().mid()
    rest = flint.arb_mat([row[half:] for row in rows[half:]]) - left * left.transpose()
    bottom = cholesky(rest.mid())
    if bottom is None:
        return None
    zeros = [flint.arb(0)] * (size - half)
    below = [a + b for a, b in zip(left.tolist(), bottom.tolist(), strict=True)]
    return flint.arb_mat([row + zeros for row in top.tolist()] + below)


def _cholesky_by_hand(matrix: Balls) -> Balls | None:
    size = matrix.nrows()
    lower = [[flint.arb(0)] * size for _ in range(size)]
    for j in range(size):
        for i in range(j, size):
            rest = (matrix[i, j] - sum((lower[i][k] * lower[j][k] for k in range(j)), flint.arb(0))).mid()
            if i == j and not rest > 0:
                return None
            lower[i][j] = (rest.sqrt() if i == j else rest / lower[j][j]).mid()
    return flint.arb_mat(lower)
