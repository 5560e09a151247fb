"""Judgement of a network on one axis: its rank among the references, and what it clearly exceeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mnemoscope.core.intervals import difference, student
from mnemoscope.core.numbers import interval
from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.row import Estimate, Row

__all__ = [
    "ENOUGH",
    "MAJORITY",
    "Judgement",
    "Rival",
    "Standing",
    "Tone",
    "axis_of",
    "compared",
    "judge",
    "rivals_of",
    "spoken",
    "value_of",
]

MAJORITY = 2 / 3
"""The share of the references that a network must clearly exceed, or be exceeded by, to be called good or bad."""

ENOUGH = 3
"""References without which nothing is called good or bad."""

Standing = Literal["better", "worse", "open"]
"""Of a network against another: clearly better, clearly worse, or not told apart."""

Tone = Literal["good", "bad", "neutral"]
"""What a statement says of a network."""


@dataclass(frozen=True)
class Rival:
    """A reference on one axis: its number, and how the judged network stands against it."""

    row: Row
    number: Estimate
    standing: Standing


@dataclass(frozen=True)
class Judgement:
    """One network on one axis.

    Attributes
    ----------
    number
        Its own.
    rivals
        The references that have this number.
    """

    quantity: Quantity
    number: Estimate
    rivals: tuple[Rival, ...]

    @property
    def rank(self) -> int:
        """1 plus the references whose number is better, however little."""
        own = _good(self.number, self.quantity)
        return 1 + sum(_good(each.number, self.quantity) > own for each in self.rivals)

    @property
    def ties(self) -> list[Rival]:
        """The references with the very same number."""
        own = _good(self.number, self.quantity)
        return [each for each in self.rivals if _good(each.number, self.quantity) == own]

    @property
    def beaten(self) -> list[Rival]:
        """The references that it clearly exceeds."""
        return [each for each in self.rivals if each.standing == "better"]

    @property
    def beating(self) -> list[Rival]:
        """The references that clearly exceed it, the best first."""
        found = [each for each in self.rivals if each.standing == "worse"]
        return sorted(found, key=lambda each: -_good(each.number, self.quantity))

    @property
    def tone(self) -> Tone:
        """Good when it clearly exceeds two thirds of the references, bad when two thirds clearly exceed it."""
        if len(self.rivals) < ENOUGH:
            return "neutral"
        share = len(self.rivals) * MAJORITY
        return "good" if len(self.beaten) >= share else "bad" if len(self.beating) >= share else "neutral"


def judge(row: Row, references: Sequence[Row], quantities: Sequence[Quantity]) -> list[Judgement]:
    """Return a judgement on every quantity of which the network has a number."""
    rivals = rivals_of(row, references)
    found = []
    for quantity in quantities:
        own = row.number(quantity)
        if own is None:
            continue
        numbers = [(rival, number) for rival in rivals if (number := rival.number(quantity)) is not None]
        judged = tuple(Rival(rival, number, compared(own, number, quantity)) for rival, number in numbers)
        found.append(Judgement(quantity, own, judged))
    return found


def rivals_of(row: Row, references: Sequence[Row]) -> list[Row]:
    """Return the references without the network itself: nothing is better or worse than its own kind."""
    own = _identity(row)
    return [each for each in references if _identity(each) != own]


def _identity(row: Row) -> tuple[str, str, int]:
    network = row.network
    return network.name, str(dict(network.options)), network.num_layers or 1


def axis_of(quantity: Quantity) -> Axis:
    """Return what the verdict says of a quantity that is judged."""
    assert quantity.axis is not None
    return quantity.axis


def value_of(number: Estimate) -> float:
    """Return the value of a number that has one."""
    assert number.value is not None
    return float(number.value)


def _good(number: Estimate, quantity: Quantity) -> float:
    return quantity.goodness(value_of(number))


def compared(one: Estimate, other: Estimate, quantity: Quantity) -> Standing:
    """Say whether one number is clearly better than another.

    Both with several seeds: Welch's 95% interval of the difference leaves zero out. One with a single set of weights:
    it lies outside the 95% prediction interval of the other's seeds. Two single values: their own intervals do not
    overlap. Numbers that are counted have no error: they must differ by the axis's margin.
    """
    # Means of distances from zero are not distances of means: what the seeds say must be what a reader sees.
    mine, yours = value_of(one), value_of(other)
    seen = _sign(quantity.goodness(mine) - quantity.goodness(yours))
    margin = axis_of(quantity).margin
    if margin is not None:
        far = abs(mine - yours) > margin * max(abs(mine), abs(yours))
        return seen if far else "open"
    return seen if _by_chance(one, other, quantity) == seen else "open"


def _by_chance(one: Estimate, other: Estimate, quantity: Quantity) -> Standing:
    mine, yours = _goods(one, quantity), _goods(other, quantity)
    if len(mine) > 1 and len(yours) > 1:
        found = difference(mine, yours)
        return _sign(found.value) if found.clear else "open"
    if len(yours) > 1:
        return _outside(_good(one, quantity), yours)
    if len(mine) > 1:
        return _turned(_outside(_good(other, quantity), mine))
    return _apart(_range(one, quantity), _range(other, quantity))


def spoken(number: Estimate, quantity: Quantity) -> str:
    """Return a number with its interval: ``12.3 (11.9 to 12.7)``, cut at what the number cannot be below."""
    lower = number.lower if quantity.least is None or number.lower is None else max(quantity.least, number.lower)
    return interval(number.value, lower, number.upper)


def _goods(number: Estimate, quantity: Quantity) -> list[float]:
    return [quantity.goodness(each) for each in number.known or (value_of(number),)]


def _outside(good: float, others: Sequence[float]) -> Standing:
    r"""Compare one value with the prediction interval :math:`\bar{x} \pm t s \sqrt{1 + 1/n}` of several."""
    mean, count = float(np.mean(others)), len(others)
    spread = float(np.std(others, ddof=1)) * math.sqrt(1 + 1 / count)
    half = student(count - 1) * spread
    return _sign(good - mean) if abs(good - mean) > half else "open"


def _range(number: Estimate, quantity: Quantity) -> tuple[float, float] | None:
    """Return between what the goodness lies, or None when nobody knows."""
    if number.lower is None or number.upper is None:
        return None
    ends = [quantity.goodness(number.lower), quantity.goodness(number.upper), _good(number, quantity)]
    if quantity.better == "zero" and number.lower <= 0 <= number.upper:
        ends.append(0.0)
    return min(ends), max(ends)


def _apart(mine: tuple[float, float] | None, yours: tuple[float, float] | None) -> Standing:
    if mine is None or yours is None:
        return "open"
    return "better" if mine[0] > yours[1] else "worse" if mine[1] < yours[0] else "open"


def _sign(value: float) -> Standing:
    return "better" if value > 0 else "worse" if value < 0 else "open"


def _turned(standing: Standing) -> Standing:
    turned: dict[Standing, Standing] = {"better": "worse", "worse": "better", "open": "open"}
    return turned[standing]
