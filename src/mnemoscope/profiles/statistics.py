"""What several seeds say: a mean with its interval, and the difference of two networks with its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

__all__ = ["LEVEL", "Difference", "Interval", "difference", "mean_interval", "student"]

LEVEL = 0.95
"""Of every interval."""


class Interval(NamedTuple):
    """A number and between what it lies; None without an interval."""

    value: float
    lower: float | None
    upper: float | None


class Difference(NamedTuple):
    """By how much one network's number exceeds another's, between what, and how that was found."""

    value: float
    lower: float | None
    upper: float | None
    how: str

    @property
    def clear(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.lower is not None and self.upper is not None and (self.lower > 0 or self.upper < 0)


def mean_interval(values: Sequence[float], stderr: float | None = None) -> Interval:
    r"""Return the mean of one value per seed with its 95% interval, :math:`\bar{x} \pm t_{0.975,n-1} s / \sqrt{n}`.

    One value has no scatter: its interval is that of the measure's own standard error, where there is one.
    """
    mean = float(np.mean(values))
    if len(values) > 1:
        half = student(len(values) - 1) * float(np.std(values, ddof=1)) / len(values) ** 0.5
    elif stderr is not None and math.isfinite(stderr):
        half = float(special.ndtri((1 + LEVEL) / 2)) * stderr
    else:
        return Interval(mean, None, None)
    return Interval(mean, mean - half, mean + half)


def difference(a: Sequence[float], b: Sequence[float], *, paired: bool = False) -> Difference:
    r"""Return mean(a) - mean(b) with its 95% interval.

    Independent seeds: Welch's interval, :math:`\pm t_{0.975,\nu} (s_a^2/n_a + s_b^2/n_b)^{1/2}` with Satterthwaite's
    :math:`\nu`. Paired seeds, in which both networks have the same weights: the t interval of the differences.
    """
    value = float(np.mean(a) - np.mean(b))
    if paired and len(a) == len(b) > 1:
        found = mean_interval([x - y for x, y in zip(a, b, strict=True)])
        return Difference(*found, f"paired by seed, {len(a)} pairs with the same weights")
    if min(len(a), len(b)) < 2:
        return Difference(value, None, None, "no interval: one set of weights on a side")
    parts = [float(np.var(side, ddof=1)) / len(side) for side in (a, b)]
    error = math.sqrt(sum(parts))
    if error == 0:
        return Difference(value, value, value, "no scatter over seeds on either side")
    freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (a, b), strict=True))
    half = student(freedom) * error
    return Difference(value, value - half, value + half, f"Welch, independent seeds, {freedom:.1f} degrees of freedom")


def student(freedom: float) -> float:
    """Return the quantile of Student's t, from where it does not cost the import of scipy.stats."""
    return float(special.stdtrit(freedom, (1 + LEVEL) / 2))
