"""Rank of a grid in float64: singular values, the cut between them, and whether the cut can be believed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Float

__all__ = ["OPEN_GAP", "SingularValues", "lost", "scaled", "singular_values_of"]

OPEN_GAP = 1e3
"""How many times smaller the first singular value beneath the cut must be than the last one above it."""


_SKETCH = 256
"""Columns of the first random projection of a large matrix."""


@dataclass(frozen=True)
class SingularValues:
    """Singular values of a matrix, and the rank that they suggest.

    Attributes
    ----------
    values
        The singular values, descending.
    tolerance
        What counts as zero, as a share of the largest one.
    rank
        How many exceed it.
    gap
        The last one above the cut over the first one beneath it; where none is beneath it, over the cut itself.
    """

    values: Float[np.ndarray, " values"]
    tolerance: float
    rank: int
    gap: float

    @property
    def open(self) -> bool:
        """Whether the gap is open, so that the rank does not depend on where the cut is made."""
        return self.gap >= OPEN_GAP

    @property
    def shares(self) -> Float[np.ndarray, " values"]:
        """The squared singular values over their sum; all zero for the zero matrix."""
        if self.values[0] == 0:
            return np.zeros_like(self.values)
        squares = (self.values / self.values[0]) ** 2
        return np.asarray(squares / squares.sum())

    @property
    def distance(self) -> float:
        """Distance from the nearest separable function, sqrt(1 - s_1^2 / sum s_i^2)."""
        return math.sqrt(float(self.shares[1:].sum()))

    @property
    def entropy(self) -> float:
        """Entropy of the normalised squared singular values, in nats: exp of it is a soft rank."""
        seen = self.shares[self.shares != 0]
        return abs(float((seen * np.log(seen)).sum()))


def singular_values_of(matrix: Float[np.ndarray, "rows columns"], tolerance: float | None = None) -> SingularValues:
    """Return the singular values of a matrix and the rank at a tolerance, by default that of rounding in the matrix.

    Entries far from one are scaled first, so that neither squares nor sums leave the range of float64. A matrix that
    has left it has the spectrum NaN and the rank 0.
    """
    tolerance = max(matrix.shape) * float(np.finfo(np.float64).eps) if tolerance is None else tolerance
    scale = float(np.abs(matrix).max())
    if not math.isfinite(scale):
        return lost(matrix.shape, tolerance)
    if scale == 0:
        return SingularValues(np.zeros(min(matrix.shape)), tolerance, 0, math.inf)
    _, exponent = math.frexp(scale)
    values = _singular_values(np.ldexp(matrix, -exponent), tolerance)
    cut = tolerance * values[0]
    rank = int((values > cut).sum())
    beneath = float(values[rank]) if rank < len(values) else cut
    gap = float(values[rank - 1]) / beneath if beneath > 0 else math.inf
    return SingularValues(np.ldexp(values, exponent), tolerance, rank, gap)


def _singular_values(matrix: Float[np.ndarray, "rows columns"], tolerance: float) -> Float[np.ndarray, " values"]:
    """Return the singular values; those of a large matrix from a random projection where that leaves nothing over.

    What the projection leaves is at most a tenth of the tolerance; these singular values are given as zero.
    """
    smaller = min(matrix.shape)
    draw = np.random.default_rng(0)
    for width in (_SKETCH, 2 * _SKETCH) if smaller > 4 * _SKETCH else ():
        basis, _ = np.linalg.qr(matrix @ draw.standard_normal((matrix.shape[1], width)))
        inside = basis.T @ matrix
        values = scipy.linalg.svdvals(inside, check_finite=False)
        if np.linalg.norm(matrix - basis @ inside) <= 0.1 * tolerance * values[0]:
            return np.concatenate([values, np.zeros(smaller - width)])
    return np.asarray(scipy.linalg.svdvals(matrix, overwrite_a=True, check_finite=False))


def lost(shape: tuple[int, ...], tolerance: float) -> SingularValues:
    """Return the spectrum of a matrix that float64 cannot hold."""
    return SingularValues(np.full(min(shape), math.nan), tolerance, 0, 0.0)


def scaled(matrix: Float[np.ndarray, "rows columns"], rounds: int = 3) -> Float[np.ndarray, "rows columns"]:
    """Return the matrix with rows and columns scaled by powers of two, to a largest entry near one in each.

    The rank stays the same. What float64 makes of it does not, where small singular values come from small rows: an
    open gap above values that drowned in rounding is exposed, since the scaled matrix has another float rank.
    """
    found = matrix
    for axis in (1, 0) * rounds:
        largest = np.abs(found).max(axis=axis, keepdims=True)
        found = np.ldexp(found, -np.frexp(np.where(largest > 0, largest, 1.0))[1])
    return found
