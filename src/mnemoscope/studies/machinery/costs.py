"""Costs of studies before they are run: core-seconds of their trainings by steps that are timed here.

A training of k networks (seeds times rates) over N iterations takes about

    k (N s + (V v + t) f)

core-seconds, with s the time of a step, f that of answering one sequence, V validations of v sequences each, and t
sequences of the test. Both times are measured on one thread, in processor time, which does not count what else the
machine does; where a step takes long, or more memory than there is, it is timed with fewer sequences and continued
along a line. In an environment s is the time of an update, and tests are not counted. Trainings that end early take
less, and so do populations that are computed as one batched program.
"""

from __future__ import annotations

import heapq
import json
import math
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from mnemoscope import nn, runs, tasks
from mnemoscope.core.errors import MnemoscopeError
from mnemoscope.core.files import make_folder, write_atomic
from mnemoscope.studies.machinery.control import update_of
from mnemoscope.studies.machinery.relational import VARIANTS
from mnemoscope.studies.machinery.study import RunSpec, Study
from mnemoscope.studies.machinery.trainings import make_networks, make_task
from mnemoscope.tasks.datasets import is_there
from mnemoscope.tasks.listops import ListOps
from mnemoscope.tasks.pathfinder import Pathfinder
from mnemoscope.training import Options
from mnemoscope.training.data import Fixed, Source, source_of
from mnemoscope.training.fitting import ready
from mnemoscope.training.loop import validation_interval
from mnemoscope.training.model import task_sizes
from mnemoscope.training.step import Step, evaluating, trial_batch

__all__ = ["Cost", "Estimates", "time_on"]

_ASKED = ("network", "variant", "task", "environment_settings")
_MEASURED = 3
"""Runs of each network on each task that are measured: the first, the middle and the last of the plan."""

_FREE = (
    "seed",
    "seeds",
    "rates",
    "lr",
    "iterations",
    "epochs",
    "looks",
    "train_score",
    "log_every",
    "checkpoint_every",
)
"""Settings that the time of a step does not depend on."""

_SHORT = 0.2
"""Seconds of a call below which it is timed twice."""
_PATIENCE = 1.0
"""Seconds of a step beyond which none with more sequences is timed."""

_FILES = {"scifar": (45_000, 5_000, 10_000), "retrieval": (147_086, 18_090, 17_437)}
"""Sequences of the published sets that a drawn one stands in for, where the user does not have the files."""

_FEW = 64
"""Pictures that are drawn where a step is timed, of many thousands that take half an hour to draw."""


@dataclass(frozen=True)
class Cost:
    """Core-seconds of the runs of a study, by name, and where they come from.

    Attributes
    ----------
    study
        Its name.
    seconds
        Core-seconds of each run.
    source
        ``"measured"``: by timed steps; ``"declared"``: the minutes on two cores that the study's file gives.
    reason
        Why nothing was measured, or what is not counted.
    """

    study: str
    seconds: Mapping[str, float]
    source: str
    reason: str = ""


def time_on(seconds: Sequence[float], cores: int) -> float:
    """Return how long runs take side by side on some cores: the longest first, each on the core that is free first.

    Examples
    --------
    >>> time_on([3.0, 3.0, 2.0, 2.0, 2.0], 2)
    7.0
    """
    busy = [0.0] * min(cores, max(1, len(seconds)))
    for one in sorted(seconds, reverse=True):
        heapq.heapreplace(busy, busy[0] + one)
    return max(busy)


