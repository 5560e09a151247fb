"""Consequences of validation: rates go down, training stops."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from mnemoscope.core.errors import choice, expected, positive_int

__all__ = ["COSINE", "SCHEDULES", "Plateau", "Watch", "plateau"]

COSINE = "cosine"
"""Schedule that follows the step alone, not validation."""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class Plateau:
    """Lower the rates when validation has not improved for a while, and stop when that has been done often enough.

    Parameters
    ----------
    checks
        How many validations in a row may pass without an improvement.
    threshold
        By how much the validation loss must fall below the best to count as an improvement.
    factor
        What the rates are then multiplied by.
    drops
        How often that happens before the next time ends the training; 0 stops at once, None never stops.

    Examples
    --------
    >>> Plateau(checks=11, threshold=1e-3, factor=0.1, drops=1) == SCHEDULES["ziv"]
    True
    """

    checks: int = 11
    threshold: float = 1e-3
    factor: float = 0.1
    drops: int | None = 1

    def __post_init__(self) -> None:
        """Check the settings."""
        positive_int("checks", self.checks)
        if not _number(self.threshold) or self.threshold < 0:
            raise expected("threshold", "a number that is not negative", self.threshold)
        if not _number(self.factor) or not 0 < self.factor < 1:
            raise expected("factor", "a number between 0 and 1", self.factor)
        if self.drops is not None and (
            isinstance(self.drops, bool) or not isinstance(self.drops, int) or self.drops < 0
        ):
            raise expected("drops", "a whole number that is not negative, or None", self.drops)


SCHEDULES = {
    "ziv": Plateau(),
    "halve": Plateau(checks=1, threshold=0.0, factor=0.5, drops=None),
}
"""By name: Ziv's plateau schedule, and rates halved at every validation without improvement."""


def plateau(schedule: Any, patience: int | None) -> Plateau | None:
    """Return the schedule that is meant: one of `SCHEDULES`, a `Plateau`, a table of its settings, or by patience."""
    if schedule is not None and patience is not None:
        raise expected("patience", "None where a schedule is given, whose checks are its patience", patience)
    if patience is not None:
        return Plateau(checks=positive_int("patience", patience), threshold=0.0, drops=0)
    if schedule is None or isinstance(schedule, Plateau):
        return schedule
    if isinstance(schedule, dict):
        for name in schedule:
            choice("a setting of the schedule", name, Plateau.__dataclass_fields__)
        return Plateau(**schedule)
    if not isinstance(schedule, str):
        raise expected("schedule", "a name, a Plateau or a table of its settings", schedule)
    return SCHEDULES[choice("schedule", schedule, (*SCHEDULES, COSINE))]


@dataclass
class Watch:
    """What one network's validations have said so far.

    Attributes
    ----------
    best
        The lowest validation loss, and `best_step` when it was.
    anchor
        The loss that an improvement is measured from.
    waited
        Validations since the last improvement by more than the threshold.
    dropped
        How often the rates went down.
    """

    best: float = math.inf
    best_step: int = 0
    anchor: float = math.inf
    waited: int = 0
    dropped: int = 0

    def see(self, step: int, loss: float, plateau: Plateau | None) -> tuple[bool, str | None]:
        """Take a validation loss; say whether it is the best, and what follows: ``"drop"``, ``"stop"`` or nothing."""
        better = loss < self.best
        if better:
            self.best, self.best_step = loss, step
        if plateau is None:
            return better, None
        if loss < self.anchor - plateau.threshold:
            self.anchor, self.waited = loss, 0
            return better, None
        self.waited += 1
        if self.waited < plateau.checks:
            return better, None
        if plateau.drops is not None and self.dropped >= plateau.drops:
            return better, "stop"
        self.dropped += 1
        self.waited = 0
        return better, "drop"

    def rate(self, plateau: Plateau | None) -> float:
        """Return what the rates are multiplied by now."""
        return 1.0 if plateau is None else plateau.factor**self.dropped

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self)
