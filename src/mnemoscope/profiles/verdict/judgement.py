"""Judgement of a network on one axis: strong, average, weak or uncertain, by position and certainty together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.row import Estimate, Row
from mnemoscope.profiles.verdict.contest import Contest, Standing, number_of

__all__ = ["ENOUGH", "UPPER", "Judgement", "Rival", "Word", "axis_of", "judge"]

UPPER = 2 / 3
"""Share of the references that a strong network surely is above; a weak one surely is below as many."""

ENOUGH = 3
"""References without which nothing is called strong, average or weak."""

Word = Literal["strong", "average", "weak", "uncertain"]
"""What a network is on an axis."""


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
        The references that have this number, found in the same way.
    """

    quantity: Quantity
    number: Estimate
    rivals: tuple[Rival, ...]

    def against(self, standing: Standing) -> list[Rival]:
        """Return the references against which it stands so, the best first."""
        found = [each for each in self.rivals if each.standing == standing]
        return sorted(found, key=lambda each: -self.quantity.goodness(each.number.value or 0.0))

    @property
    def position(self) -> tuple[float, float]:
        """Between which shares of the references it stands: 0 below all, 1 above all.

        Those that are level count half. Those that are not told apart are lost at the one end, and won at the other.
        """
        if not self.rivals:
            return 0.0, 1.0
        sure = len(self.against("better")) + len(self.against("level")) / 2
        return sure / len(self.rivals), (sure + len(self.against("open"))) / len(self.rivals)

    @property
    def rank(self) -> tuple[int, int]:
        """Between which ranks it stands among itself and the references."""
        best = 1 + len(self.against("worse"))
        return best, best + len(self.against("open"))

    @property
    def word(self) -> Word:
        """Strong, average or weak where its position surely is in the upper, middle or lower third; else uncertain."""
        least, most = self.position
        if len(self.rivals) < ENOUGH:
            return "uncertain"
        if least >= UPPER:
            return "strong"
        if most <= 1 - UPPER:
            return "weak"
        return "average" if least > 1 - UPPER and most < UPPER else "uncertain"


def judge(row: Row, references: Sequence[Row], quantities: Sequence[Quantity]) -> list[Judgement]:
    """Return a judgement on every quantity of which the network has a number."""
    contest = Contest([(row, each) for each in references], quantities)
    found = []
    for quantity in quantities:
        own = number_of(row, quantity)
        if own is not None:
            rivals = [_rival(contest, row, each, quantity) for each in references]
            found.append(Judgement(quantity, own, tuple(each for each in rivals if each is not None)))
    return found


def _rival(contest: Contest, row: Row, other: Row, quantity: Quantity) -> Rival | None:
    standing, number = contest.standing(row, other, quantity), number_of(other, quantity)
    return None if standing is None or number is None else Rival(other, number, standing)


def axis_of(quantity: Quantity) -> Axis:
    """Return what the verdict says of a quantity that is judged."""
    assert quantity.axis is not None
    return quantity.axis
