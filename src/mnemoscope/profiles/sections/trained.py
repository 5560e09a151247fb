"""Trained capacity: the largest difficulty of five tasks that a network masters within the minutes given."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mnemoscope.core.errors import UserError
from mnemoscope.profiles.drawing import SectionView
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.section import Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.profiles.trained_section import minutes_of
from mnemoscope.report import Curves, Figure, Series

__all__ = ["TASKS", "Trained", "TrainedTask", "iterations"]

_CITED = ("ziv2020",)
_SEEDS = 3
_PER_MINUTE, _LEAST, _MOST = 500, 500, 5000
"""Steps of one training: so many for each minute that is given, within bounds."""
_TRIED = (2, 12)
"""Steps of two short trainings, whose difference in time is that of the steps between."""
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
        title=f"trained limit of {task.name}",
        unit=task.level,
        better="higher",
        least=0.0,
        how="Median over seeds of the hardest level that each mastered; at least that where the time ended the search.",
        meaning=meanings.get(task.name, ""),
        compared=True,
    )


@section("trained", title="What it learns to remember", order=90)
class Trained(ProfileSection):
    """The trained capacity on copying, start-end similarity, parity, denoise and adding."""

    once = True
    threads = True
    trains = True
    together = True
    references = ("ziv2020", "kerg2020", "lizaire2026")
    text = (
        "Networks of several seeds are trained at one difficulty after the other. A level counts as mastered when at "
        "least half of them reach the criterion on fresh sequences; levels double until that fails, then the gap is "
        "bisected. The minutes given are divided among the tasks, and networks that are compared take turns level by "
        "level: every training of every network has the same number of iterations, and a round that not all could "
        "finish counts for none. A search that the time ended is "
        "called unfinished, and its limit is at least what it says."
    )
    quantities = tuple(map(_limit, TASKS))
    version = 2

    def kept_as(self, context: Context) -> str:
        """Return a name for every number of minutes and of networks that share them."""
        return f"{super().kept_as(context)}/{context.train_minutes:g}/{context.rivals}"

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
        """Return the network's share of the minutes that training was given."""
        return 60 * minutes_of(self.name, context) / context.rivals

    def cited(self, rows: Sequence[Row]) -> tuple[str, ...]:
        """Return the works on trained capacity, and those that the tasks come from."""
        from mnemoscope import tasks

        own = [key for task in TASKS for key in tasks.create(task.name, **task.settings).references]
        return tuple(dict.fromkeys((*self.references, *own)))

    def run(self, network: Any, context: Context) -> Measurement:
        """Search the limit of every task, within its share of the minutes."""
        (found,) = self.run_together([network], [context])
        if isinstance(found, Exception):
            raise found
        return found

    def check_together(self, networks: Sequence[Any], contexts: Sequence[Context]) -> None:
        """Raise where one level of the first task takes longer than all the minutes that there are for it."""
        minutes = minutes_of(self.name, contexts[0])
        steps = iterations(minutes, len(contexts))
        needed = sum(map(_seconds_of_a_step, contexts)) * steps / 60
        if needed > minutes:
            whose = "this network takes" if len(contexts) == 1 else f"these {len(contexts)} networks take"
            raise UserError(
                f"training needs more minutes, got {contexts[0].train_minutes:g}, {minutes:.2g} of them for this: one "
                f"level of {TASKS[0].name} with {whose} about {needed:.2g}, and there are {len(TASKS)} tasks"
            )

    def run_together(self, networks: Sequence[Any], contexts: Sequence[Context]) -> list[Measurement | Exception]:
        """Search the limits of all networks, task by task; one that fails leaves the others their turns."""
        given = contexts[0].train_minutes or 0.0
        minutes = minutes_of(self.name, contexts[0])
        steps = iterations(minutes, len(contexts))
        found: list[dict[str, Any]] = [{} for _ in contexts]
        failed: dict[int, Exception] = {}
        spent = 0.0
        for i, task in enumerate(TASKS):
            left = max((minutes - spent / 60) / (len(TASKS) - i), 0.01)
            searches = {}
            for place, context in enumerate(contexts):
                if place not in failed:
                    twins = sum(other.folder == context.folder for other in contexts[:place])
                    searches[place] = _search(task, context, steps, twins)
            when = f"task {i + 1} of {len(TASKS)}, at most {minutes - spent / 60:.0f} min left"
            for place, result in _take_turns(searches, left, contexts[0].say, when).items():
                if isinstance(result, Exception):
                    failed[place] = result
                else:
                    found[place][task.key] = result
            spent += sum(search.seconds for search in searches.values())
        return [failed.get(place) or _measurement(each, steps, given) for place, each in enumerate(found)]

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
        drawn = [limit, *(_figure(task, view) for task in TASKS)]
        return [dataclasses.replace(each, command=typed) for each in drawn]


