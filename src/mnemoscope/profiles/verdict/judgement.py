"""Judging one network on one axis: its rank among the references, and what it clearly exceeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mnemoscope.profiles.rows import Row
from mnemoscope.profiles.verdict.axes import AXES, ENOUGH, MAJORITY, Axis
from mnemoscope.profiles.verdict.numbers import Measured, Outcome, compared, goodness, measured

__all__ = ["Judgement", "Rival", "Tone", "judge", "rivals_of"]

Tone = Literal["good", "bad", "neutral"]
"""What a statement says of a network."""


@dataclass(frozen=True)
class Rival:
    """A reference on one axis: its number, and what the judged network is against it."""

    row: Row
    number: Measured
    outcome: Outcome


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

    axis: Axis
    number: Measured
    rivals: tuple[Rival, ...]

    @property
    def rank(self) -> int:
        """1 plus the references whose number is better, however little."""
        own = goodness(self.number.value, self.axis)
        return 1 + sum(goodness(each.number.value, self.axis) > own for each in self.rivals)

    @property
    def ties(self) -> list[Rival]:
        """The references with the very same number."""
        own = goodness(self.number.value, self.axis)
        return [each for each in self.rivals if goodness(each.number.value, self.axis) == own]

    @property
    def beaten(self) -> list[Rival]:
        """The references that it clearly exceeds."""
        return [each for each in self.rivals if each.outcome == "better"]

    @property
    def beating(self) -> list[Rival]:
        """The references that clearly exceed it, the best first."""
        found = [each for each in self.rivals if each.outcome == "worse"]
        return sorted(found, key=lambda each: -goodness(each.number.value, self.axis))

    @property
    def tone(self) -> Tone:
        """Good when it clearly exceeds two thirds of the references, bad when two thirds clearly exceed it."""
        if len(self.rivals) < ENOUGH:
            return "neutral"
        share = len(self.rivals) * MAJORITY
        return "good" if len(self.beaten) >= share else "bad" if len(self.beating) >= share else "neutral"


def judge(row: Row, references: Sequence[Row]) -> list[Judgement]:
    """Return a judgement on every axis on which the network has a number."""
    rivals = rivals_of(row, references)
    found = []
    for axis in AXES:
        own = measured(row, axis)
        if own is None:
            continue
        numbers = [(rival, number) for rival in rivals if (number := measured(rival, axis)) is not None]
        judged = tuple(Rival(rival, number, compared(own, number, axis)) for rival, number in numbers)
        found.append(Judgement(axis, own, judged))
    return found


def rivals_of(row: Row, references: Sequence[Row]) -> list[Row]:
    """Return the references without the network itself: nothing is better or worse than its own kind."""
    own = _identity(row)
    return [each for each in references if _identity(each) != own]


def _identity(row: Row) -> tuple[str, str, int]:
    network = row["network"]
    return str(network.get("name")), str(network.get("options") or {}), int(network.get("num_layers") or 1)
