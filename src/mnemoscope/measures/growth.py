"""Laws of growth: exponential or polynomial, and the exponent of a power."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["Growth", "fit_growth", "growth_exponent", "slope"]

_FLAT = 1e-4
"""The change of a logarithm that counts as none: orthogonal matrices in single precision make it in 1000 steps."""


class Growth(NamedTuple):
    """Growth of a positive sequence n_0, n_1, ..

    Attributes
    ----------
    law
        ``"exponential"``, ``"polynomial"``, ``"constant"``, or ``"vanished"`` when too few entries are above zero.
    rate
        r of n_k ~ exp(r k), by least squares.
    order
        p of n_k ~ k^p, by least squares.
    misfit_exponential, misfit_polynomial
        Root mean square distance of ln n_k from each law.
    """

    law: str
    rate: float
    order: float
    misfit_exponential: float
    misfit_polynomial: float


def fit_growth(log_norms: Float[np.ndarray, " lags"]) -> Growth:
    """Fit both laws to ln n_0, ln n_1, .. from a tenth of the way on, where what is special about the end is over.

    Lags count from the first entry above zero; what comes after an entry of zero is left out.

    Examples
    --------
    >>> fit_growth(np.log(0.5) * np.arange(100)).law
    'exponential'
    >>> found = fit_growth(np.log(1 + 3.0 * np.arange(200) ** 2))
    >>> found.law, round(found.order, 2)
    ('polynomial', 2.0)
    """
    finite = np.isfinite(log_norms)
    first = int(finite.argmax())  # a loss may end before the last step
    steps = log_norms[first:]
    alive = len(steps) if finite[first:].all() else int(finite[first:].argmin())
    window = slice(max(1, alive // 10), alive)
    k, y = np.arange(len(steps))[window], steps[window]
    if len(k) < 3:
        return Growth("vanished", -np.inf, -np.inf, np.nan, np.nan)
    rate, by_rate = _line(k.astype(float), y)
    order, by_order = _line(np.log(k), y)
    if np.ptp(y) < _FLAT:
        return Growth("constant", rate, order, by_rate, by_order)
    return Growth("exponential" if by_rate <= by_order else "polynomial", rate, order, by_rate, by_order)


def _line(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """Return the slope of the least-squares line, and the root mean square distance from it."""
    dx, dy = x - x.mean(), y - y.mean()
    slope = float(dx @ dy / (dx @ dx))
    return slope, float(np.sqrt(np.mean((dy - slope * dx) ** 2)))


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
