"""Capacity: the largest difficulty of a task at which a network still learns it."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from mnemoscope import runs
from mnemoscope.core.errors import expected, positive_int
from mnemoscope.tasks import Task
from mnemoscope.training.capacities.inputs import (
    Builder,
    Network,
    checked_seeds,
    checked_training,
    maker,
    share,
    strategy,
)
from mnemoscope.training.capacities.result import Capacity, rates
from mnemoscope.training.configuration import describe_task, task_of
from mnemoscope.training.populations import fit_population

__all__ = ["capacity"]

_UNRECORDED = ("progress", "callbacks", "workers")
"""Settings of trainings that no number depends on."""


def capacity(
    network: Network,
    task: str | Task,
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
    iterations: int = 2000,
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
        A name or a task, whose difficulty axis is searched.
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
        Of one training, at most.
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
        Settings of `mnemoscope.training.fit`: ``lr``, ``batch_size``, ``optimizer``, ..

    Returns
    -------
    Capacity
        ``.limit``, ``.curve`` and the scores behind it.
    """
    chosen = task_of(task)
    if minutes is not None and (isinstance(minutes, bool) or not minutes > 0):
        raise expected("minutes", "a number above 0", minutes)
    settings = _Settings(
        chosen,
        checked_seeds(seeds),
        share("criterion", criterion),
        share("quorum", quorum),
        positive_int("iterations", iterations),
        None if budget is None else positive_int("budget", budget),
        minutes,
        warm_start,
        None if folder is None else Path(folder),
        checked_training(training, also=("loss", "callbacks", "progress")),
    )
    builder = maker(
        network,
        chosen,
        hidden_size=hidden_size,
        num_layers=num_layers,
        parameters=parameters,
        count=count,
        options=dict(options or {}),
    )
    following = strategy(chosen, start=start, largest=largest, grid=grid, resolution=resolution)
    asked = {"start": start, "largest": largest, "grid": None if grid is None else list(grid), "resolution": resolution}
    with _opened(settings, {**builder.spec, **asked}) as record:
        search = _Search(settings, builder, seconds_before=_seconds_of(record))
        reason, unfinished = "", None
        while (level := following(search.passed)) is not None:
            reason = search.out_of_budget(level)
            if reason:
                break
            try:
                attempt = search.attempt(level)
            except runs.OutOfBudget:
                reason, unfinished = search.out_of_time, level
                break
            if record is not None and level not in search.seconds_before:
                record.append({"step": len(search.scores), **attempt}, durable=True)
            if on_level is not None:
                on_level(attempt)
        found = search.result(reason, unfinished)
        if record is not None and not record.finished:
            _close(record, found)
    return found


def _close(record: runs.Recorder, found: Capacity) -> None:
    if found.complete:
        record.finish({"limit": found.limit, "seed_limits": list(found.seed_limits)})
    else:
        record.pause(found.reason)


@dataclass(frozen=True)
class _Settings:
    task: Task
    seeds: tuple[int, ...]
    criterion: float
    quorum: float
    iterations: int
    budget: int | None
    minutes: float | None
    warm_start: bool
    folder: Path | None
    training: Mapping[str, Any]


def _opened(settings: _Settings, asked: Mapping[str, Any]) -> AbstractContextManager[runs.Recorder | None]:
    """Open the record of a search: everything that its numbers depend on, but how much of it is to be done now."""
    if settings.folder is None:
        return nullcontext()
    spec = {
        **asked,
        "task": describe_task(settings.task),
        "seeds": list(settings.seeds),
        "criterion": settings.criterion,
        "quorum": settings.quorum,
        "iterations": settings.iterations,
        "warm_start": settings.warm_start,
        "training": {name: value for name, value in settings.training.items() if name not in _UNRECORDED},
    }
    return runs.open(spec, folder=settings.folder, kind="capacity")


def _seconds_of(record: runs.Recorder | None) -> dict[int, float]:
    """Return how long each level took of which the record has a line."""
    return {} if record is None else {int(line["level"]): float(line["seconds"]) for line in record.kept}


