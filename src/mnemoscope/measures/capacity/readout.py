"""How much of a target's variance a linear readout recovers: ridge regression, held-out data, no bias."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["Readout"]


class _Fold(NamedTuple):
    """States of one part of the data, and a one for the intercept, as Q R."""

    Q: Float[np.ndarray, "samples units"]
    R: Float[np.ndarray, "units units"]


class _Scored(NamedTuple):
    """How one part is scored: the readout that the others give, and what noise in each of their samples does to it."""

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
        centred = states - states.mean(axis=(0, 1))
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
        """Standard deviation of the mean estimate for a target that the states know nothing of.

        With K parts, m = K - 1 of them to train on, and p_g the covariance of states and target in part g, the mean is
        a sum of products p_g^T S^-1 p_h with weights (4/m - 2 (K-2)/m^2) / K for g < h and 1 / (m K) for g = h; the
        products are uncorrelated, of variances p / T'^2 and 2 p / T'^2, where p is the number of effective units.
        """
        parts = len(self.folds)
        train = parts - 1
        inflation = sum(float(each.leverage.sum()) for each in self.scored) / parts / self.samples
        share = 4 / train - 2 * (parts - 2) / (train * train)
        pairs = parts * train / 2 * share * share
        weight = (pairs + 2 * parts / (train * train)) / (parts * parts)
        return math.sqrt(weight * inflation * train / self.samples) / (1 + inflation)

    def recovered(self, targets: Float[np.ndarray, "parts samples targets"]) -> Float[np.ndarray, "parts targets"]:
        """Return, scored on each part, the share of the variance of targets of mean zero that is recovered."""
        seen = [fold.Q.T @ part for fold, part in zip(self.folds, targets, strict=True)]
        squares = np.empty_like(targets)
        for index, (fold, scored) in enumerate(zip(self.folds, self.scored, strict=True)):
            weights = scored.inverse @ np.concatenate([y for i, y in enumerate(seen) if i != index])
            squares[index] = targets[index] - fold.Q @ (fold.R @ weights)
        np.square(squares, out=squares)
        power, missed = (targets**2).sum(axis=1), squares.sum(axis=1)
        error = np.stack([missed[i] / (1 + self._inflation(i, squares, missed)) for i in range(len(missed))])
        found = 1 - error / power
        # The ratio of sums has less bias than the mean of ratios; the spread over parts is kept.
        return np.asarray(found - found.mean(axis=0) + 1 - error.sum(axis=0) / power.sum(axis=0))

    def _inflation(
        self,
        index: int,
        squares: Float[np.ndarray, "parts samples targets"],
        missed: Float[np.ndarray, "parts targets"],
    ) -> Float[np.ndarray, " targets"]:
        others = [i for i in range(len(squares)) if i != index]
        weighted = sum(h @ squares[i] for h, i in zip(self.scored[index].leverage, others, strict=True))
        total = missed[others].sum(axis=0)
        return np.asarray(np.divide(len(others) * weighted, total, out=np.zeros_like(total), where=total > 0))