class Estimates:
    """What studies cost on this machine. Times of steps are kept, so that they are measured once.

    Parameters
    ----------
    file
        Where times are kept; None: in the folder of the runs.
    until
        Of `time.monotonic`: when it comes, nothing more is measured.
    """

    def __init__(self, file: Path | None = None, until: float = math.inf) -> None:
        self.file, self.until = file or runs.root() / ".step-times.json", until
        self._machine = f"{platform.machine()}, torch {torch.__version__}"
        self._known: dict[str, list[float]] = _read(self.file)

    def cost(self, study: Study, scale: str) -> Cost:
        """Return the cost of a study at a scale."""
        plan = {f"study-{spec.key}": spec for spec in study.plan(scale)}
        try:
            per_run = self._measured(plan)
        except MnemoscopeError as error:
            return _declared(study, scale, list(plan), str(error))
        if not per_run:
            return _declared(study, scale, list(plan), "it trains nothing")
        others = {name: 0.0 for name in plan if name not in per_run}
        reasons = [f"{len(others)} runs that train nothing are not counted"] if others else []
        drawn = sorted({str(spec.settings["task"]) for spec in plan.values() if _is_drawn(spec.settings)})
        reasons += [f"drawn files for {' and '.join(drawn)}"] if drawn else []
        return Cost(study.name, per_run | others, "measured", "; ".join(reasons))

    def _measured(self, plan: Mapping[str, RunSpec]) -> dict[str, float]:
        parts = [(name, settings) for name, spec in plan.items() for settings in trainings_of(spec)]
        total = {name: 0.0 for name, _ in parts}
        groups: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
        for name, settings in parts:
            groups.setdefault(json.dumps([settings.get(one) for one in _ASKED]), []).append((name, settings))
        for group in groups.values():
            for (name, _), seconds in zip(group, self._of_group([settings for _, settings in group]), strict=True):
                total[name] += seconds
        return total

    def _of_group(self, group: Sequence[Mapping[str, Any]]) -> Iterator[float]:
        """Give the core-seconds of trainings; times of steps between those that are measured are interpolated."""
        last = len(group) - 1
        places = sorted({round(last * k / (_MEASURED - 1)) for k in range(_MEASURED)})
        found = {place: self._times(group[place]) for place in places}
        for place, settings in enumerate(group):
            below = max(one for one in places if one <= place)
            above = min(one for one in places if one >= place)
            share = 0.0 if above == below else (place - below) / (above - below)
            step, answer, epoch, validation, test = (
                _between(a, b, share) for a, b in zip(found[below], found[above], strict=True)
            )
            members = len(settings.get("seeds", [0])) * len(settings.get("rates", [0]))
            iterations = settings.get("iterations") or settings.get("epochs", 1) * epoch
            yield members * (iterations * (step + validation * answer) + test * answer)

    def _times(self, settings: Mapping[str, Any]) -> list[float]:
        own = {name: value for name, value in settings.items() if name not in _FREE}
        key = runs.spec_hash({"machine": self._machine, **own})
        if key not in self._known:
            if time.monotonic() > self.until:
                raise MnemoscopeError("no time was left to measure its steps")
            self._known[key] = _timed(settings)
            make_folder(self.file.parent)
            write_atomic(self.file, json.dumps(self._known, indent=0).encode(), durable=False)
        return self._known[key]


def trainings_of(spec: RunSpec) -> list[Mapping[str, Any]]:
    """Return the trainings that a run consists of at most; none where its kind is another."""
    if spec.kind in ("fit", "drift", "relational", "ppo"):
        return [spec.settings]
    if spec.kind == "capacity":
        own = {name: value for name, value in spec.settings.items() if name not in ("axis", "grid", "criterion")}
        axis = spec.settings["axis"]
        return [
            {**own, "task_settings": {**own.get("task_settings", {}), axis: level}} for level in spec.settings["grid"]
        ]
    return []


