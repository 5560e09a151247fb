"""Capacity: the largest difficulty of a task at which a network still learns it."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from mnemoscope import runs
from mnemoscope.core.errors import expected, positive_int
from mnemoscope.runs.folders import folder_name
from mnemoscope.tasks import Problem
from mnemoscope.tasks.control import Environment
from mnemoscope.training.capacities.inputs import (
    Network,
    checked_seeds,
    checked_training,
    maker,
    share,
    strategy,
)
from mnemoscope.training.capacities.result import Capacity, rates
from mnemoscope.training.configuration import describe_task, problem_of
from mnemoscope.training.control.learning import ppo_population
from mnemoscope.training.populations import fit_population

__all__ = ["Search", "capacity", "take_turns"]

_ITERATIONS = {False: 2000, True: 200}
"""Of a training at most, on a task and in an environment, whose iterations are updates of many steps."""
_UNRECORDED = ("progress", "callbacks", "workers")
"""Settings of trainings that no number depends on."""


def capacity(
    network: Network,
    task: str | Problem,
    *,
    hidden_size: int | None = None,
    num_layers: int = 1,
    parameters: int | None = None,
    count: str = "recurrent",
    options: Mapping[str, Any] | None = None,
    criterion: float = 0.99,
    quorum: float = 0.5,
    seeds: int | Sequence[int] = 3,
    start: int | None = None,
    largest: int | None = None,
    grid: Sequence[int] | None = None,
    resolution: float = 0.1,
    iterations: int | None = None,
    budget: int | None = None,
    minutes: float | None = None,
    warm_start: bool = False,
    folder: str | Path | None = None,
    on_level: Callable[[Mapping[str, Any]], None] | None = None,
    **training: Any,
) -> Capacity:
    """Find the largest difficulty of a task that a network still masters.

    At each level one network per seed is trained from scratch, until its score on validation lies halfway between the
    criterion and 1 or its iterations are used up, and is then tested on fresh sequences. Levels double from `start` as
    long as they are mastered; then the gap is bisected. With a `grid` its levels are tried in order, up to two failures
    in a row.

    Parameters
    ----------
    network
        A registry name, a class or function of ``input_size`` and ``hidden_size``, or a layer, which is copied, whose
        weights are drawn anew for each seed (``reset_parameters``); or a `Builder`, which makes one from a seed.
    task
        A task, an environment, or the name of one, whose difficulty axis is searched.
    hidden_size, num_layers
        Of a network that is built; 64 units in one layer unless said otherwise.
    parameters
        Instead of a hidden size: a budget, counted as `count` says.
    count
        What of the network `parameters` counts, one of `mnemoscope.nn.parameters.COUNTS`: ``"recurrent"``, ``"all"``
        (with an affine readout, the largest within the budget) or ``"published"``.
    options
        The network's own options.
    criterion
        The score at which a level is mastered: share of right answers, or 1 - MSE / baseline.
    quorum
        The share of seeds that must master a level.
    seeds
        How many, or which.
    start, largest
        The first level (by default an eighth of the task's own), and the last that is tried.
    grid
        Levels to try in ascending order, instead of the search.
    resolution
        How well the limit is to be known, as a share of it.
    iterations
        Of one training, at most; by default 2000, in an environment 200.
    budget
        Iterations of all trainings together, at most.
    minutes
        Of training in all; a level that is under way then is left unfinished, which the result says.
    warm_start
        Start a level from the weights that mastered the hardest easier one, instead of from scratch.
    folder
        Keeps a record of every level; the same call goes on where it was.
    on_level
        Is told of every level when it is done.
    training
        Settings of `mnemoscope.training.fit`, in an environment of `mnemoscope.training.ppo`: ``lr``, ``batch_size``,
        ``optimizer``, ..

    Returns
    -------
    Capacity
        ``.limit``, ``.curve`` and the scores behind it.
    """
    chosen = problem_of(task)
    builder = maker(
        network,
        chosen,
        hidden_size=hidden_size,
        num_layers=num_layers,
        parameters=parameters,
        count=count,
        options=dict(options or {}),
    )
    search = Search(
        builder,
        chosen,
        criterion=criterion,
        quorum=quorum,
        seeds=seeds,
        start=start,
        largest=largest,
        grid=grid,
        resolution=resolution,
        iterations=iterations,
        budget=budget,
        warm_start=warm_start,
        folder=folder,
        **training,
    )
    told = (lambda _, attempt: on_level(attempt)) if on_level is not None else None
    return take_turns([search], minutes=minutes, on_level=told)[0]


def take_turns(
    searches: Sequence[Search],
    *,
    minutes: float | None = None,
    equal: bool = False,
    on_level: Callable[[Search, Mapping[str, Any]], None] | None = None,
    on_error: Callable[[Search, Exception], None] | None = None,
) -> list[Capacity]:
    """Run searches side by side: in every round each trains at its next level, until all are over or the time is up.

    So none is ahead of another by more than a level, however slow the others are, and each training has the iterations
    that its search gives it.

    Parameters
    ----------
    searches
        None of them begun.
    minutes
        Of training, of all of them together; a level that is under way then is left unfinished.
    equal
        Whether a round that the time ended counts for none of those that are unfinished: all then had as many levels.
    on_level
        Is told of every level when it is done.
    on_error
        Is told of what a network raises, whose search is then over while the others go on; None: it is raised.
    """
    if minutes is not None and (isinstance(minutes, bool) or not minutes > 0):
        raise expected("minutes", "a number above 0", minutes)
    with ExitStack() as records:
        for search in searches:
            records.enter_context(search.opened())
        while any(not search.over for search in searches):
            for search in searches:
                if search.over:
                    continue
                left = None if minutes is None else minutes - sum(each.seconds for each in searches) / 60
                try:
                    attempt = search.turn(left, "" if minutes is None else f"the {minutes:.3g} minutes are used up")
                except Exception as error:
                    if on_error is None:
                        raise
                    search.over, attempt = True, None
                    on_error(search, error)
                if attempt is not None and on_level is not None:
                    on_level(search, attempt)
        if equal:
            _level_rounds(searches)
        return [search.result() for search in searches]


def _level_rounds(searches: Sequence[Search]) -> None:
    """Take the last level from unfinished searches that had a turn more than others; its record stays."""
    unfinished = [search for search in searches if search.is_cut_short]
    fewest = min((search.rounds for search in unfinished), default=0)
    for search in unfinished:
        if search.rounds > fewest:
            search.leave_last_level()


@dataclass(frozen=True)
class _Settings:
    task: Any
    seeds: tuple[int, ...]
    criterion: float
    quorum: float
    iterations: int
    budget: int | None
    warm_start: bool
    folder: Path | None
    training: Mapping[str, Any]


class Search:
    """Search for the limit of one network, level by level, as `capacity` explains it with all its parameters.

    Instead of a `folder`, `root` may be a folder of runs, in which the search is found by its content.

    What was tried depends on the trainings alone, so that it can be made again from their records.

    Attributes
    ----------
    builder
        What builds the network of each seed.
    over
        Whether it has come to its end, or to that of its budget.
    seconds
        Of training so far.
    """

    def __init__(
        self,
        network: Network,
        task: Any,
        *,
        criterion: float = 0.99,
        quorum: float = 0.5,
        seeds: int | Sequence[int] = 3,
        start: int | None = None,
        largest: int | None = None,
        grid: Sequence[int] | None = None,
        resolution: float = 0.1,
        iterations: int | None = None,
        budget: int | None = None,
        warm_start: bool = False,
        folder: str | Path | None = None,
        root: str | Path | None = None,
        **training: Any,
    ) -> None:
        self.settings = _Settings(
            task,
            checked_seeds(seeds),
            share("criterion", criterion),
            share("quorum", quorum),
            positive_int(
                "iterations", _ITERATIONS[isinstance(task, Environment)] if iterations is None else iterations
            ),
            None if budget is None else positive_int("budget", budget),
            warm_start,
            None if folder is None else Path(folder),
            checked_training(training, task, also=("loss", "callbacks", "progress")),
        )
        self.builder = maker(network, task)
        self.over = False
        self.seconds = 0.0
        self._following = strategy(task, start=start, largest=largest, grid=grid, resolution=resolution)
        levels = None if grid is None else list(grid)
        self._asked = {"start": start, "largest": largest, "grid": levels, "resolution": resolution}
        if folder is None and root is not None:
            found = Path(root) / folder_name(self._spec, "capacity")
            self.settings = replace(self.settings, folder=found)
        self._record: runs.Recorder | None = None
        self._seconds_before: Mapping[int, float] = {}
        self._scores: dict[int, list[float]] = {}
        self._steps: dict[int, list[int]] = {}
        self._passed: dict[int, bool] = {}
        self._models: dict[int, list[Any]] = {}
        self._parameters = 0
        self._reason = ""
        self._unfinished: int | None = None

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Keep the record of the search open; at the end it says whether the search was finished."""
        folder = self.settings.folder
        record = nullcontext() if folder is None else runs.open(self._spec, folder=folder, kind="capacity")
        with record as self._record:
            self._seconds_before = _seconds_of(self._record)
            yield
            if self._record is not None and self.over and not self._record.finished:
                _close(self._record, self.result())

    @property
    def _spec(self) -> dict[str, Any]:
        """Everything that its numbers depend on, but how much of it is to be done now."""
        settings = self.settings
        return {
            **self.builder.spec,
            **self._asked,
            "task": describe_task(settings.task),
            "seeds": list(settings.seeds),
            "criterion": settings.criterion,
            "quorum": settings.quorum,
            "iterations": settings.iterations,
            "warm_start": settings.warm_start,
            "training": {name: value for name, value in settings.training.items() if name not in _UNRECORDED},
        }

    @property
    def rounds(self) -> int:
        """How many levels were trained."""
        return len(self._scores)

    @property
    def is_cut_short(self) -> bool:
        """Whether the time or the budget ended it."""
        return bool(self._reason)

    def leave_last_level(self) -> None:
        """Call the last level that was trained unfinished."""
        self._unfinished = list(self._scores)[-1]
        for known in (self._scores, self._steps, self._passed):
            known.pop(self._unfinished)

    def turn(self, minutes: float | None = None, out_of_time: str = "") -> dict[str, Any] | None:
        """Train all seeds at the next level, within so many minutes; None when there was none, or no time for it."""
        level = self._following(self._passed)
        if level is None or self._is_spent(level, minutes, out_of_time):
            self.over = True
            return None
        begin = time.monotonic()
        try:
            attempt = self._attempt(level, minutes)
        except runs.OutOfBudget:
            self.seconds += time.monotonic() - begin
            self.over, self._reason, self._unfinished = True, out_of_time, level
            return None
        if self._record is not None and level not in self._seconds_before:
            self._record.append({"step": len(self._scores), **attempt}, durable=True)
        return attempt

    def _is_spent(self, level: int, minutes: float | None, out_of_time: str) -> bool:
        """Note what is used up before a level, if anything is."""
        spent, budget = sum(map(sum, self._steps.values())), self.settings.budget
        if budget is not None and spent >= budget:
            self._reason = f"the budget of {budget:,} iterations is used up"
        elif level not in self._seconds_before and minutes is not None and minutes <= 0:
            self._reason = out_of_time
        return bool(self._reason)

    def _attempt(self, level: int, minutes: float | None) -> dict[str, Any]:
        """Train all seeds at one level."""
        settings, begin = self.settings, time.monotonic()
        task = settings.task.harder(level)
        layers, source = self._layers(level)
        train = ppo_population if isinstance(task, Environment) else fit_population
        trained = train(
            layers,
            task,
            iterations=settings.iterations,
            seeds=list(settings.seeds),
            target=_ambition(settings.criterion),
            folder=None if settings.folder is None else settings.folder / f"level-{level}",
            minutes=None if level in self._seconds_before else minutes,
            **settings.training,
        )
        self._scores[level] = [run.score for run in trained]
        self._steps[level] = [run.ending.step for run in trained]
        self._models = {level: [run.model for run in trained], **self._models} if settings.warm_start else {}
        self._parameters = sum(p.numel() for p in trained[0].model.parameters())
        mastered = sum(score >= settings.criterion for score in self._scores[level])
        self._passed[level] = mastered >= settings.quorum * len(settings.seeds)
        # A level that the record had already is charged the time that it took then.
        seconds = self._seconds_before.get(level, time.monotonic() - begin)
        self.seconds += seconds
        return {
            "level": level,
            "seconds": seconds,
            "scores": [None if math.isnan(score) else score for score in self._scores[level]],
            "mastered": self._passed[level],
            "successes": mastered,
            "steps": self._steps[level],
            "started_from": source,
        }

    def _layers(self, level: int) -> tuple[list[nn.Module], int | None]:
        """Return one network per seed, and the level whose weights they start from."""
        easier = [done for done, passed in self._passed.items() if passed and done < level]
        if not self.settings.warm_start or not easier:
            return [self.builder.build(seed) for seed in self.settings.seeds], None
        source = max(easier)
        return [copy.deepcopy(model.layer) for model in self._models[source]], source

    def _assumptions(self) -> tuple[str, ...]:
        settings = self.settings
        seeds = f"at least {settings.quorum:.0%} of {len(settings.seeds)} seeds reach a score of {settings.criterion:g}"
        return (
            f"trained with {settings.iterations:,} iterations at most: more could raise the limit",
            f"a level counts as mastered when {seeds}",
            *(["levels start from the weights of an easier one"] if settings.warm_start else []),
        )

    def result(self) -> Capacity:
        """Return what was found so far."""
        settings, levels = self.settings, sorted(self._scores)
        scores = np.array([self._scores[level] for level in levels], dtype=float).reshape(-1, len(settings.seeds))
        mastered = np.nan_to_num(scores, nan=-math.inf) >= settings.criterion
        curve, lower, upper = rates(mastered)
        below = min((level for level in levels if not self._passed[level]), default=None)
        limit = max(
            (level for level in levels if self._passed[level] and (below is None or level < below)), default=None
        )
        own = [max((lv for lv, good in zip(levels, row, strict=True) if good), default=None) for row in mastered.T]
        return Capacity(
            status="estimate",
            digits=None,
            assumptions=self._assumptions(),
            cost="O(levels seeds iterations T) time",
            network=self.builder.label,
            task=settings.task.name,
            axis=settings.task.difficulty,
            limit=limit,
            below=below,
            unfinished=self._unfinished,
            levels=np.array(levels, dtype=int),
            curve=curve,
            lower=lower,
            upper=upper,
            scores=scores,
            steps=np.array([self._steps[level] for level in levels], dtype=int).reshape(-1, len(settings.seeds)),
            seeds=settings.seeds,
            seed_limits=tuple(own),
            criterion=settings.criterion,
            quorum=settings.quorum,
            warm_start=settings.warm_start,
            complete=self.over and not self._reason,
            reason=self._reason,
            seconds=self.seconds,
            parameters=self._parameters,
        )


def _seconds_of(record: runs.Recorder | None) -> dict[int, float]:
    """Return how long each level took of which the record has a line."""
    return {} if record is None else {int(line["level"]): float(line["seconds"]) for line in record.kept}


def _close(record: runs.Recorder, found: Capacity) -> None:
    if found.complete:
        record.finish({"limit": found.limit, "seed_limits": list(found.seed_limits)})
    else:
        record.pause(found.reason)


def _ambition(criterion: float) -> float:
    """Return the score on validation that ends a training: halfway from the criterion to a perfect one.

    One that is stopped at the criterion itself may fall below it on other sequences.
    """
    return (1 + criterion) / 2
