"""Axes of charts for a paper: from numbers to places, and the round numbers that stand at them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mnemoscope.core.numbers import number, raised
from mnemoscope.report.figure import Number

__all__ = ["Scale", "drawable", "padded"]

_FLAT = 1e-5
"""Share by which numbers differ that rounding in single precision makes: no axis zooms in on that."""


@dataclass(frozen=True)
class Scale:
    """A map of the numbers between `low` and `high` to the places between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return the place of a number."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def holds(self, value: float) -> bool:
        """Say whether a number lies on the axis."""
        if not drawable(value, self.log):
            return False
        first, last = sorted((self.start, self.end))
        return first - 0.01 <= self.at(value) <= last + 0.01  # by places: a logarithmic axis has no one size of error

    def ticks(self, count: int, *, whole: bool = False) -> list[tuple[float, str]]:
        """Return about `count` round numbers on the axis, each with its text; of whole numbers only such."""
        if self.log:
            return _log_ticks(self.low, self.high, count)
        return _linear_ticks(self.low, self.high, count, 1.0 if whole else 0.0)


def drawable(value: Number, log: bool) -> bool:
    """Say whether a number has a place on an axis: finite, and positive where the axis is logarithmic."""
    return value is not None and math.isfinite(value) and (value > 0 or not log)


def padded(values: Iterable[float], *, log: bool, decades: float = math.inf) -> tuple[float, float]:
    """Return where an axis begins and ends that shows these numbers: from zero where they come near it.

    A logarithmic axis reaches at most so many decades below the largest number.
    """
    known = list(values)
    low, high = min(known, default=0.1 if log else 0.0), max(known, default=1.0)
    if log:
        low = max(low, high * 10**-decades, 1e-300)
        if high - low <= _FLAT * high:
            return low / 2, high * 2
        room = max(1.08, (high / low) ** 0.03)
        return low / room, high * room
    if high - low <= _FLAT * max(abs(low), abs(high)):
        return low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    edge = 0.05 * (high - low)
    start = 0.0 if 0 <= low < high * 0.6 else low - edge
    end = 0.0 if 0 >= high > low * 0.6 else high + edge
    return start, end


def _linear_ticks(low: float, high: float, count: int, least: float = 0.0) -> list[tuple[float, str]]:
    raw = max((high - low) / max(1, count), least)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [float(f"{k * step:.12g}") for k in range(first, last + 1)]
    return [(value, number(value, 6)) for value in values]


def _log_ticks(low: float, high: float, count: int) -> list[tuple[float, str]]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for multiples in ((1,), (1, 3), (1, 2, 5), tuple(range(1, 10))):
        found = [float(f"{m}e{k}") for k in range(first, last + 1) for m in multiples]
        inside = [tick for tick in found if low * 0.999 <= tick <= high * 1.001]
        if len(inside) >= 3:
            return _labelled(_thinned(inside, count), powers=len(multiples) == 1)
    return [(value, text) for value, text in _linear_ticks(low, high, count) if value > 0]


def _thinned(values: list[float], count: int) -> list[float]:
    """Return every so many of the numbers, counted from one where it is among them, so that it is labelled."""
    every = -(-len(values) // max(2, count))
    return values[(values.index(1.0) if 1.0 in values else 0) % every :: every]


def _labelled(values: list[float], *, powers: bool) -> list[tuple[float, str]]:
    if powers and (values[0] < 1e-3 or values[-1] > 1e5):
        return [(value, f"10{raised(round(math.log10(value)))}") for value in values]
    return [(value, number(value, 3)) for value in values]