def _timed(settings: Mapping[str, Any]) -> list[float]:
    """Return seconds of a step and of an answer to one sequence, steps of an epoch, and sequences of evaluations.

    Those of validations are per step, those of the test once.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if "environment" in settings:
            update = update_of(settings)
            update()  # which warms up
            return [_seconds(update), 0.0, 1, 0.0, 0.0]
        with tempfile.TemporaryDirectory(prefix="mnemoscope-") as folder, torch.random.fork_rng(devices=[]):
            model, task, options, source = _made(settings, Path(folder))
            step = Step(model, task, options)
            step.train_mode(True)
            one, timed = _continued(lambda size: step([trial_batch(task, source, size)]), options.batch_size)
            batch = trial_batch(task, source, timed)
            with evaluating(step):
                answer = _seconds(lambda: step.outputs([batch], None)) / batch.size
            held: Sequence[int] = _sizes(source, options)
            if sizes := _whole(settings):
                train, *held = sizes
                source.epoch = -(-train // options.batch_size)
            interval = validation_interval(options, source)
    finally:
        torch.set_num_threads(threads)
    return [one, answer, source.epoch or 1, held[0] / interval if interval else 0.0, held[1]]


def _continued(call: Callable[[int], Any], size: int) -> tuple[float, int]:
    """Return the seconds of a call with so many sequences, and with how many it was timed at most.

    The number is doubled until one takes long; from there on a line goes on, through the last two.
    """
    now = min(size, 2)
    call(now)  # which warms up
    found = [(now, _seconds(partial(call, now)))]
    while found[-1][0] < size and found[-1][1] < _PATIENCE:
        now = min(size, 2 * now)
        found.append((now, _seconds(partial(call, now))))
    before, seconds = found[-1]
    if before == size:
        return seconds, size
    less, shorter = found[-2] if len(found) > 1 else (0, 0.0)
    return seconds + (size - before) * max(0.0, seconds - shorter) / (before - less), before


def _is_drawn(settings: Mapping[str, Any]) -> bool:
    """Say whether a drawn set has to stand in for files that are not here."""
    task, own = settings.get("task"), settings.get("task_settings", {})
    return task in _FILES and "data" not in own and not is_there(tasks.get(task).dataset or "")


def _whole(settings: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """Return how many sequences the sets have that are not made for timing: no files, or too many to draw."""
    task = settings.get("task")
    if task == "pathfinder":
        return Pathfinder(**settings.get("task_settings", {})).sizes
    if task == "listops" and settings.get("data") != "fresh":
        return ListOps.sizes
    return _FILES[str(task)] if _is_drawn(settings) else None


def _made(settings: Mapping[str, Any], folder: Path) -> tuple[Any, tasks.Task, Options, Source]:
    given = {name: value for name, value in settings.items() if name not in ("looks", "train_score", "failures")}
    if _is_drawn(settings):
        given["stand_in"] = True
    elif settings.get("task") == "pathfinder":
        given["task_settings"] = {**given.get("task_settings", {}), "examples": _FEW}
    elif _whole(settings):
        given["data"] = "fresh"
    rates, seed = given.pop("rates", [given.get("lr")]), given["seeds"][0]
    if "variant" in given:
        name, own = VARIANTS[given.pop("variant")]
        task = make_task(given, folder)
        layer: Any = nn.NetworkSpec(name, seed=seed, options={**own, **task_sizes(nn.get(name), task)}).build()
        given.pop("seeds")
    else:
        task = make_task(given, folder)
        (layer,), given = make_networks({**given, "seeds": [seed]}, task)
    readout = given.pop("readout", "linear")
    given.pop("layout", None)
    options = Options.make({**given, "seed": seed, "lr": rates[0]})
    readout = "linear" if readout == "probability" else readout
    return ready(layer, task, options, readout), task, options, source_of(task, options)


def _sizes(source: Source, options: Options) -> tuple[int, int]:
    """Return how many sequences a validation and the test have."""
    if isinstance(source, Fixed):
        return source.splits.validation.size, source.splits.test.size
    return (options.validation_size if source.validates else 0), options.test_size


def _seconds(call: Callable[[], Any]) -> float:
    """Return the processor seconds of a call: of a short one the lesser of two."""
    found: list[float] = []
    while len(found) < 2 and (not found or found[0] < _SHORT):
        begin = time.process_time()
        call()
        found.append(time.process_time() - begin)
    return min(found)


def _between(a: float, b: float, share: float) -> float:
    """Return the number between two, geometrically where both are positive."""
    return a ** (1 - share) * b**share if a > 0 and b > 0 else (1 - share) * a + share * b


def _declared(study: Study, scale: str, names: Sequence[str], reason: str) -> Cost:
    seconds = 2 * 60 * study.minutes.get(scale, 0.0) / max(1, len(names))
    return Cost(study.name, dict.fromkeys(names, seconds), "declared", reason)


def _read(file: Path) -> dict[str, list[float]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
