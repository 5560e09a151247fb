"""Resolvents of a matrix from the series of its powers, for matrices too far from normal to be solved with.

(z - W)^-1 = sum_k W^k / z^(k+1). Where an inverse in float64 has lost all digits, which happens as soon as it is larger
than 1e16, the powers may still have theirs: rounding errors of products are relative to products of |W|, entry by
entry, which is W itself for matrices of one sign, lines with a weak feedback among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Inexact
from scipy.optimize import minimize_scalar

from mnemoscope.measures.spectral.powers import spectral_norm

__all__ = ["SeriesKreiss", "kreiss_from_powers", "resolvent_series"]

_EPS = float(np.finfo(float).eps)
_DOUBLINGS = 20
_SETTLED = 1e-16
_RADII = 13


class SeriesKreiss(NamedTuple):
    """The largest (|z| - 1) ||R(z)|| that was found, where, and a bound of its error."""

    value: float
    point: complex
    error: float


def kreiss_from_powers(W: Inexact[np.ndarray, "n n"], angles: Float[np.ndarray, " m"]) -> SeriesKreiss | None:
    """Return the largest (|z| - 1) ||(z - W)^-1|| along some angles; None where the powers overflow.

    Parameters
    ----------
    W
        A stable matrix.
    angles
        Of the leading eigenvalues, and others that are worth a look.
    """
    powers = _squares(W)
    if powers is None:
        return None
    value, best = _height(powers), SeriesKreiss(1.0, complex(math.inf), 0.0)
    for angle in _apart(angles):
        grid = np.linspace(math.log(1e-3), math.log(1e3), _RADII)
        at = int(np.argmax([value(float(x), angle) for x in grid]))
        ends = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, _RADII - 1)])
        top = minimize_scalar(lambda x, a=angle: -value(x, a), bounds=ends, method="bounded", options={"xatol": 1e-6})
        if -top.fun > best.value:
            excess = math.exp(float(top.x))
            best = SeriesKreiss(-float(top.fun), (1 + excess) * complex(np.exp(1j * angle)), 0.0)
    if not math.isfinite(abs(best.point)):
        return None
    return best._replace(error=(abs(best.point) - 1) * _rounding(W, abs(best.point), len(powers)))


def resolvent_series(powers: list[np.ndarray], z: complex) -> Inexact[np.ndarray, "n n"]:
    """Return sum_{k < 2^J} W^k / z^(k+1) from W, W^2, W^4, ..: each product doubles the number of terms."""
    found, scale = np.eye(len(powers[0])) / z, 1 / z
    for power in powers:
        found = found + scale * (power @ found)
        scale = scale * scale
    return found


def _squares(W: Inexact[np.ndarray, "n n"]) -> list[np.ndarray] | None:
    """Return W, W^2, W^4, .. until they vanish; None where they leave float64."""
    found = [W]
    for _ in range(_DOUBLINGS):
        with np.errstate(over="ignore", invalid="ignore"):
            square = found[-1] @ found[-1]
        if not np.isfinite(square).all():
            return None
        if np.abs(square).max() < _SETTLED:
            return found
        found.append(square)
    return None


def _height(powers: list[np.ndarray]) -> Callable[[float, float], float]:
    def value(log_excess: float, angle: float) -> float:
        excess = math.exp(log_excess)
        return excess * spectral_norm(resolvent_series(powers, (1 + excess) * complex(np.exp(1j * angle))))

    return value


def _apart(angles: Float[np.ndarray, " m"]) -> list[float]:
    """Return angles that differ, one of each pair that a real matrix cannot tell apart."""
    return [float(x) for x in np.unique(np.abs(angles).round(6))]


def _rounding(W: Inexact[np.ndarray, "n n"], radius: float, terms: int) -> float:
    """Bound what rounding did to the norm of the series: every product of J levels, by the same series of |W|."""
    found = np.eye(len(W)) / radius
    power, scale = np.abs(W), 1 / radius
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(terms):
            found = found + scale * (power @ found)
            power, scale = power @ power, scale * scale
    if not np.isfinite(found).all():
        return math.inf
    return 2 * terms * len(W) * _EPS * spectral_norm(found)
