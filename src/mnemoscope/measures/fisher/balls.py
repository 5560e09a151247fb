"""Linear algebra in ball arithmetic: matrices whose every number carries a proven error.

A ball is a midpoint with a radius (FLINT's `arb`): whatever is computed from balls encloses the exact result, so a
radius that comes out small is a proof, and one that comes out large asks for more bits. Products of matrices are
FLINT's own; around them Python moves entries. The radii of a factorisation (Cholesky) would grow exponentially with the
size. It is therefore computed on midpoints, and whoever uses it proves the residual small instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat
from jaxtyping import Float

from mnemoscope.measures.fisher.conventions import doublings

__all__ = [
    "Balls",
    "CompanionBalls",
    "KroneckerBalls",
    "balls",
    "beside",
    "cholesky",
    "corner",
    "floats",
    "forms",
    "norm_squared",
    "padded",
    "sum_of_powers",
    "top",
]

Balls = Any
"""FLINT's `arb_mat`; the package has no annotations."""

_SMALL = 16  # at this size a Cholesky decomposition is written out


def balls(values: Float[np.ndarray, "rows columns"]) -> Balls:
    """Return floats as the exact numbers that they are: balls of radius zero."""
    return arb_mat(values.tolist())


def floats(matrix: Balls) -> Float[np.ndarray, "rows columns"]:
    """Return the midpoints, rounded to float64."""
    return np.array([float(entry.mid()) for entry in matrix.entries()]).reshape(matrix.nrows(), matrix.ncols())


def norm_squared(matrix: Balls) -> Any:
    """Enclose the squared Frobenius norm."""
    return sum((entry * entry for entry in matrix.entries()), arb(0))


def forms(inner: Balls, columns: Balls) -> list[float]:
    """Return z^T M z for every column z, rounded to floats."""
    images, given = (inner * columns).transpose().table(), columns.transpose().table()
    pairs = zip(images, given, strict=True)
    return [float(sum((a * b for a, b in zip(x, y, strict=True)), arb(0)).mid()) for x, y in pairs]


# Parts of matrices, which the package cannot cut or join ------------------------------------------


def corner(size: int, count: int) -> Balls:
    """Return a matrix with `count` leading ones on its diagonal and zeros elsewhere."""
    return arb_mat(size, size, [int(i == j < count) for i in range(size) for j in range(size)])


def padded(matrix: Balls, size: int) -> Balls:
    """Return the matrix as the leading part of one of zeros."""
    width = size - matrix.ncols()
    rows = [[*row, *([arb(0)] * width)] for row in matrix.table()]
    return arb_mat(rows + [[arb(0)] * size for _ in range(size - matrix.nrows())])


def top(matrix: Balls, rows: int, columns: int) -> Balls:
    """Return the leading part of a matrix."""
    if (matrix.nrows(), matrix.ncols()) == (rows, columns):
        return matrix
    return arb_mat([row[:columns] for row in matrix.table()[:rows]])


def beside(left: Balls, right: Balls) -> Balls:
    """Return two matrices side by side."""
    return arb_mat([[*first, *second] for first, second in zip(left.table(), right.table(), strict=True)])


# Powers of a step ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class KroneckerBalls:
    """A power A kron B of a matrix network's step by its small factors.

    Never multiplied out: that costs less, and the radii of two small products grow less than those of a large one.
    """

    a: Balls
    b: Balls

    def apply(self, columns: Balls) -> Balls:
        """Return (A kron B) times the columns: A across the blocks of a column, then B along each block."""
        v, u, m = self.a.nrows(), self.b.nrows(), columns.ncols()
        across = (self.a * arb_mat(v, u * m, columns.entries())).entries()
        turned = [across[(i * u + j) * m + k] for j in range(u) for i in range(v) for k in range(m)]
        along = (self.b * arb_mat(u, v * m, turned)).entries()
        return arb_mat(u * v, m, [along[(j * v + i) * m + k] for i in range(v) for j in range(u) for k in range(m)])

    def times(self, other: KroneckerBalls) -> KroneckerBalls:
        """Return the product."""
        return KroneckerBalls(self.a * other.a, self.b * other.b)

    def transposed(self) -> KroneckerBalls:
        """Return the transpose."""
        return KroneckerBalls(self.a.transpose(), self.b.transpose())


@dataclass(frozen=True)
class CompanionBalls:
    """A power of the step of a state and its queue, as one matrix."""

    power: Balls

    @classmethod
    def of(cls, step: KroneckerBalls, weights: Sequence[float]) -> CompanionBalls:
        """Return the first power: the step, the weights beside it, and the queue's shift below."""
        n = step.a.nrows() * step.b.nrows()
        found = padded(step.apply(corner(n, n)), n * (1 + len(weights)))
        for slot, weight in enumerate(weights, start=1):
            for i in range(n):
                found[i, slot * n + i] = arb(float(weight))
                found[slot * n + i, (slot - 1) * n + i] = arb(1)
        return cls(found)

    def apply(self, columns: Balls) -> Balls:
        """Return the power times the columns."""
        return self.power * columns

    def times(self, other: CompanionBalls) -> CompanionBalls:
        """Return the product."""
        return CompanionBalls(self.power * other.power)

    def transposed(self) -> CompanionBalls:
        """Return the transpose."""
        return CompanionBalls(self.power.transpose())


def sum_of_powers(W: Balls, terms: int | None, negligible: float) -> Balls | None:
    """Enclose the sum of W^k W^kT over k < terms, an infinite one up to `negligible`; None where it diverges."""
    identity = balls(np.eye(W.nrows()))
    total, power = identity, W
    for odd in doublings(terms):
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


# Cholesky decomposition, on midpoints -------------------------------------------------------------


def cholesky(matrix: Balls) -> Balls | None:
    """Return L with L L^T near a symmetric matrix of exact entries, or None where rounding has made it indefinite.

    By halves, so that the work is in FLINT's products.
    """
    size = matrix.nrows()
    if size <= _SMALL:
        return _cholesky_by_hand(matrix)
    half = size // 2
    rows = matrix.tolist()
    first = cholesky(arb_mat([row[:half] for row in rows[:half]]))
    if first is None:
        return None
    # "approx" is floating-point arithmetic of the precision in force: no radii, which would only widen.
    left = first.solve(arb_mat([row[half:] for row in rows[:half]]), algorithm="approx").transpose().mid()
    rest = arb_mat([row[half:] for row in rows[half:]]) - left * left.transpose()
    second = cholesky(rest.mid())
    if second is None:
        return None
    zeros = [arb(0)] * (size - half)
    below = [a + b for a, b in zip(left.tolist(), second.tolist(), strict=True)]
    return arb_mat([row + zeros for row in first.tolist()] + below)


def _cholesky_by_hand(matrix: Balls) -> Balls | None:
    size = matrix.nrows()
    lower = [[arb(0)] * size for _ in range(size)]
    for j in range(size):
        for i in range(j, size):
            rest = (matrix[i, j] - sum((lower[i][k] * lower[j][k] for k in range(j)), arb(0))).mid()
            if i == j and not rest > 0:
                return None
            lower[i][j] = (rest.sqrt() if i == j else rest / lower[j][j]).mid()
    return arb_mat(lower)