def iterations(minutes: float, networks: int = 1) -> int:
    """Return how many steps each training has, of the minutes that all trainings of so many networks have.

    It depends on nothing else, so that the same command trains alike on every machine.

    Examples
    --------
    >>> iterations(10), iterations(10, networks=4), iterations(0.5)
    (5000, 1250, 500)
    """
    return max(_LEAST, min(_MOST, round(_PER_MINUTE * minutes / networks)))


def _seconds_of_a_step(context: Context) -> float:
    """Return about how long a step takes at the first level of the first task, by a few of them."""
    from mnemoscope import tasks
    from mnemoscope.training import fit_population

    chosen = tasks.create(TASKS[0].name, **TASKS[0].settings).harder(TASKS[0].start)
    make = context.make
    assert make is not None
    took = []
    for steps in _TRIED:
        layers = [make(context.seed + k, chosen.input_size) for k in range(_SEEDS)]
        begin = time.perf_counter()
        fit_population(layers, chosen, iterations=steps, progress=False, **{**_TRAINING, "test_size": 1})
        took.append(time.perf_counter() - begin)
    return max(0.0, (took[1] - took[0]) / (_TRIED[1] - _TRIED[0]))


def _search(task: TrainedTask, context: Context, steps: int, twins: int) -> Any:
    """Return the search of a network on a task; one that was named twice has a record for each of the `twins`."""
    from mnemoscope import tasks
    from mnemoscope.training import Search
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
    return Search(
        Builder(facts.name, lambda seed: make(seed, chosen.input_size), {"network": network}),
        chosen,
        criterion=task.criterion,
        seeds=[context.seed + k for k in range(_SEEDS)],
        start=task.start,
        iterations=steps,
        **_TRAINING,
        folder=None
        if context.folder is None
        else context.folder / f"{task.name}-{steps}{f'-{twins}' if twins else ''}",
        progress=False,
    )


def _take_turns(searches: Mapping[int, Any], minutes: float, say: Callable[[str], None], after: str) -> dict[int, Any]:
    """Return what each search found, or what its network raised; `say` hears of every level, and `after` it."""
    from mnemoscope.training import take_turns

    failed: dict[int, Exception] = {}
    places = {id(search): place for place, search in searches.items()}

    def note(search: Any, error: Exception) -> None:
        failed[places[id(search)]] = error

    def tell(search: Any, level: Mapping[str, Any]) -> None:
        task, word = search.settings.task, "mastered" if level["mastered"] else "not mastered"
        say(f"{search.builder.label} on {task.name}, {task.difficulty} {level['level']}: {word}; {after}")

    found = take_turns(list(searches.values()), minutes=minutes, equal=True, on_level=tell, on_error=note)
    return {**dict(zip(searches, found, strict=True)), **failed}


def _measurement(found: Mapping[str, Any], steps: int, minutes: float) -> Measurement:
    data: dict[str, Any] = {"minutes": minutes, "iterations": steps}
    for task in TASKS:
        result = found[task.key]
        data[task.key] = {
            "levels": result.levels.tolist(),
            "rates": result.curve.tolist(),
            "lower": result.lower.tolist(),
            "upper": result.upper.tolist(),
            "limits": list(result.seed_limits),
            "complete": result.complete,
            "steps": result.steps.tolist(),
        }
    rate = f"batches of {_TRAINING['batch_size']}, rate {_TRAINING['lr']:g}"
    said = (
        f"Trained with {_SEEDS} seeds, every training for at most {steps:,} iterations of RMSprop, {rate}.",
        "Bands are Wilson's 95% intervals of the success rate; with three seeds they are wide.",
    )
    return Measurement(scalars={task.key: _scalar(found[task.key]) for task in TASKS}, data=data, notes=said)


def _scalar(result: Any) -> Scalar:
    """Return the median of the seeds' limits; what was mastered so far where the search is unfinished."""
    if not result.complete:
        if result.limit is None:
            return Scalar(
                value=None, note="unfinished" if result.below is None else f"below {result.below}, unfinished"
            )
        return Scalar(value=float(result.limit), at_least="unfinished")
    limits = sorted(limit or 0 for limit in result.seed_limits)
    middle = float(limits[len(limits) // 2])
    if not middle:
        return Scalar(value=None, note=f"below {min(result.levels)}")
    spread = (limits[-1] - limits[0]) / 2 / math.sqrt(len(limits)) if len(limits) > 1 else None
    return Scalar(value=middle, stderr=spread)


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
