"""What the Fisher memories of matrix networks are given, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from mnemoscope.core.arrays import matrix, positive, square
from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.core.memory import allowance, require

__all__ = ["Given", "given", "spectral_radius", "unstable"]

_ROUNDING = 1e-13  # nearer to 1 than this a spectral radius cannot be told from 1


class Given(NamedTuple):
    """The network X = U^T X V + W s + Z, its source brought to the size of 1, and what that took.

    `unit` is the information, per noise 1 and scaled source, that is handed out; `energy` that of the source itself.
    """

    U: Float[np.ndarray, "n n"]
    V: Float[np.ndarray, "m m"]
    W: Float[np.ndarray, "n m"]
    noise: tuple[float, float]
    horizon: int | None
    unit: float

    @property
    def energy(self) -> float:
        """Return tr(W^T W) of the scaled source."""
        return float((self.W**2).sum())


def given(U: Any, V: Any, W: Any, noise: Any, horizon: Any) -> Given:
    """Check and convert the arguments that the measures share."""
    U, V = square("U", U), square("V", V)
    W = matrix("W", W)
    if W.shape != (len(U), len(V)):
        raise expected("W", f"of shape ({len(U)}, {len(V)}) to fit U and V", W.shape)
    if not W.any():
        raise UserError("W must have an entry other than 0, got zeros alone: no signal enters")
    variances = _noise(noise)
    if horizon is not None:
        horizon = positive_int("horizon", horizon)
        require(f"a curve of {horizon} lags", 32 * horizon, f"horizon={allowance() // 32} would fit")
    scale = 2.0 ** math.frexp(float(np.abs(W).max()))[1]  # squares of very large or small weights stay in range
    unit = scale * scale / variances[0] / variances[1]
    if not (math.isfinite(unit) and unit > 0):
        raise expected("noise", "of a size at which the information is a float64 number", variances)
    return Given(U, V, W / scale, variances, horizon, unit)


def spectral_radius(values: Float[np.ndarray, "n n"]) -> float:
    """Return the largest modulus of an eigenvalue."""
    return float(np.abs(np.linalg.eigvals(values)).max())


def unstable(radius: float) -> bool:
    """Return whether a spectral radius is 1 or more, as far as float64 can tell."""
    return radius >= 1 - _ROUNDING


def _noise(value: Any) -> tuple[float, float]:
    pair = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        raise expected("noise", "two positive variances, of rows and of columns", value)
    return positive("noise[0]", pair[0]), positive("noise[1]", pair[1])
