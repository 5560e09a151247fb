"""Trained capacity: the largest difficulty of five tasks that a network masters within the minutes given."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mnemoscope.core.errors import UserError
from mnemoscope.profiles.drawing import SectionView
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.section import Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Curves, Figure, Series

__all__ = ["TASKS", "Trained", "TrainedTask"]

_CITED = ("ziv2020",)
_SEEDS = 3
_PER_MINUTE, _LEAST, _MOST = 500, 500, 5000
"""Steps of one training: so many for each minute that is given, within bounds."""
_TRAINING: dict[str, Any] = {"lr": 3e-3, "batch_size": 64}


class TrainedTask(NamedTuple):
    """A task of the part: its settings, the first level, the score that masters a level, and what the level is."""

    name: str
    settings: Mapping[str, Any]
    start: int
    criterion: float
    level: str

    @property
    def key(self) -> str:
        """Its name among the section's numbers."""
        return self.name.replace("-", "_")


TASKS = (
    TrainedTask("copying", {"symbols": 2, "alphabet": 8}, 5, 0.99, "steps of delay"),
    TrainedTask("start-end-similarity", {"symbols": 2, "alphabet": 4}, 8, 0.99, "steps"),
    TrainedTask("parity", {"dimensions": 1}, 4, 0.95, "steps"),
    TrainedTask("denoise", {}, 5, 0.99, "steps of delay"),
    TrainedTask("adding", {}, 10, 0.95, "steps"),
)
"""Small alphabets and few symbols: what can be learned within minutes."""


def _limit(task: TrainedTask) -> Quantity:
    meanings = {"copying": "the longest delay after which it repeats 2 symbols"}
    return Quantity(
        name=task.key,
        title=f"limit of {task.name}",
        unit=task.level,
        better="higher",
        least=0.0,
        how="Median over seeds of the hardest level that each mastered.",
        meaning=meanings.get(task.name, ""),
    )


@section("trained", title="What it learns to remember", order=90)
class Trained(ProfileSection):
    """The trained capacity on copying, start-end similarity, parity, denoise and adding."""

    once = True
    threads = True
    trains = True
    references = ("ziv2020", "kerg2020", "lizaire2026")
    text = (
        "Networks of several seeds are trained at one difficulty after the other. A level counts as mastered when at "
        "least half of them reach the criterion on fresh sequences; levels double until that fails, then the gap is "
        "bisected. The minutes given are divided among the tasks: a limit says what was learned within them, not what "
        "could be."
    )
    quantities = tuple(map(_limit, TASKS))

    def kept_as(self, context: Context) -> str:
        """Return a name for every number of minutes."""
        return f"{self.name}/{context.train_minutes:g}"

    def reason_against(self, network: Any, context: Context) -> str | None:
        """Say that training has to be asked for, and needs weights that can be drawn anew."""
        against = super().reason_against(network, context)
        if against is not None:
            return against
        if context.train_minutes is None:
            return "not asked for: --train"
        if context.make is None:
            return "the weights are somebody's own: give the class, so that networks can be trained from scratch"
        return None

    def seconds(self, network: Any, context: Context) -> float:
        """Return the minutes that training was given."""
        return 60 * (context.train_minutes or 0.0)

    def run(self, network: Any, context: Context) -> Measurement:
        """Search the limit of every task, within its share of the minutes."""
        begin, minutes = time.monotonic(), context.train_minutes or 0.0
        scalars: dict[str, Scalar] = {}
        found: dict[str, Any] = {"minutes": context.train_minutes}
        for i, task in enumerate(TASKS):
            left = minutes - (time.monotonic() - begin) / 60
            result = _capacity(task, context, _iterations(minutes), max(left / (len(TASKS) - i), 0.01))
            scalars[task.key] = _scalar(result, task)
            found[task.key] = {
                "levels": result.levels.tolist(),
                "rates": result.curve.tolist(),
                "lower": result.lower.tolist(),
                "upper": result.upper.tolist(),
                "limits": list(result.seed_limits),
                "complete": result.complete,
                "steps": result.steps.tolist(),
            }
        steps = f"{_iterations(minutes):,} steps of RMSprop, batches of {_TRAINING['batch_size']}"
        said = (
            f"Trained with {_SEEDS} seeds, at most {steps}, rate {_TRAINING['lr']:g}.",
            "Bands are Wilson's 95% intervals of the success rate; with three seeds they are wide.",
        )
        return Measurement(scalars=scalars, data=found, notes=said)

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the limits of copying, and the success rate of every task against its difficulty."""
        typed = "\n".join(
            f"mnemoscope profile {row.command} --train --minutes {view.data(row)['minutes']:g}"
            for row in view.subjects
            if row.command
        )
        limit = view.ranking(
            self.quantity("copying"), "trained-copying-limit", "The longest delay that is copied", references=_CITED
        )
        return [dataclasses.replace(each, command=typed) for each in (limit, *(_figure(task, view) for task in TASKS))]


def _iterations(minutes: float) -> int:
    """Return how many steps a training may take, of the minutes that all of them have."""
    return max(_LEAST, min(_MOST, round(_PER_MINUTE * minutes)))


def _capacity(task: TrainedTask, context: Context, iterations: int, minutes: float) -> Any:
    from mnemoscope import tasks
    from mnemoscope.training import capacity
    from mnemoscope.training.capacities.inputs import Builder

    chosen = tasks.create(task.name, **task.settings)
    make = context.make
    assert make is not None
    facts = context.facts
    network = {
        "name": facts.name,
        "options": dict(facts.options),
        "hidden_size": facts.hidden_size,
        "num_layers": facts.num_layers,
    }
    builder = Builder(facts.name, lambda seed: make(seed, chosen.input_size), {"network": network})
    return capacity(
        builder,
        chosen,
        criterion=task.criterion,
        seeds=[context.seed + k for k in range(_SEEDS)],
        start=task.start,
        iterations=iterations,
        minutes=minutes,
        **_TRAINING,
        folder=None if context.folder is None else context.folder / task.name,
        progress=False,
    )


def _scalar(result: Any, task: TrainedTask) -> Scalar:
    if not len(result.levels):
        raise UserError(f"the time was over before {task.name} began")
    limits = sorted(limit or 0 for limit in result.seed_limits)
    middle = float(limits[len(limits) // 2])
    note = "" if result.complete else f"the search on {task.name} was not finished: {result.reason}"
    if result.complete and not result.limit:
        note = f"no level of {task.name} was mastered"
    spread = (limits[-1] - limits[0]) / 2 / math.sqrt(len(limits)) if len(limits) > 1 else None
    return Scalar(value=middle, stderr=spread, note=note)


def _figure(task: TrainedTask, view: SectionView) -> Figure:
    found = [(row.key, view.data(row).get(task.key)) for row in view.rows]
    series = [
        Series(entry=key, x=each["levels"], y=each["rates"], lower=each["lower"], upper=each["upper"])
        for key, each in found
        if each and each["levels"]
    ]
    drawn = Curves(
        series=series,
        x_title=f"difficulty ({task.level})",
        y_title="share of seeds that master it",
        log_x=True,
        points=True,
    )
    title = f"{task.name.replace('-', ' ').capitalize()}: how often it is learned"
    how = f"A training masters a level when its score on fresh sequences reaches {task.criterion:g}."
    return view.figure(f"trained-{task.name}", title, drawn, how, references=_CITED)
