"""Linear readouts without bias: fitted on all parts of the data but one, scored on that one.

States of up to some hundred numbers are factored by QR, and directions down to 1e-13 of the largest count. Those of
more are met by a Gram matrix for each part, and the ridge is chosen by how well it predicts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import scipy.linalg
from jaxtyping import Float, Int

__all__ = ["GramReadout", "Linear", "Readout"]

_RIDGES = (1e-13, 1e-10, 1e-8, 1e-6, 1e-4)
"""Square roots of the ridges that are tried, as shares of the largest singular value."""

_FIRST = 1e-7
"""Square root of the ridge of the first Gram matrix, likewise."""

_FLOOR = 1e-12
"""What keeps the Gram matrices of whitened states definite, in spite of rounding."""

_PROBES = 32


class Linear(Protocol):
    """Readouts of given states."""

    @property
    def chance(self) -> float:
        """Standard deviation of the mean estimate for a target that the states know nothing of."""

    def recovered(self, targets: Float[np.ndarray, "parts samples targets"]) -> Float[np.ndarray, "parts targets"]:
        """Return, scored on each part, the share of the variance of targets of mean zero that is recovered."""


class _Fold(NamedTuple):
    """States of one part of the data, and a one for the intercept, as Q R."""

    Q: Float[np.ndarray, "samples units"]
    R: Float[np.ndarray, "units units"]


class _Scored(NamedTuple):
    """Score of one part: the readout that the others give, and what noise in each of their samples does to it."""

    inverse: Float[np.ndarray, "units others"]
    leverage: Float[np.ndarray, "parts samples"]


class Readout:
    r"""Linear readouts of given states, each trained on all parts of the data but one and scored on that one.

    A readout that was fitted to samples carries their noise: what is left of sample s of the target, e_s, moves the
    readout, and on the part that is scored this adds e_s^2 h_s to the squared error, where

    .. math:: h_s = \| X' (X^\top X + \rho I)^{-1} x_s \|^2

    (X the states it was trained on, X' those it is scored on). The squared error is therefore 1 + g times what it would
    be without, g the mean of h weighted by e^2, and the share recovered is estimated as 1 - error / variance / (1 + g).
    That is zero on average for a target that the states know nothing of, and one where it is recovered exactly.
    Products of inputs are large where states are, which is why h is weighted. States are factored by QR and never
    squared, so directions down to 1e-13 of the largest count.

    Parameters
    ----------
    states
        In parts that are independent of each other.
    regularisation
        Square root of the ridge rho, as a share of the largest singular value of the standardised states.
    """

    def __init__(self, states: Float[np.ndarray, "parts samples units"], regularisation: float) -> None:
        self.samples: int = states.shape[1]
        scaled = np.ldexp(states, -_exponents(states))
        centred = scaled - scaled.mean(axis=(0, 1))
        spread = centred.std(axis=(0, 1))
        centred /= np.where(spread > 0, spread, 1.0)
        ones = np.ones((*states.shape[:2], 1))
        self.folds = [_Fold(*np.linalg.qr(part)) for part in np.concatenate([ones, centred], axis=2)]
        self.scored = [self._scored(index, regularisation) for index in range(len(self.folds))]

    def _scored(self, index: int, regularisation: float) -> _Scored:
        others = [fold for i, fold in enumerate(self.folds) if i != index]
        left, sizes, right = np.linalg.svd(np.concatenate([fold.R for fold in others]), full_matrices=False)
        floor = regularisation * sizes[0]
        damped = np.divide(sizes, sizes**2 + floor**2, out=np.zeros_like(sizes), where=sizes > 0)
        inverse = (right.T * damped) @ left.T
        moved = np.split(self.folds[index].R @ inverse, len(others), axis=1)
        leverage = [((fold.Q @ part.T) ** 2).sum(axis=1) for fold, part in zip(others, moved, strict=True)]
        return _Scored(inverse, np.stack(leverage))

    @property
    def chance(self) -> float:
        """Standard deviation of the mean estimate for a target that the states know nothing of."""
        return _chance([each.leverage for each in self.scored], self.samples)

    def recovered(self, targets: Float[np.ndarray, "parts samples targets"]) -> Float[np.ndarray, "parts targets"]:
        """Return, scored on each part, the share of the variance of targets of mean zero that is recovered."""
        seen = [fold.Q.T @ part for fold, part in zip(self.folds, targets, strict=True)]
        squares = np.empty_like(targets)
        for index, (fold, scored) in enumerate(zip(self.folds, self.scored, strict=True)):
            weights = scored.inverse @ np.concatenate([y for i, y in enumerate(seen) if i != index])
            squares[index] = targets[index] - fold.Q @ (fold.R @ weights)
        return _shares(targets, squares, [each.leverage for each in self.scored])


class GramReadout:
    r"""Linear readouts of large states: X^T X of every part, and one Cholesky factor for each part that is left out.

    A Gram matrix knows directions down to 1e-7 of the largest only. States are therefore multiplied by the inverse
    of the factor of a first one, R^T R = X^T X + 1e-14 of its largest eigenvalue, and the Gram matrices that are used
    are those of X R^-1: together they know directions down to 1e-13, as QR does. Time is O(T N^2), linear in the
    samples, and all of it products of matrices; besides the states a few matrices of N x N are held.

    What noise in a sample does to a readout, :math:`h_s = x_s^\top A^{-1} X'^\top X' A^{-1} x_s` with A the matrix that
    is factored, comes from random sums of the rows of X': it is right on average, and only sums of it over many samples
    are used.

    Parameters
    ----------
    states
        After every step, of sequences in the order of the parts that they are in; they are changed in place.
    parts
        How many parts.
    regularisation
        Square root of the ridge, as a share of the largest singular value of the standardised states; None: the one
        with which all other parts recover most of the `guide` on the first part.
    guide
        Targets.
    """

    def __init__(
        self,
        states: Float[np.ndarray, "read batch units"],
        parts: int,
        regularisation: float | None,
        guide: Float[np.ndarray, "parts samples targets"],
    ) -> None:
        self.states, self.parts = states, parts
        self.rows: list[Float[np.ndarray, "samples units"]] = []
        self.samples: int = states.shape[0] * states.shape[1] // parts
        np.ldexp(states, -_exponents(states), out=states)
        states -= states.mean(axis=(0, 1))
        spread = np.sqrt(np.einsum("tbu,tbu->u", states, states) / (states.shape[0] * states.shape[1]))
        states /= np.where(spread > 0, spread, 1.0)
        first = sum(rows.T @ rows for rows in map(self._rows, range(parts)))
        largest = _largest(first)
        root = _factor(first, _FIRST**2 * largest)
        self._whiten(root)
        grams = [rows.T @ rows for rows in map(self._rows, range(parts))]
        whole: np.ndarray = sum(grams[1:], grams[0])
        # A ridge on the states is this on what they have become.
        ridge = largest * (parts - 1) / parts * _solve(root, np.eye(len(root)))
        if regularisation is None:
            guide = guide - guide.mean(axis=(0, 1))
            missed = [self._missed(_factor(whole - grams[0], _FLOOR, each**2 * ridge), guide) for each in _RIDGES]
            regularisation = _RIDGES[int(np.argmin(missed))]
        self.regularisation = regularisation
        ridge *= regularisation**2
        ridge.flat[:: len(ridge) + 1] += _FLOOR
        # Whitened by what readouts are trained on, no direction is small any more, and single precision suffices.
        root = _factor((parts - 1) / parts * whole, 0.0, ridge)
        self._whiten(root)
        self.rows = [self._rows(part).astype(np.float32) for part in range(parts)]
        self.factors = [_factor(_seen_from(root, whole - gram + ridge), 0.0) for gram in grams]
        moved = [self._moved(part, factor) for part, factor in enumerate(self.factors)]
        self.leverages = [
            np.stack([self._leverage(other, each) for other in range(parts) if other != part])
            for part, each in enumerate(moved)
        ]

    def _rows(self, part: int) -> Float[np.ndarray, "samples units"]:
        """Return the states of a part."""
        if self.rows:
            return self.rows[part]
        width = self.states.shape[1] // self.parts
        return self.states[:, part * width : (part + 1) * width].reshape(-1, self.states.shape[2])

    def _whiten(self, factor: Float[np.ndarray, "units units"]) -> None:
        """Multiply all states by R^-1, given R^T."""
        width = self.states.shape[1] // self.parts
        for part in range(self.parts):
            rows = scipy.linalg.solve_triangular(factor, self._rows(part).T, lower=True, check_finite=False).T
            self.states[:, part * width : (part + 1) * width] = rows.reshape(len(self.states), width, -1)

    def _moved(self, part: int, factor: Float[np.ndarray, "units units"]) -> Float[np.ndarray, "units probes"]:
        signs = np.random.default_rng(part).choice((-1.0, 1.0), size=(_PROBES, self.samples)) / math.sqrt(_PROBES)
        return _solve(factor, (signs @ self._rows(part)).T)

    def _leverage(self, part: int, moved: Float[np.ndarray, "units probes"]) -> Float[np.ndarray, " samples"]:
        found: np.ndarray = np.square(self._rows(part) @ moved).sum(axis=1)
        return found

    def _missed(
        self, factor: Float[np.ndarray, "units units"], guide: Float[np.ndarray, "parts samples targets"]
    ) -> float:
        """Return the squared error on the first part, without what the noise of the fit adds to it."""
        others = range(1, self.parts)
        weights = _solve(factor, sum(self._rows(part).T @ guide[part] for part in others))
        noise = sum(float(self._leverage(part, self._moved(0, factor)).sum()) for part in others)
        left = float(np.square(guide[0] - self._rows(0) @ weights).sum())
        return left / (1 + noise / self.samples)

    @property
    def chance(self) -> float:
        """Standard deviation of the mean estimate for a target that the states know nothing of."""
        return _chance(self.leverages, self.samples)

    def recovered(self, targets: Float[np.ndarray, "parts samples targets"]) -> Float[np.ndarray, "parts targets"]:
        """Return, scored on each part, the share of the variance of targets of mean zero that is recovered."""
        # As the states are: there is no intercept.
        targets = (targets - targets.mean(axis=(0, 1))).astype(np.float32)
        seen = [(rows.T @ each).astype(float) for rows, each in zip(self.rows, targets, strict=True)]
        whole: np.ndarray = sum(seen[1:], seen[0])
        left = np.empty_like(targets)
        for part, factor in enumerate(self.factors):
            left[part] = targets[part] - self.rows[part] @ _solve(factor, whole - seen[part]).astype(np.float32)
        return _shares(targets, left, self.leverages)


def _exponents(states: Float[np.ndarray, "some samples units"]) -> Int[np.ndarray, " units"]:
    """Return the power of two just above each unit's largest state: over it, which is exact, no square overflows."""
    largest = np.maximum(states.max(axis=(0, 1)), -states.min(axis=(0, 1)))
    return np.asarray(np.frexp(largest)[1])


def _factor(
    gram: Float[np.ndarray, "n n"], floor: float, ridge: Float[np.ndarray, "n n"] | None = None
) -> Float[np.ndarray, "n n"]:
    """Return the lower Cholesky factor of a Gram matrix with a ridge, in its place."""
    if ridge is not None:
        gram += ridge
    gram.flat[:: len(gram) + 1] += floor
    found: np.ndarray = scipy.linalg.cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    return found


def _seen_from(root: Float[np.ndarray, "n n"], matrix: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """Return R^-1 A R^-T: a Gram matrix after its states were whitened by R."""
    half = scipy.linalg.solve_triangular(root, matrix, lower=True, check_finite=False)
    found: np.ndarray = scipy.linalg.solve_triangular(root, half.T, lower=True, check_finite=False)
    return found


def _solve(factor: Float[np.ndarray, "n n"], columns: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    found: np.ndarray = scipy.linalg.cho_solve((factor, True), columns, check_finite=False)
    return found


def _largest(gram: Float[np.ndarray, "n n"]) -> float:
    """Return the largest eigenvalue of a Gram matrix, from below, to a few parts in a hundred; one where all are zero.

    States that never change tell nothing, whatever the ridge.
    """
    vector = np.random.default_rng(0).normal(size=len(gram))
    size = 1.0
    for _ in range(24):
        vector = gram @ (vector / np.linalg.norm(vector))
        size = float(np.linalg.norm(vector))
        if size == 0:
            return 1.0
    return size


def _chance(leverages: Sequence[Float[np.ndarray, "others samples"]], samples: int) -> float:
    """Return the standard deviation of the mean estimate for a target that the states know nothing of.

    With K parts, m = K - 1 of them to train on, and p_g the covariance of states and target in part g, the mean is a
    sum of products p_g^T S^-1 p_h with weights (4/m - 2 (K-2)/m^2) / K for g < h and 1 / (m K) for g = h; the products
    are uncorrelated, of variances p / T'^2 and 2 p / T'^2, where p is the number of effective units.
    """
    parts = len(leverages)
    train = parts - 1
    inflation = sum(float(each.sum()) for each in leverages) / parts / samples
    share = 4 / train - 2 * (parts - 2) / (train * train)
    pairs = parts * train / 2 * share * share
    weight = (pairs + 2 * parts / (train * train)) / (parts * parts)
    return math.sqrt(weight * inflation * train / samples) / (1 + inflation)


def _shares(
    targets: Float[np.ndarray, "parts samples targets"],
    left: Float[np.ndarray, "parts samples targets"],
    leverages: Sequence[Float[np.ndarray, "others samples"]],
) -> Float[np.ndarray, "parts targets"]:
    """Return the shares recovered, from what was left of the targets; `left` is squared in place."""
    squares = np.square(left, out=left)
    power, missed = (targets**2).sum(axis=1, dtype=float), squares.sum(axis=1, dtype=float)
    error = np.stack([missed[i] / (1 + _inflation(i, squares, missed, leverages[i])) for i in range(len(missed))])
    found = 1 - error / power
    # The ratio of sums has less bias than the mean of ratios; the spread over parts is kept.
    return np.asarray(found - found.mean(axis=0) + 1 - error.sum(axis=0) / power.sum(axis=0))


def _inflation(
    index: int,
    squares: Float[np.ndarray, "parts samples targets"],
    missed: Float[np.ndarray, "parts targets"],
    leverage: Float[np.ndarray, "others samples"],
) -> Float[np.ndarray, " targets"]:
    others = [i for i in range(len(squares)) if i != index]
    weighted = sum(h @ squares[i] for h, i in zip(leverage, others, strict=True))
    total = missed[others].sum(axis=0)
    return np.asarray(np.divide(len(others) * weighted, total, out=np.zeros_like(total), where=total > 0))
