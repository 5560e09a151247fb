"""Extremes over all angles at once, certified by an eigenvalue problem instead of a grid.

A level is reached at some angle exactly when a pencil of twice the size has an eigenvalue on the unit circle. So the
largest value is found by raising the level until there is none (Byers 1988; Boyd and Balakrishnan 1990).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Float, Inexact
from scipy.optimize import minimize_scalar

__all__ = ["Peak", "highest", "numerical_radius", "resolvent", "resolvent_crossings"]

Value = Callable[[float], float]
Crossings = Callable[[float], Float[np.ndarray, " m"]]

_ON_CIRCLE = 1e-6
_ROUNDS = 30


@dataclass(frozen=True)
class Peak:
    """The largest value over all angles.

    Attributes
    ----------
    value, angle
        What was found, and where.
    bound
        What no angle exceeds.
    """

    value: float
    angle: float
    bound: float


def highest(value: Value, crossings: Crossings, starts: Iterable[float], slack: float) -> Peak:
    """Return the largest value over all angles.

    Parameters
    ----------
    value
        The function of the angle.
    crossings
        For a level, all angles at which the function passes it, and perhaps others.
    starts
        Angles to begin with.
    slack
        Relative precision to which the largest value is certified.
    """
    angle, best = _best(value, starts)
    angle, best = _climb(value, angle, 0.05, best, slack)
    for _ in range(_ROUNDS):
        level = best * (1 + slack)
        found = np.sort(crossings(level))
        if len(found) == 0:
            return Peak(best, angle, level)
        gaps = np.diff(np.append(found, found[0] + 2 * math.pi))
        trial, top = _best(value, found + gaps / 2)
        if top <= level:  # the eigenvalues near the circle were near misses
            return Peak(max(best, top), angle if best >= top else trial, level)
        angle, best = _climb(value, trial, float(gaps.max()) / 2, top, slack)
    return Peak(best, angle, math.inf)


def _best(value: Value, angles: Iterable[float]) -> tuple[float, float]:
    found = [(value(float(angle)), float(angle)) for angle in angles]
    best, angle = max(found)
    return angle, best


def _climb(value: Value, angle: float, reach: float, best: float, slack: float) -> tuple[float, float]:
    """Go uphill near an angle; at the top the value is flat, so that the angle needs half the digits only."""
    reach = min(reach, 0.05)
    options = {"xatol": max(0.1 * slack**0.5, 1e-8)}
    found = minimize_scalar(
        lambda x: -value(x), bounds=(angle - reach, angle + reach), method="bounded", options=options
    )
    return (float(found.x), -float(found.fun)) if -found.fun > best else (angle, best)


def numerical_radius(W: Inexact[np.ndarray, "n n"]) -> float:
    """Return the largest |x* W x| over unit vectors x."""
    n, identity = len(W), np.eye(len(W))
    if not W.any():
        return 0.0

    def value(angle: float) -> float:
        turned = np.exp(1j * angle) * W
        return float(np.linalg.eigvalsh((turned + turned.conj().T) / 2)[-1])

    def crossings(level: float) -> Float[np.ndarray, " m"]:
        zero = np.zeros((n, n))
        left = np.block([[zero, identity], [-W.conj().T, 2 * level * identity]])
        right = np.block([[identity, zero], [zero, W]])
        return _angles(left, right)

    starts = np.concatenate([np.linspace(0, 2 * math.pi, 8, endpoint=False), -np.angle(np.linalg.eigvals(W))[:8]])
    return highest(value, crossings, starts, 1e-12).value


def resolvent(upper: Inexact[np.ndarray, "n n"], z: complex) -> Inexact[np.ndarray, "n n"]:
    """Return (z - T)^-1 for a triangular T, row by row to full precision."""
    n = len(upper)
    shifted = z * np.eye(n) - upper
    found: np.ndarray = scipy.linalg.solve_triangular(shifted, np.eye(n), check_finite=False)
    return found


def resolvent_crossings(W: Inexact[np.ndarray, "n n"], radius: float) -> Crossings:
    """Return the function that gives all angles at which ||(z - W)^-1|| passes a level on the circle |z| = radius."""
    n = len(W)
    identity, zero = np.eye(n), np.zeros((n, n))

    def crossings(level: float) -> Float[np.ndarray, " m"]:
        left = np.block([[-identity / level, -W], [radius * identity, zero]])
        right = np.block([[zero, -radius * identity], [W.conj().T, identity / level]])
        return _angles(left, right)

    return crossings


def _angles(left: Inexact[np.ndarray, "m m"], right: Inexact[np.ndarray, "m m"]) -> Float[np.ndarray, " k"]:
    """Return the angles of the pencil's eigenvalues on the unit circle, to rounding."""
    above, below = scipy.linalg.eigvals(left, right, homogeneous_eigvals=True, check_finite=False)
    above_size, below_size = np.abs(above), np.abs(below)
    on = np.abs(above_size - below_size) < _ON_CIRCLE * np.maximum(above_size, below_size)
    angles: np.ndarray = np.angle(above[on] * below[on].conj())
    return angles
