"""Statistics of a few seeds of two networks: paired differences, and corrections for many questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Float

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.core.intervals import LEVEL, Interval, check_level, student

__all__ = ["Comparison", "compare_paired", "holm"]

_ENUMERATED = 14
"""Pairs up to which all sign patterns are tried; beyond, as many are drawn at random."""


@dataclass(frozen=True)
class Comparison:
    """Two networks on the same seeds: a - b.

    Attributes
    ----------
    difference
        Mean of the differences, seed by seed, with its interval (Student's t).
    effect
        Mean difference over the standard deviation of the differences (Cohen's d_z), times Hedges' correction for few
        pairs; infinite when all differences are equal and not zero, NaN for two pairs.
    p
        Probability of a mean difference at least as large when the sign of each one is a coin toss (two-sided, exact up
        to 14 pairs). With n pairs it cannot be below 2^(1-n).
    pairs
        How many seeds.
    """

    difference: Interval
    effect: float
    p: float
    pairs: int

    def __str__(self) -> str:
        d = self.difference
        return (
            f"difference {d.value:.4g} [{d.lower:.4g}, {d.upper:.4g}], effect size {self.effect:.2g}, "
            f"p = {self.p:.2g} on {self.pairs} pairs"
        )


def compare_paired(
    a: Sequence[float] | Float[np.ndarray, " seeds"],
    b: Sequence[float] | Float[np.ndarray, " seeds"],
    level: float = LEVEL,
    seed: int = 0,
) -> Comparison:
    """Compare two networks by what they reached with the same seeds.

    Parameters
    ----------
    a, b
        One number per seed, in the same order.
    level
        Of the interval.
    seed
        Draws sign patterns where there are too many pairs to try all.

    Examples
    --------
    >>> print(compare_paired([64, 60, 72], [40, 44, 48]))
    difference 21.33 [9.86, 32.81], effect size 2.6, p = 0.25 on 3 pairs
    """
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if first.ndim != 1 or first.shape != second.shape or len(first) < 2:
        raise expected("a and b", "two lists of one number per seed, of the same two seeds or more", _shapes(a, b))
    differences = first - second
    if not np.isfinite(differences).all():
        raise UserError("a and b must be finite, seed by seed: leave out seeds that have no result")
    pairs, mean, deviation = len(differences), float(differences.mean()), float(differences.std(ddof=1))
    half = student(pairs - 1, check_level(level)) * deviation / math.sqrt(pairs)
    correction = 1 - 3 / (4 * (pairs - 1) - 1) if pairs > 2 else math.nan
    effect = _ratio(mean, deviation) * correction
    return Comparison(Interval(mean, mean - half, mean + half), effect, _sign_flips(differences, seed), pairs)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number, by Holm's method: all claims hold together at the given level.

    The i-th smallest of m is multiplied by m - i + 1, and none is below one that was smaller.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if not 0 <= p_values[i] <= 1:
            raise expected("p_values", "probabilities between 0 and 1", p_values[i])
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected


def _sign_flips(differences: Float[np.ndarray, " seeds"], seed: int) -> float:
    """Return the share of sign patterns whose mean is at least as far from zero."""
    count = len(differences)
    if count <= _ENUMERATED:
        signs = np.array(list(product((-1.0, 1.0), repeat=count)))
    else:
        drawn = np.random.default_rng(seed).choice((-1.0, 1.0), size=(2**_ENUMERATED - 1, count))
        signs = np.concatenate([np.ones((1, count)), drawn])  # the pattern that was observed is one of them
    reached = np.abs(signs @ differences)
    observed = abs(differences.sum())
    return float(np.mean(reached >= observed * (1 - 1e-12)))


def _ratio(mean: float, deviation: float) -> float:
    if deviation > 0:
        return mean / deviation
    return 0.0 if mean == 0 else math.copysign(math.inf, mean)


def _shapes(a: Any, b: Any) -> Description:
    return Description(f"shapes {np.shape(a)} and {np.shape(b)}")
