"""Trainings as runs of studies: seeds and rates as one population, limits of what is learned, drift from orthogonality.

Where several rates are given, every seed takes the one with the lowest loss on validation; tests decide nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch

from mnemoscope import nn, tasks
from mnemoscope.studies.machinery.execution import execute_one, executor
from mnemoscope.studies.machinery.looks import LOOKS, Probability
from mnemoscope.studies.machinery.stand_ins import stand_in
from mnemoscope.studies.machinery.study import RunSpec
from mnemoscope.training import Options, Run, fit, fit_population
from mnemoscope.training.capacities.inputs import next_on_grid
from mnemoscope.training.data import Source, source_of
from mnemoscope.training.model import task_sizes

__all__ = ["SIZES", "find_limit", "make_networks", "make_task", "train", "watch_drift"]


class Trained(NamedTuple):
    """A training, and the rate that validation chose for it."""

    run: Run
    rate: float | None


SIZES = ("input_size", "hidden_size", "num_layers", "parameters", "count")


@executor("fit")
def train(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Train one network per seed on a task; return losses and scores on test and along training, seed by seed.

    Settings: ``network``, ``hidden_size`` or ``parameters`` with ``count``, ``num_layers``, ``options``; ``task``,
    ``task_settings``, ``stand_in`` (a drawn data set instead of the user's); ``seeds``; ``rates`` instead of ``lr``, of
    which validation chooses; ``epochs`` or ``iterations``; ``train_score`` for the score on the training set;
    ``looks``, from names of `LOOKS` to their settings, at what the first seed has learned (with ``every`` the numbers
    of all seeds, too); and any setting of
    `mnemoscope.training.fit`, of which ``readout`` may be ``"probability"``.
    """
    given = dict(settings)
    task = make_task(given, folder)
    wanted, looks = given.pop("train_score", False), given.pop("looks", {})
    trained = _population(given, task, folder / "population")
    found = _facts(trained) | _scores(trained) | _curves(trained)
    if wanted:
        data = _source(task, given)
        found["train_score"] = [_score_on_training(run, data) for run, _ in trained]
    for look, own in looks.items():
        found[look] = _look(look, trained, task, **own)
    return found


def _look(name: str, trained: Sequence[Trained], task: tasks.Task, *, every: bool = False, **own: Any) -> Any:
    """Return what a look at the first seed's network sees; with `every` also its numbers, seed by seed."""
    seen = [LOOKS[name](run.model, task, **own) for run, _ in (trained if every else trained[:1])]
    numbers = [key for key, value in seen[0].items() if every and isinstance(value, int | float)]
    return {**seen[0], **({"every": {key: [one[key] for one in seen] for key in numbers}} if every else {})}


