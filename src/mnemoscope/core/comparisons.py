"""Comparisons of many networks: variances that borrow from each other, and a level that many tests share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

__all__ = ["FALSE_DISCOVERIES", "Pool", "benjamini_hochberg", "pool", "two_sided"]

FALSE_DISCOVERIES = 0.05
"""Share of the differences called clear that may be chance."""


class Pool(NamedTuple):
    """What the variances of many networks say of one more: it is worth `freedom` seeds around `variance`."""

    variance: float
    freedom: float

    def moderated(self, variance: float, freedom: float) -> tuple[float, float]:
        """Return a network's variance drawn towards the others', and its degrees of freedom then.

        (d0 s0^2 + d s^2) / (d0 + d), with d0 + d degrees of freedom. A number without any scatter is exact, and stays
        so.
        """
        if variance == 0:
            return 0.0, math.inf
        if math.isinf(self.freedom):
            return self.variance, math.inf
        both = self.freedom + freedom
        return (self.freedom * self.variance + freedom * variance) / both if both else variance, both


def pool(variances: Sequence[float], freedoms: Sequence[float]) -> Pool:
    """Return the prior of variances, by the moments of their logarithms (Smyth 2004, limma).

    With e = ln s^2 - psi(d/2) + ln(d/2), the mean of e and the excess of its variance over the mean of psi'(d/2) give
    s0^2 and d0: variances that agree are worth many seeds, variances that differ by orders of magnitude none.

    Parameters
    ----------
    variances, freedoms
        Of each network over its seeds, with n - 1; those without scatter are left out.
    """
    known = [(v, d) for v, d in zip(variances, freedoms, strict=True) if v > 0 and d > 0]
    if len(known) < 3:
        return Pool(0.0, 0.0)
    variance, half = np.array([v for v, _ in known]), np.array([d for _, d in known]) / 2
    logs = np.log(variance) - special.digamma(half) + np.log(half)
    mean = float(logs.mean())
    excess = float(logs.var(ddof=1) - special.polygamma(1, half).mean())
    if excess <= 0:  # no more spread than chance gives: one variance for all
        return Pool(math.exp(mean), math.inf)
    freedom = 2 * _trigamma_inverse(excess)
    return Pool(math.exp(mean + float(special.digamma(freedom / 2)) - math.log(freedom / 2)), freedom)


def _trigamma_inverse(value: float) -> float:
    """Return x with psi'(x) = value, by Newton's method on 1/psi', which is nearly a line (Smyth 2004, appendix)."""
    if value > 1e7:
        return 1 / math.sqrt(value)
    x = 0.5 + 1 / value
    for _ in range(50):
        found = float(special.polygamma(1, x))
        step = found * (1 - found / value) / float(special.polygamma(2, x))
        x += step
        if abs(step) < 1e-10 * x:
            break
    return x


def two_sided(difference: float, error: float, freedom: float) -> float:
    """Return how often chance alone gives so large a difference: Student's t, or the normal's for endless freedom."""
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    if not math.isfinite(difference):
        return 0.0
    far = abs(difference) / error
    tail = special.ndtr(-far) if math.isinf(freedom) else special.stdtr(freedom, -far)
    return 2 * float(tail)


def benjamini_hochberg(chances: Sequence[float], level: float = FALSE_DISCOVERIES) -> list[bool]:
    """Say which of many tests hold, so that at most a share `level` of these is expected to be chance.

    All up to the largest i with p(i) <= level i / m hold (Benjamini and Hochberg 1995).

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03, 0.9])
    [True, False, False, False]
    >>> benjamini_hochberg([0.01, 0.02, 0.03, 0.9])
    [True, True, True, False]
    """
    if not chances:
        return []
    found = np.asarray(chances, dtype=float)
    order = np.sort(found)
    within = np.flatnonzero(order <= level * np.arange(1, len(order) + 1) / len(order))
    return (found <= order[within[-1]]).tolist() if len(within) else [False] * len(found)