@dataclass
class _Search:
    """What was tried so far. It depends on the trainings alone, so that it can be made again from their records."""

    settings: _Settings
    builder: Builder
    seconds_before: Mapping[int, float]
    scores: dict[int, list[float]] = field(default_factory=dict)
    steps: dict[int, list[int]] = field(default_factory=dict)
    passed: dict[int, bool] = field(default_factory=dict)
    models: dict[int, list[Any]] = field(default_factory=dict)
    seconds: float = 0.0
    parameters: int = 0

    def out_of_budget(self, level: int) -> str:
        """Say what is used up; nothing when a level can be tried."""
        spent = sum(map(sum, self.steps.values()))
        if self.settings.budget is not None and spent >= self.settings.budget:
            return f"the budget of {self.settings.budget:,} iterations is used up"
        return self.out_of_time if level not in self.seconds_before and self._left() <= 0 else ""

    @property
    def out_of_time(self) -> str:
        """What to say when the time is up."""
        return f"the {self.settings.minutes:.3g} minutes are used up"

    def _left(self) -> float:
        """Return the minutes that are left."""
        return math.inf if self.settings.minutes is None else self.settings.minutes - self.seconds / 60

    def attempt(self, level: int) -> dict[str, Any]:
        """Train all seeds at one level."""
        settings, begin = self.settings, time.monotonic()
        task = settings.task.harder(level)
        layers, source = self._layers(level)
        left = None if level in self.seconds_before or settings.minutes is None else self._left()
        trained = fit_population(
            layers,
            task,
            iterations=settings.iterations,
            seeds=list(settings.seeds),
            target=_ambition(settings.criterion),
            folder=None if settings.folder is None else settings.folder / f"level-{level}",
            minutes=left,
            **settings.training,
        )
        self.scores[level] = [run.score for run in trained]
        self.steps[level] = [run.ending.step for run in trained]
        self.models = {level: [run.model for run in trained], **self.models} if settings.warm_start else {}
        self.parameters = sum(p.numel() for p in trained[0].model.parameters())
        mastered = sum(score >= settings.criterion for score in self.scores[level])
        self.passed[level] = mastered >= settings.quorum * len(settings.seeds)
        # A level that the record had already is charged the time that it took then.
        seconds = self.seconds_before.get(level, time.monotonic() - begin)
        self.seconds += seconds
        return {
            "level": level,
            "seconds": seconds,
            "scores": [None if math.isnan(score) else score for score in self.scores[level]],
            "mastered": self.passed[level],
            "successes": mastered,
            "steps": self.steps[level],
            "started_from": source,
        }

    def _layers(self, level: int) -> tuple[list[nn.Module], int | None]:
        """Return one network per seed, and the level whose weights they start from."""
        easier = [done for done, passed in self.passed.items() if passed and done < level]
        if not self.settings.warm_start or not easier:
            return [self.builder.build(seed) for seed in self.settings.seeds], None
        source = max(easier)
        return [copy.deepcopy(model.layer) for model in self.models[source]], source

    def _assumptions(self) -> tuple[str, ...]:
        settings = self.settings
        seeds = f"at least {settings.quorum:.0%} of {len(settings.seeds)} seeds reach a score of {settings.criterion:g}"
        return (
            f"trained with {settings.iterations:,} iterations at most: more could raise the limit",
            f"a level counts as mastered when {seeds}",
            *(["levels start from the weights of an easier one"] if settings.warm_start else []),
        )

    def result(self, reason: str, unfinished: int | None) -> Capacity:
        """Return what was found."""
        settings, levels = self.settings, sorted(self.scores)
        scores = np.array([self.scores[level] for level in levels], dtype=float).reshape(-1, len(settings.seeds))
        mastered = np.nan_to_num(scores, nan=-math.inf) >= settings.criterion
        curve, lower, upper = rates(mastered)
        below = min((level for level in levels if not self.passed[level]), default=None)
        limit = max(
            (level for level in levels if self.passed[level] and (below is None or level < below)), default=None
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
            unfinished=unfinished,
            levels=np.array(levels, dtype=int),
            curve=curve,
            lower=lower,
            upper=upper,
            scores=scores,
            steps=np.array([self.steps[level] for level in levels], dtype=int).reshape(-1, len(settings.seeds)),
            seeds=settings.seeds,
            seed_limits=tuple(own),
            criterion=settings.criterion,
            quorum=settings.quorum,
            warm_start=settings.warm_start,
            complete=not reason,
            reason=reason,
            seconds=self.seconds,
            parameters=self.parameters,
        )


def _ambition(criterion: float) -> float:
    """Return the score on validation that ends a training: halfway from the criterion to a perfect one.

    One that is stopped at the criterion itself may fall below it on other sequences.
    """
    return (1 + criterion) / 2