@executor("capacity")
def find_limit(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return the hardest level of a task that a network masters, by levels in ascending order.

    Settings: those of ``fit``; ``axis`` of the task and ``grid``, its levels; ``criterion``, which the median of the
    test scores over the seeds must exceed; ``failures`` in a row that end the search (2). Every level is a run of its
    own of kind ``fit``, kept and shared as any other.
    """
    given = dict(settings)
    axis, levels, criterion = (given.pop(name) for name in ("axis", "grid", "criterion"))
    failures = given.pop("failures", 2)
    tried: dict[int, bool] = {}
    found: dict[str, Any] = {}
    while (level := next_on_grid(tried, levels, failures)) is not None:
        own = {**given, "task_settings": {**given.get("task_settings", {}), axis: level}}
        outcome = execute_one(RunSpec("fit", own), folder.parent)
        scores = [-math.inf if one is None else one for one in outcome.summary["test_score"]]
        tried[level] = median(scores) > criterion
        facts = {name: outcome.summary[name] for name in ("parameters", "width")}
        found = {**facts, "levels": {**found.get("levels", {}), str(level): outcome.summary["test_score"]}}
    return {**found, "limit": max((level for level, good in tried.items() if good), default=None)}


@executor("drift")
def watch_drift(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Train one network per seed, and return |V V^T - I| (Frobenius) of its first layer along training.

    Settings: those of ``fit``, with ``log_every``, the steps between two looks.
    """
    given = dict(settings)
    task = make_task(given, folder)
    found: list[list[float]] = []
    trained = []
    for seed in given["seeds"]:
        (layer,), own = make_networks({**given, "seeds": [seed]}, task)
        drift = [_distance(layer)]

        def look(_: Any, layer: Any = layer, drift: list[float] = drift) -> None:
            drift.append(_distance(layer))

        trained.append(Trained(fit(layer, task, seed=seed, callbacks=[look], progress=False, **own), own.get("lr")))
        found.append(drift)
    steps = [0, *(line["step"] for line in trained[0].run.metrics)]
    return _facts(trained) | _scores(trained) | {"drift_steps": steps, "drift": found}


def _distance(layer: Any) -> float:
    v = layer.weights()[0]["weight_hh"].detach().double()
    return float(torch.linalg.matrix_norm(v @ v.mT - torch.eye(len(v), dtype=v.dtype)))


def make_task(given: dict[str, Any], folder: Path) -> tasks.Task:
    """Return the task of the settings, which are taken out of them."""
    name, own = given.pop("task"), dict(given.pop("task_settings", {}))
    if given.pop("stand_in", False):
        own |= stand_in(name, folder / "data")
    return tasks.create(name, **own)


def make_networks(given: Mapping[str, Any], task: tasks.Task) -> tuple[list[Any], dict[str, Any]]:
    """Return a network for every seed, and the settings of their training."""
    own = dict(given)
    name, options, seeds = own.pop("network"), own.pop("options", {}), own.pop("seeds")
    sizes = task_sizes(nn.get(name), task) | {size: own.pop(size) for size in SIZES if size in own}
    sizes |= {"readout_size": task.output_size} if "parameters" in sizes else {}
    networks = [nn.NetworkSpec(name, **sizes, options=options, seed=seed).build() for seed in seeds]
    if "epochs" in own:
        own["iterations"] = own.pop("epochs") * (_source(task, own).epoch or 1)
    if isinstance(own.get("schedule"), Mapping) and own["schedule"].get("threshold") == "scored":
        share = float(task.scored(task.sample(1, torch.Generator().manual_seed(0))).float().mean())
        own["schedule"] = {**own["schedule"], "threshold": 1e-3 * share}
    return networks, own


def _population(given: Mapping[str, Any], task: tasks.Task, folder: Path) -> list[Trained]:
    """Train all seeds with all rates at once; return for each seed the run that was best on validation."""
    own = dict(given)
    rates, seeds = own.pop("rates", [own.get("lr")]), own["seeds"]
    members = [seed for seed in seeds for _ in rates]
    networks, own = make_networks({**own, "seeds": members}, task)
    own["lr"] = list(rates) * len(seeds) if len(rates) > 1 else rates[0]
    if own.get("readout") == "probability":
        own["readout"] = Probability()
    runs = fit_population(networks, task, seeds=members, folder=folder, progress=False, **own)
    trained = [Trained(run, rate) for run, rate in zip(runs, list(rates) * len(seeds), strict=True)]
    groups = [trained[first : first + len(rates)] for first in range(0, len(trained), len(rates))]
    return [min(group, key=lambda one: _best(one.run)) for group in groups]


def _best(run: Run) -> float:
    """Return the lowest loss on validation; infinite of a training that failed."""
    losses = [line["validation_loss"] for line in run.metrics if line.get("validation_loss") is not None]
    return min(losses, default=math.inf) if run.status == "finished" else math.inf


def _facts(trained: Sequence[Trained]) -> dict[str, Any]:
    run = trained[0].run
    size = getattr(run.model.layer, "hidden_size", None)
    return {
        "parameters": sum(p.numel() for p in run.model.parameters() if p.requires_grad),
        "width": size if isinstance(size, int) else None,
        "layout": None if run.layout is None else run.layout["name"],
    }


def _scores(trained: Sequence[Trained]) -> dict[str, Any]:
    return {
        "test_loss": [_number(run.loss) for run, _ in trained],
        "test_score": [_number(run.score) for run, _ in trained],
        "steps": [run.ending.step for run, _ in trained],
        "reasons": [run.reason for run, _ in trained],
        "chosen_rate": [rate for _, rate in trained],
        "baseline": trained[0].run.baseline,
    }


def _curves(trained: Sequence[Trained]) -> dict[str, Any]:
    """Return what validation said along training; one that ended early keeps its last value."""
    lines = [[line for line in run.metrics if line.get("validation_loss") is not None] for run, _ in trained]
    longest = max(lines, key=len)
    names = {"curve_loss": "validation_loss", "curve_score": "validation_score"}
    return {"curve_steps": [line["step"] for line in longest]} | {
        title: [_held([_number(line[name]) for line in own], len(longest)) for own in lines]
        for title, name in names.items()
    }


def _held(values: list[float | None], length: int) -> list[float | None]:
    return values + [values[-1] if values else None] * (length - len(values))


def _score_on_training(run: Run, data: Source) -> float:
    parts, task = list(data.held_out("train")), run.task
    assert isinstance(task, tasks.Task)
    with torch.no_grad():
        right = sum(part.size * task.score(run.model(part.inputs, None, part.lengths)[0], part) for part in parts)
    return right / sum(part.size for part in parts)


def _source(task: tasks.Task, own: Mapping[str, Any]) -> Source:
    """Return where the batches of a training come from."""
    named = {name: own[name] for name in ("batch_size", "data", "truncate") if name in own}
    return source_of(task, Options.make({"iterations": 1, **named}))


def _number(value: float) -> float | None:
    """Return a number as JSON can hold it: None for a training that failed."""
    return value if math.isfinite(value) else None
