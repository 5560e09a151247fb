"""Comparing two networks' numbers: which is better, and whether that is clear."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mnemoscope.core.intervals import difference, student
from mnemoscope.core.numbers import interval
from mnemoscope.profiles.rows import Row, scalar
from mnemoscope.profiles.verdict.axes import Axis

__all__ = ["Measured", "Outcome", "compared", "goodness", "measured", "spoken"]

Outcome = Literal["better", "worse", "open"]
"""Of a network against another: clearly better, clearly worse, or not told apart."""


@dataclass(frozen=True)
class Measured:
    """One number of one network.

    Attributes
    ----------
    value, lower, upper
        The number and its 95% interval, None where it has none.
    seeds
        Of each set of weights.
    unit
        As the row has it.
    """

    value: float
    lower: float | None
    upper: float | None
    seeds: tuple[float, ...]
    unit: str = ""


def measured(row: Row, axis: Axis) -> Measured | None:
    """Return the number of a row that decides an axis, or None when it is not there."""
    found = scalar(row, axis.part, axis.scalar)
    if found is None or not _is_number(found.get("value")):
        return None
    lower: Any = found.get("lower")
    upper: Any = found.get("upper")
    known = _is_number(lower) and _is_number(upper)
    seeds = tuple(float(each) for each in found.get("seeds") or () if _is_number(each))
    return Measured(
        float(found["value"]),
        float(lower) if known else None,
        float(upper) if known else None,
        seeds or (float(found["value"]),),
        str(found.get("unit") or ""),
    )


def goodness(value: float, axis: Axis) -> float:
    """Return a number of which more is better: the value, its negative, or minus its distance from zero."""
    if axis.better == "higher":
        return value
    return -value if axis.better == "lower" else -abs(value)


def compared(one: Measured, other: Measured, axis: Axis) -> Outcome:
    """Say whether one number is clearly better than another.

    Both with several seeds: Welch's 95% interval of the difference leaves zero out. One with a single set of weights:
    it lies outside the 95% prediction interval of the other's seeds. Two single values: their own intervals do not
    overlap. Numbers that are counted have no error: they must differ by the axis's margin.
    """
    # Means of distances from zero are not distances of means: what the seeds say must be what a reader sees.
    seen = _sign(goodness(one.value, axis) - goodness(other.value, axis))
    if axis.margin is not None:
        far = abs(one.value - other.value) > axis.margin * max(abs(one.value), abs(other.value))
        return seen if far else "open"
    return seen if _by_chance(one, other, axis) == seen else "open"


def _by_chance(one: Measured, other: Measured, axis: Axis) -> Outcome:
    mine, yours = _goods(one, axis), _goods(other, axis)
    if len(mine) > 1 and len(yours) > 1:
        found = difference(mine, yours)
        return _sign(found.value) if found.clear else "open"
    if len(yours) > 1:
        return _outside(goodness(one.value, axis), yours)
    if len(mine) > 1:
        return _turned(_outside(goodness(other.value, axis), mine))
    return _apart(_range(one, axis), _range(other, axis))


def spoken(number: Measured, axis: Axis) -> str:
    """Return a number with its interval: ``12.3 (11.9 to 12.7)``, cut at what the number cannot be below."""
    lower = number.lower if axis.least is None or number.lower is None else max(axis.least, number.lower)
    return interval(number.value, lower, number.upper)


def _goods(number: Measured, axis: Axis) -> list[float]:
    return [goodness(each, axis) for each in number.seeds]


def _outside(good: float, others: Sequence[float]) -> Outcome:
    r"""Compare one value with the prediction interval :math:`\bar{x} \pm t s \sqrt{1 + 1/n}` of several."""
    mean, count = float(np.mean(others)), len(others)
    spread = float(np.std(others, ddof=1)) * math.sqrt(1 + 1 / count)
    half = student(count - 1) * spread
    return _sign(good - mean) if abs(good - mean) > half else "open"


def _range(number: Measured, axis: Axis) -> tuple[float, float] | None:
    """Return between what the goodness lies, or None when nobody knows."""
    if number.lower is None or number.upper is None:
        return None
    ends = [goodness(number.lower, axis), goodness(number.upper, axis), goodness(number.value, axis)]
    if axis.better == "zero" and number.lower <= 0 <= number.upper:
        ends.append(0.0)
    return min(ends), max(ends)


def _apart(mine: tuple[float, float] | None, yours: tuple[float, float] | None) -> Outcome:
    if mine is None or yours is None:
        return "open"
    return "better" if mine[0] > yours[1] else "worse" if mine[1] < yours[0] else "open"


def _sign(value: float) -> Outcome:
    return "better" if value > 0 else "worse" if value < 0 else "open"


def _turned(outcome: Outcome) -> Outcome:
    turned: dict[Outcome, Outcome] = {"better": "worse", "worse": "better", "open": "open"}
    return turned[outcome]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
