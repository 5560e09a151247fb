"""The exponent with which a number grows."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

__all__ = ["growth_exponent", "slope"]

_LEAST, _MOST = 0.05, 6.0


def growth_exponent(lengths: Float[np.ndarray, " k"], values: Float[np.ndarray, " k"]) -> float:
    """Return p of the least-squares fit ``values = c + a lengths^p`` with c at least 0; 0 for what does not grow.

    A part that does not depend on the length (matrices that are computed once) does not bend the exponent, as it
    bends the slope of the logarithms.

    Examples
    --------
    >>> T = np.array([100.0, 200.0, 400.0, 800.0])
    >>> round(growth_exponent(T, 1e6 + 3 * T**2), 6)
    2.0
    """
    x, y = np.asarray(lengths, float) / np.max(lengths), np.asarray(values, float)
    if np.ptp(y) <= 1e-9 * np.abs(y).max():
        return 0.0
    y = y / np.abs(y).max()
    grid = np.linspace(_LEAST, _MOST, 120)
    best = int(np.argmin([_misfit(p, x, y) for p in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    from scipy.optimize import minimize_scalar

    found: Any = minimize_scalar(_misfit, bounds=(low, high), args=(x, y), method="bounded", options={"xatol": 1e-10})
    return float(found.x)


def slope(lengths: Float[np.ndarray, " k"], values: Float[np.ndarray, " k"]) -> float:
    """Return the slope of ln values against ln lengths, for numbers with noise; NaN where there are none."""
    if not np.isfinite(values).all():
        return float("nan")
    return float(np.polyfit(np.log(lengths), np.log(values), 1)[0])


def _misfit(p: float, x: np.ndarray, y: np.ndarray) -> float:
    """Return the root of the least sum of squares of ``y - c - a x^p``: near its zero it is sharper than the sum."""
    power = x**p
    basis = np.stack([np.ones_like(x), power], axis=1)
    constant, factor = np.linalg.lstsq(basis, y, rcond=None)[0]
    if constant < 0:
        constant, factor = 0.0, float(power @ y / (power @ power))
    return float(np.linalg.norm(y - constant - factor * power))
