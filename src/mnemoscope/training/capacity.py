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
from mnemoscope.training.capacity_inputs import (
    Builder,
    Network,
    checked_seeds,
    checked_training,
    maker,
    share,
    strategy,
)
from mnemoscope.training.capacity_result import Capacity, rates
from mnemoscope.training.population import fit_population
from mnemoscope.training.spec import describe_task, task_of

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
        Of training in all; no level begins that would take longer, by the pace of those before it.
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
    plan = _Plan(
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
    with _opened(plan, {**builder.spec, **asked}) as record:
        search = _Search(plan, builder, seconds_before=_seconds_of(record))
        reason = ""
        while (level := following(search.passed)) is not None:
            reason = search.out_of_budget(level)
            if reason:
                break
            attempt = search.attempt(level)
            if record is not None and level not in search.seconds_before:
                record.append({"step": len(search.scores), **attempt})
                record.checkpoint(len(search.scores), {}, {})
            if on_level is not None:
                on_level(attempt)
        found = search.result(reason)
        if record is not None and found.complete and not record.finished:
            record.finish({"limit": found.limit, "seed_limits": found.seed_limits.tolist()})
    return found


@dataclass(frozen=True)
class _Plan:
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


def _opened(plan: _Plan, asked: Mapping[str, Any]) -> AbstractContextManager[runs.Run | None]:
    """Open the record of a search: everything that its numbers depend on, but how much of it is to be done now."""
    if plan.folder is None:
        return nullcontext()
    spec = {
        **asked,
        "task": describe_task(plan.task),
        "seeds": list(plan.seeds),
        "criterion": plan.criterion,
        "quorum": plan.quorum,
        "iterations": plan.iterations,
        "warm_start": plan.warm_start,
        "training": {name: value for name, value in plan.training.items() if name not in _UNRECORDED},
    }
    return runs.open(spec, folder=plan.folder, kind="capacity")


def _seconds_of(record: runs.Run | None) -> dict[int, float]:
    """Return how long each level took that the record has."""
    if record is None:
        return {}
    record.latest()
    return {int(line["level"]): float(line["seconds"]) for line in runs.load(record.folder).metrics}


@dataclass
class _Search:
    """What was tried so far. It depends on the trainings alone, so that it can be made again from their records."""

    plan: _Plan
    builder: Builder
    seconds_before: Mapping[int, float]
    scores: dict[int, list[float]] = field(default_factory=dict)
    steps: dict[int, list[int]] = field(default_factory=dict)
    passed: dict[int, bool] = field(default_factory=dict)
    models: dict[int, list[Any]] = field(default_factory=dict)
    took: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    parameters: int = 0

    def out_of_budget(self, level: int) -> str:
        """Say what is used up, or would be before a level is done; nothing when it can be tried."""
        spent = sum(map(sum, self.steps.values()))
        if self.plan.budget is not None and spent >= self.plan.budget:
            return f"the budget of {self.plan.budget:,} iterations is used up"
        if self.plan.minutes is None or level in self.seconds_before:
            return ""
        if self.scores and self.seconds + self._needed(level) > 60 * self.plan.minutes:
            return f"of the {self.plan.minutes:.3g} minutes too few are left for {self.plan.task.difficulty} {level}"
        return ""

    def _needed(self, level: int) -> float:
        """Return the seconds of a level whose trainings take all their iterations, by those that were tried.

        Time is taken as a + p (iterations x steps), through the levels with the least and the most of these: short
        trainings spend most of it in starting.
        """
        work = {done: max(self.steps[done]) * self.plan.task.harder(done).steps for done in self.scores}
        least, most = min(work, key=work.__getitem__), max(work, key=work.__getitem__)
        pace = self.took[most] / work[most]
        if self.took[most] > self.took[least]:
            pace = min(pace, (self.took[most] - self.took[least]) / (work[most] - work[least]))
        rest = self.plan.iterations * self.plan.task.harder(level).steps - work[most]
        return self.took[most] + pace * rest

    def attempt(self, level: int) -> dict[str, Any]:
        """Train all seeds at one level."""
        plan, begin = self.plan, time.monotonic()
        task = plan.task.harder(level)
        layers, source = self._layers(level)
        trained = fit_population(
            layers,
            task,
            iterations=plan.iterations,
            seeds=list(plan.seeds),
            target=_ambition(plan.criterion),
            folder=None if plan.folder is None else plan.folder / f"level-{level}",
            **plan.training,
        )
        self.scores[level] = [run.score for run in trained]
        self.steps[level] = [run.ending.step for run in trained]
        self.models = {level: [run.model for run in trained], **self.models} if plan.warm_start else {}
        self.parameters = sum(p.numel() for p in trained[0].model.parameters())
        mastered = sum(score >= plan.criterion for score in self.scores[level])
        self.passed[level] = mastered >= plan.quorum * len(plan.seeds)
        # A level that the record had already is charged the time that it took then.
        seconds = self.seconds_before.get(level, time.monotonic() - begin)
        self.took[level] = seconds
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
        if not self.plan.warm_start or not easier:
            return [self.builder.build(seed) for seed in self.plan.seeds], None
        source = max(easier)
        return [copy.deepcopy(model.layer) for model in self.models[source]], source

    def _assumptions(self) -> tuple[str, ...]:
        plan = self.plan
        seeds = f"at least {plan.quorum:.0%} of {len(plan.seeds)} seeds reach a score of {plan.criterion:g}"
        return (
            f"trained with {plan.iterations:,} iterations at most: more could raise the limit",
            f"a level counts as mastered when {seeds}",
            *(["levels start from the weights of an easier one"] if plan.warm_start else []),
        )

    def result(self, reason: str) -> Capacity:
        """Return what was found."""
        plan, levels = self.plan, sorted(self.scores)
        scores = np.array([self.scores[level] for level in levels], dtype=float).reshape(-1, len(plan.seeds))
        mastered = np.nan_to_num(scores, nan=-math.inf) >= plan.criterion
        curve, lower, upper = rates(mastered)
        failed = min((level for level in levels if not self.passed[level]), default=math.inf)
        limit = max((level for level in levels if self.passed[level] and level < failed), default=0)
        own = [max((lv for lv, good in zip(levels, column, strict=True) if good), default=0) for column in mastered.T]
        return Capacity(
            status="estimate",
            digits=None,
            assumptions=self._assumptions(),
            cost="O(levels seeds iterations T) time",
            network=self.builder.label,
            task=plan.task.name,
            axis=plan.task.difficulty,
            limit=limit,
            levels=np.array(levels, dtype=int),
            curve=curve,
            lower=lower,
            upper=upper,
            scores=scores,
            steps=np.array([self.steps[level] for level in levels], dtype=int).reshape(-1, len(plan.seeds)),
            seeds=plan.seeds,
            seed_limits=np.array(own, dtype=int),
            criterion=plan.criterion,
            quorum=plan.quorum,
            warm_start=plan.warm_start,
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
