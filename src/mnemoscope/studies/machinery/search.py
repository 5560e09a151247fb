"""Search over rates, sizes and options: points of a grid or drawn at random, each a run as those of studies are.

The point is chosen by validation alone: of every seed the lowest loss along training, and of a point the mean over its
seeds. The test of the chosen point is looked at once, that of the others not at all.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.studies.machinery.study import Outcome, RunSpec
from mnemoscope.studies.machinery.trainings import SIZES, make_networks, make_task
from mnemoscope.training import Options

__all__ = ["Axis", "Choice", "Point", "best_point", "edges", "grid_points", "random_points", "search_plan"]

Point = dict[str, Any]
"""A value of every axis, by its name."""

_CHECKS = 20
"""Validations of a training, where its settings do not say how often."""

_LARGEST = 10_000


@dataclass(frozen=True)
class Axis:
    """What is searched over: a setting of training, a size, or an option of the network.

    Attributes
    ----------
    name
        Of the setting.
    values
        Those to try, or the two ends of a range.
    is_range
        Whether values are drawn from between two: whole numbers where both ends are, evenly in the logarithm where
        both are positive.
    """

    name: str
    values: tuple[Any, ...]
    is_range: bool = False

    def __post_init__(self) -> None:
        if not self.values:
            raise expected(f"the axis {self.name}", "one value or more", "none")
        if self.is_range:
            low, high = self.values
            numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in self.values)
            if not numbers or not low < high or not math.isfinite(high - low):
                raise expected(f"the range of {self.name}", "LOW..HIGH, two numbers in order", f"{low}..{high}")

    def draw(self, generator: random.Random) -> Any:
        """Return a value at random."""
        if not self.is_range:
            return generator.choice(self.values)
        low, high = self.values
        u = generator.random()
        whole = isinstance(low, int) and isinstance(high, int)
        if whole and low > 0:
            return min(high, int(low * ((high + 1) / low) ** u))
        if whole:
            return generator.randint(low, high)
        found = low * (high / low) ** u if low > 0 else low + (high - low) * u
        return float(f"{found:.3g}")  # digits beyond would say nothing, and make long names


def grid_points(axes: Sequence[Axis]) -> list[Point]:
    """Return every combination of the values, the last axis fastest."""
    for axis in axes:
        if axis.is_range:
            raise UserError(f"{axis.name} has a range, of which a grid has no points: list values, or give --random N")
    return [dict(zip([axis.name for axis in axes], case, strict=True)) for case in product(*(a.values for a in axes))]


def random_points(axes: Sequence[Axis], count: int, seed: int = 0) -> list[Point]:
    """Return points drawn at random, all different. The first ones are the same however many are drawn."""
    points: list[Point] = []
    for number in range(100 * positive_int("the number of random points", count)):
        generator = random.Random(f"{seed}/{number}")
        point = {axis.name: axis.draw(generator) for axis in axes}
        if point not in points:
            points.append(point)
        if len(points) == count:
            break
    return points


def search_plan(common: Mapping[str, Any], points: Sequence[Point], folder: Path) -> list[RunSpec]:
    """Return a run for every point, checked: each network is built once, before the first is trained.

    Parameters
    ----------
    common
        Settings of a run of kind ``fit`` that all points share; an axis wins over them.
    points
        What differs.
    folder
        For data that is drawn.
    """
    if not 1 <= len(points) <= _LARGEST:
        raise expected("a search", f"of 1 to {_LARGEST:,} points", f"{len(points):,}")
    plan = []
    for point in points:
        settings = {**common, "options": dict(common.get("options", {}))}
        for name, value in point.items():
            if name in SIZES or name in Options.names():
                settings[name] = value
            else:
                settings["options"][name] = value
        if not settings["options"]:
            del settings["options"]
        settings.setdefault("validate_every", max(1, settings["iterations"] // _CHECKS))
        _check(settings, folder)
        plan.append(RunSpec("fit", settings))
    return plan


def _check(settings: Mapping[str, Any], folder: Path) -> None:
    given = dict(settings)
    task = make_task(given, folder)
    _, own = make_networks({**given, "seeds": given["seeds"][:1]}, task)
    own.pop("readout", None)
    own.pop("layout", None)
    Options.make(own)


@dataclass(frozen=True)
class Choice:
    """A point with what validation says of it.

    Attributes
    ----------
    point
        Its values.
    losses
        The lowest loss on validation of every seed; infinite where a training failed.
    outcome
        Of its run.
    """

    point: Point
    losses: tuple[float, ...]
    outcome: Outcome

    @property
    def loss(self) -> float:
        """Mean over the seeds, by which points are compared."""
        return fmean(self.losses) if all(map(math.isfinite, self.losses)) else math.inf

    @property
    def deviation(self) -> float | None:
        """Standard deviation over the seeds; None of one seed."""
        return stdev(self.losses) if len(self.losses) > 1 and math.isfinite(self.loss) else None


def best_point(points: Sequence[Point], outcomes: Sequence[Outcome], plan: Sequence[RunSpec]) -> list[Choice]:
    """Return the points that were run, the best on validation first; of equal ones the earlier of the plan."""
    there = {outcome.spec.key: outcome for outcome in outcomes}
    ranked = [
        Choice(point, _losses(there[spec.key]), there[spec.key])
        for point, spec in zip(points, plan, strict=True)
        if spec.key in there
    ]
    return sorted(ranked, key=lambda one: one.loss)


def edges(axes: Sequence[Axis], point: Point) -> list[str]:
    """Return the axes of which a point has the least or the largest number: the best may lie beyond."""
    found = []
    for axis in axes:
        numbers = [value for value in axis.values if isinstance(value, int | float) and not isinstance(value, bool)]
        several = not axis.is_range and len(numbers) == len(axis.values) > 1
        if several and point[axis.name] in (min(numbers), max(numbers)):
            found.append(axis.name)
    return found


def _losses(outcome: Outcome) -> tuple[float, ...]:
    """Return the lowest loss on validation of every seed; one that diverged, and so was not tested, is infinite."""
    found = []
    for curve, tested in zip(outcome.summary["curve_loss"], outcome.summary["test_loss"], strict=True):
        known = [loss for loss in curve if loss is not None]
        found.append(min(known, default=math.inf) if tested is not None else math.inf)
    return tuple(found)
