"""Sums over powers of a coupled block in ball arithmetic, for covariances that float64 cannot hold.

The weights are taken as the exact values of their floats. Every number carries a proven error, and the precision is
doubled until the error is small; only where the stationary sums are cut off is the rest estimated, by a term far
below the float64 result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx
from jaxtyping import Float

from mnemoscope.measures.fisher.balls import (
    Balls,
    CompanionBalls,
    KroneckerBalls,
    balls,
    beside,
    corner,
    forms,
    padded,
    top,
)
from mnemoscope.measures.fisher.blocks import BLOCK
from mnemoscope.measures.fisher.conventions import doublings

__all__ = ["LARGEST", "Extended"]

LARGEST = 256
"""How many state numbers a network may have here: a minute at worst."""

_PRECISIONS = (256, 512, 1024, 2048, 4096)
_ERROR = 1e-20  # of a trace, relatively: far below float64


class Extended:
    """One network of column-stacked step A kron B with queue weights, as `BlockMemory`.

    Parameters
    ----------
    a, b, w
        The step's factors and the source, as the user gave them.
    weights
        Of the states further back; none: no queue.
    observed
        Of how many successive states the information is wanted, for each observation.
    horizon
        Steps from zero; None: stationary.
    """

    def __init__(
        self,
        a: Float[np.ndarray, "v v"],
        b: Float[np.ndarray, "u u"],
        w: Float[np.ndarray, "u v"],
        weights: Sequence[float],
        observed: Sequence[int],
        horizon: int | None,
    ) -> None:
        self._units = w.size
        self.size = self._units * (1 + len(weights))
        self.work = 1e6 * self.size**2  # a ball costs a thousand floats, and Python's loops around it as much again
        self._seen = [self._units * states for states in observed]
        for precision in _PRECISIONS:
            self.precision = precision
            with ctx.workprec(precision):
                source = [arb(float(entry)) for entry in w.T.reshape(-1)]
                self._lags = arb_mat(self.size, 1, source + [arb(0)] * (self.size - self._units))
                step = KroneckerBalls(balls(a), balls(b))
                if self._solve(CompanionBalls.of(step, weights) if weights else step, horizon):
                    return
        raise ArithmeticError(f"{_PRECISIONS[-1]} bits are not enough")

    def _solve(self, step: Any, horizon: int | None) -> bool:
        self._ahead = step
        try:
            covariance = _doubled(corner(self.size, self._units), step, horizon)
            self._inverses = [top(covariance, seen, seen).inv() for seen in self._seen]
            back = step.transposed()
            self._information = [_doubled(padded(inverse, self.size), back, horizon) for inverse in self._inverses]
        except ZeroDivisionError:  # the balls are too wide to go on
            return False
        return all(self._narrow(held) for held in self._information)

    def _narrow(self, held: Balls) -> bool:
        """Whether the trace of J^s and the total of the source are known to far more digits than float64 has."""
        trace, total = self._trace(held), (self._lags.transpose() * held * self._lags)[0, 0]
        return all(bool(ball.rad() <= _ERROR * abs(ball.mid())) for ball in (trace, total))

    def advance(self, count: int) -> Float[np.ndarray, "observed count"]:
        """Return the information about the next lags."""
        with ctx.workprec(self.precision):
            while self._lags.ncols() < BLOCK:
                self._lags = beside(self._lags, self._ahead.apply(self._lags))
                self._ahead = self._ahead.times(self._ahead)
            now = top(self._lags, self.size, count)
            found = [
                forms(inverse, top(now, seen, count)) for inverse, seen in zip(self._inverses, self._seen, strict=True)
            ]
            self._lags = self._ahead.apply(self._lags)
        return np.array(found)

    def tail(self) -> Float[np.ndarray, " observed"]:
        """Return what the lags to come hold."""
        with ctx.workprec(self.precision):
            next_lag = top(self._lags, self.size, 1)
            return np.array([forms(held, next_lag)[0] for held in self._information])

    def defect(self) -> float:
        """Return how far trace(J^s) is from the number of observed units."""
        with ctx.workprec(self.precision):
            misses = [
                float((self._trace(held) / seen - 1).mid())
                for held, seen in zip(self._information, self._seen, strict=True)
            ]
        return float(np.abs(misses).max())

    def error(self) -> float:
        """The balls are narrower than the rounding of what is handed out."""
        return float(np.finfo(float).eps)

    def _trace(self, held: Balls) -> Any:
        return sum((held[i, i] for i in range(self._units)), arb(0))

    def spatial(self) -> Float[np.ndarray, "1 n n"]:
        """Return J^s on the units that the noise reaches."""
        held = top(self._information[0], self._units, self._units)
        return np.array([[[float(entry.mid()) for entry in row] for row in held.table()]])


def _doubled(start: Balls, step: Any, horizon: int | None) -> Balls:
    """Return sum_k P^k M P^kT for a symmetric M."""
    total, power = start, step
    small = arb(2) ** (-ctx.prec // 2)
    for odd in doublings(horizon):
        block = _around(power, total)
        if horizon is None and block.trace().abs_upper() < small * total.trace().abs_upper():
            break
        total, power = _sure(total + block), power.times(power)
        if odd:
            total, power = _sure(start + _around(step, total)), power.times(step)
    return total


def _around(power: Any, symmetric: Balls) -> Balls:
    return power.apply(power.apply(symmetric).transpose())


def _sure(total: Balls) -> Balls:
    """Raise as soon as the balls are wider than a result could be used with."""
    trace = total.trace()
    if not trace.is_finite() or trace.rad() > abs(trace.mid()) * _ERROR:
        raise ZeroDivisionError
    return total
