"""Matrices of balls (python-flint's arb): powers of a step, and the reshaping that the package lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat
from jaxtyping import Float

__all__ = ["BallMatrix", "CompanionBalls", "KroneckerBalls", "balls", "beside", "corner", "forms", "padded", "top"]

BallMatrix = Any
"""A python-flint arb_mat; the package has no annotations."""


@dataclass(frozen=True)
class KroneckerBalls:
    """A power A kron B of the step by its small factors: cheaper, and their balls widen less than those of all."""

    a: BallMatrix
    b: BallMatrix

    def apply(self, columns: BallMatrix) -> BallMatrix:
        """Return (A kron B) times the columns."""
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

    power: BallMatrix

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

    def apply(self, columns: BallMatrix) -> BallMatrix:
        """Return the power times the columns."""
        return self.power * columns

    def times(self, other: CompanionBalls) -> CompanionBalls:
        """Return the product."""
        return CompanionBalls(self.power * other.power)

    def transposed(self) -> CompanionBalls:
        """Return the transpose."""
        return CompanionBalls(self.power.transpose())


def balls(values: Float[np.ndarray, "n m"]) -> BallMatrix:
    """Return floats as the exact numbers that they are."""
    return arb_mat([[arb(float(entry)) for entry in row] for row in values])


def corner(size: int, count: int) -> BallMatrix:
    """Return a matrix with `count` leading ones on its diagonal and zeros elsewhere."""
    return arb_mat(size, size, [int(i == j < count) for i in range(size) for j in range(size)])


def padded(matrix: BallMatrix, size: int) -> BallMatrix:
    """Return the matrix as the leading part of one of zeros."""
    width = size - matrix.ncols()
    rows = [[*row, *([arb(0)] * width)] for row in matrix.table()]
    return arb_mat(rows + [[arb(0)] * size for _ in range(size - matrix.nrows())])


def top(matrix: BallMatrix, rows: int, columns: int) -> BallMatrix:
    """Return the leading part of a matrix."""
    if (matrix.nrows(), matrix.ncols()) == (rows, columns):
        return matrix
    return arb_mat([row[:columns] for row in matrix.table()[:rows]])


def beside(left: BallMatrix, right: BallMatrix) -> BallMatrix:
    """Return two matrices side by side."""
    return arb_mat([[*first, *second] for first, second in zip(left.table(), right.table(), strict=True)])


def forms(inner: BallMatrix, columns: BallMatrix) -> list[float]:
    """Return z^T M z for every column z, rounded to floats."""
    images, given = (inner * columns).transpose().table(), columns.transpose().table()
    pairs = zip(images, given, strict=True)
    return [float(sum((a * b for a, b in zip(x, y, strict=True)), arb(0)).mid()) for x, y in pairs]
