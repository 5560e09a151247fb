"""Series of trainings: populations of one network on several tasks, each examined, recorded, and gone on with."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mnemoscope import runs
from mnemoscope.core.errors import expected
from mnemoscope.core.result import plain
from mnemoscope.tasks import Task
from mnemoscope.training.capacities.inputs import Builder
from mnemoscope.training.fitting import Run
from mnemoscope.training.populations import fit_population

__all__ = ["Lines", "Series", "checked_minutes", "rates_of"]

Lines = dict[str, dict[str, Any]]
"""What was found, by the name of each part of a series."""

_UNRECORDED = ("progress", "callbacks", "workers")
"""Settings of trainings that no number depends on."""


def checked_minutes(minutes: float | None) -> float | None:
    """Return a time above zero, or None; else raise the standard error."""
    if minutes is not None and (isinstance(minutes, bool) or not minutes > 0):
        raise expected("minutes", "a number above 0", minutes)
    return minutes


@dataclass(frozen=True, kw_only=True)
class Series:
    """Trainings of one network on several tasks.

    Attributes
    ----------
    kind
        Of the record: ``"ladder"``.
    tasks
        By name, in their order.
    build
        Of a task what builds the network of each seed.
    examine
        Of a name and its trained networks what is kept of them, ready for JSON.
    asked
        What else the numbers depend on, for the record.
    seeds, iterations, training
        Of the trainings. ``lr`` may be several rates: every seed is trained at each, and keeps the network whose loss
        on validation was lowest.
    minutes
        Of all trainings together; what is left then is not begun.
    folder
        Keeps the record; the same call goes on where it was.
    tell
        Is told of every part when it is done.
    """

    kind: str
    tasks: Mapping[str, Task]
    build: Callable[[Task], Builder]
    examine: Callable[[str, Sequence[Run]], dict[str, Any]]
    asked: Mapping[str, Any]
    seeds: tuple[int, ...]
    iterations: int
    minutes: float | None = None
    folder: Path | None = None
    training: Mapping[str, Any] = field(default_factory=dict)
    tell: Callable[[Mapping[str, Any]], None] | None = None

    def run(self) -> tuple[Lines, str]:
        """Train what is not recorded yet; return what is known of each part, and why some are missing."""
        builders = {name: self.build(task) for name, task in self.tasks.items()}  # a mistake comes before hours of work
        found: Lines = {}
        with self._opened(next(iter(builders.values()))) as record:
            found.update({} if record is None else {line["part"]: dict(line) for line in record.kept})
            spent = sum(line["seconds"] for line in found.values())
            reason = ""
            for name in self.tasks:
                if name in found:
                    continue
                left = math.inf if self.minutes is None else self.minutes - spent / 60
                try:
                    line = self._trained(name, builders[name], left)
                except runs.OutOfBudget:
                    reason = f"the {self.minutes:.3g} minutes are used up"
                    break
                spent += line["seconds"]
                found[name] = line
                if record is not None:
                    record.append({"step": len(found), **line}, durable=True)
                if self.tell is not None:
                    self.tell(line)
            if record is not None and not record.finished:
                _close(record, found, reason)
        return found, reason

    def _trained(self, name: str, builder: Builder, left: float) -> dict[str, Any]:
        if left <= 0:
            raise runs.OutOfBudget
        begin = time.monotonic()
        rates = rates_of(self.training)
        tried = [(seed, rate) for seed in self.seeds for rate in rates]
        trained = fit_population(
            [builder.build(seed) for seed, _ in tried],
            self.tasks[name],
            iterations=self.iterations,
            seeds=[seed for seed, _ in tried],
            folder=None if self.folder is None else self.folder / name,
            minutes=None if math.isinf(left) else left,
            **{**self.training, **({} if rates == (None,) else {"lr": [rate for _, rate in tried]})},
        )
        best = [
            min(range(k, k + len(rates)), key=lambda i: _loss(trained[i])) for k in range(0, len(tried), len(rates))
        ]
        found = [trained[i] for i in best]
        parameters = sum(p.numel() for p in found[0].model.parameters())
        told = {"part": name, "steps": [run.ending.step for run in found], "parameters": parameters}
        told |= {} if len(rates) == 1 else {"rates": [tried[i][1] for i in best]}
        examined: dict[str, Any] = plain({**told, **self.examine(name, found)})
        return {**examined, "seconds": time.monotonic() - begin}

    def _opened(self, builder: Builder) -> AbstractContextManager[runs.Recorder | None]:
        """Open the record: everything that its numbers depend on, but how much of it is to be done now."""
        if self.folder is None:
            return nullcontext()
        spec = {
            **builder.spec,
            **self.asked,
            "seeds": list(self.seeds),
            "iterations": self.iterations,
            "training": {name: value for name, value in self.training.items() if name not in _UNRECORDED},
        }
        return runs.open(spec, folder=self.folder, kind=self.kind)


def rates_of(training: Mapping[str, Any]) -> tuple[float | None, ...]:
    """Return the learning rates that every seed is trained at; one None: the usual one."""
    given = training.get("lr")
    if not isinstance(given, list | tuple):
        return (given,)
    if not given or len(set(given)) != len(given) or None in given:
        raise expected("lr", "a rate, or several different ones", given)
    return tuple(given)


def _loss(run: Run) -> float:
    """Return the lowest loss on validation; infinity for a training that diverged or was never validated."""
    known = [row["validation_loss"] for row in run.metrics if row.get("validation_loss") is not None]
    return math.inf if run.status == "failed" else min(known, default=math.inf)


def _close(record: runs.Recorder, found: Lines, reason: str) -> None:
    if reason:
        record.pause(reason)
    else:
        record.finish({"parts": list(found)})
