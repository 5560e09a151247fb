"""Norms of the powers of a matrix: the transient, and its exact maximum over all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Inexact

from mnemoscope.measures.spectral.stability import Stability

__all__ = ["Amplification", "amplification", "power_norms", "spectral_norm"]

_DOUBLINGS = 24
_BUDGET = 20_000
_MARGINAL = 2_000


@dataclass(frozen=True)
class Amplification:
    """The largest norm of a power.

    Attributes
    ----------
    value
        max over k >= 0 of ||W^k||, at least 1 as W^0 = I; infinite when the powers are not bounded.
    power
        The first k that attains it; -1 when none does.
    exact
        False where not all powers could be looked at or bounded: then it is a lower bound.
    """

    value: float
    power: int
    exact: bool


def spectral_norm(matrix: Inexact[np.ndarray, "n n"]) -> float:
    """Return the largest singular value, to full relative precision, cheaper than by an SVD."""
    scale = float(np.abs(matrix).max())
    if scale == 0:
        return 0.0
    scaled = matrix / scale
    return scale * math.sqrt(float(np.linalg.eigvalsh(scaled @ scaled.conj().T)[-1]))


def power_norms(W: Inexact[np.ndarray, "n n"], horizon: int) -> Float[np.ndarray, " powers"]:
    """Return ||W^k|| for k = 0 .. horizon; infinite where it is beyond float64."""
    found, power = np.full(horizon + 1, np.inf), np.eye(len(W), dtype=W.dtype)
    for k in range(horizon + 1):
        found[k] = spectral_norm(power)
        with np.errstate(over="ignore", invalid="ignore"):
            power = power @ W
        if not np.isfinite(power).all():
            break
    return found


def amplification(W: Inexact[np.ndarray, "n n"], stability: Stability) -> Amplification:
    """Return the largest norm of a power, with a proof that no other is larger.

    As ||W^(a+j)|| <= ||W^a|| ||W^j||, the powers of an interval [a, a + L) are at most ||W^a|| max_{j<L} ||W^j||. That
    discards most intervals unseen, and all powers from m on once ||W^m|| <= 1.
    """
    if not stability.bounded:
        return Amplification(float("inf"), -1, True)
    norm = spectral_norm(W)
    if stability.is_one(norm, len(W)):
        return Amplification(1.0, 0, True)
    if stability.kind == "marginal":
        norms = power_norms(W, _MARGINAL)
        return Amplification(float(norms.max()), int(norms.argmax()), False)
    return _Search().run(W, norm)


@dataclass
class _Search:
    """The search over powers, interval by interval."""

    best: float = 1.0
    power: int = 0
    left: int = _BUDGET
    powers: list[np.ndarray] = field(default_factory=list)
    largest: list[float] = field(default_factory=list)  # of ||W^j|| for j < 2^i

    def run(self, W: Inexact[np.ndarray, "n n"], norm: float) -> Amplification:
        current = W
        for i in range(_DOUBLINGS):
            self.powers.append(current)
            self.largest.append(self.best)
            if norm <= 1:
                return Amplification(self.best, self.power, True)
            self.look(current, norm, 2**i, i)
            if self.left <= 0:
                break
            current = current @ current
            norm = spectral_norm(current)
        return Amplification(self.best, self.power, False)

    def look(self, matrix: Inexact[np.ndarray, "n n"], norm: float, start: int, level: int) -> None:
        """Look at the powers [start, start + 2^level), the first of which is given."""
        if norm > self.best:
            self.best, self.power = norm, start
        if level == 0 or norm * self.largest[level] <= self.best or self.left <= 0:
            return
        self.look(matrix, norm, start, level - 1)
        self.left -= 1
        half = matrix @ self.powers[level - 1]
        self.look(half, spectral_norm(half), start + 2 ** (level - 1), level - 1)
