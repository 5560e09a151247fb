"""Intervals: of a mean over seeds, of the difference of two networks, of a success rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from mnemoscope.core.errors import expected

__all__ = ["LEVEL", "Difference", "Interval", "check_level", "difference", "mean_interval", "student", "wilson"]

LEVEL = 0.95
"""Of every interval, unless another is asked for."""


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


def mean_interval(
    values: Sequence[float], stderr: float | None = None, *, least: float | None = None, most: float | None = None
) -> Interval:
    r"""Return the mean of one value per seed with its 95% interval, which keeps within what the number can be.

    With :math:`e = t_{0.975,n-1} s / \sqrt{n}` it is :math:`\bar{x} \pm e` where nothing is known; above a least value
    a it is :math:`a + (\bar{x} - a) \exp(\pm e / (\bar{x} - a))`, the interval on the logarithmic scale; between two
    ends that on the scale :math:`\ln((x - a) / (b - x))`. One value has no scatter: e is then 1.96 times the measure's
    own standard error, where there is one.

    Parameters
    ----------
    values
        One for every seed.
    stderr
        The measure's own standard error, used where there is one value.
    least, most
        What the number cannot be below and above; None: no such limit.

    Examples
    --------
    >>> mean_interval([1.2, 1.0, 1.1], least=1.0).lower >= 1
    True
    """
    mean = float(np.mean(values))
    if len(values) > 1:
        half = student(len(values) - 1) * float(np.std(values, ddof=1)) / len(values) ** 0.5
    elif stderr is not None and math.isfinite(stderr):
        half = float(special.ndtri((1 + LEVEL) / 2)) * stderr
    else:
        return Interval(mean, None, None)
    return Interval(mean, *_within(mean, half, least, most))


_FURTHEST = 700.0
"""Of a logarithm, beyond which there is no number."""


def _within(mean: float, half: float, least: float | None, most: float | None) -> tuple[float, float]:
    """Return the ends of an interval, on the scale that has no end where the number has one."""
    below = math.inf if least is None else mean - least
    above = math.inf if most is None else most - mean
    if half == 0 or (below == above == math.inf):
        return mean - half, mean + half
    if below <= 0 or above <= 0:  # at an end, or beyond it by rounding
        low, high = mean - half, mean + half
        return low if least is None else max(min(low, mean), least), high if most is None else min(high, most)
    # The slope of ln((x - a) / (b - x)) is 1/(x - a) + 1/(b - x); an end that is not there has none.
    step = min(half * (1 / below + 1 / above), _FURTHEST)
    if above == math.inf:
        return mean - below + below * math.exp(-step), mean - below + below * math.exp(step)
    if below == math.inf:
        return mean + above - above * math.exp(step), mean + above - above * math.exp(-step)
    odds = [below / above * math.exp(sign * step) for sign in (-1, 1)]
    low, high = ((mean - below) + (below + above) * each / (1 + each) for each in odds)
    return low, high


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


def wilson(successes: int, trials: int, level: float = LEVEL) -> Interval:
    """Return a success rate with Wilson's interval.

    (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), with p = successes / n and z the normal quantile: unlike
    the textbook's p +- z sqrt(p(1-p)/n) it is not empty when all or none succeed.

    Examples
    --------
    >>> rate = wilson(3, 3)
    >>> f"{rate.value:.2f} [{rate.lower:.2f}, {rate.upper:.2f}]"
    '1.00 [0.44, 1.00]'
    """
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise expected("trials", "a positive integer", trials)
    if isinstance(successes, bool) or not isinstance(successes, int) or not 0 <= successes <= trials:
        raise expected("successes", f"an integer from 0 to {trials}", successes)
    z = float(special.ndtri((1 + check_level(level)) / 2))
    p, spread = successes / trials, z * z / trials
    half = math.sqrt(p * (1 - p) * spread + spread * spread / 4)
    lower, upper = ((p + spread / 2 + sign * half) / (1 + spread) for sign in (-1, 1))
    # At the ends the formula gives 0 and 1 up to rounding only.
    return Interval(p, 0.0 if successes == 0 else lower, 1.0 if successes == trials else upper)


def student(freedom: float, level: float = LEVEL) -> float:
    """Return the quantile of Student's t, from where it does not cost the import of scipy.stats."""
    return float(special.stdtrit(freedom, (1 + level) / 2))


def check_level(level: float) -> float:
    """Return the confidence of an interval, or raise the standard error."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise expected("level", "a number between 0 and 1", level)
    return level
