"""Kinds of runs that studies share: trainings of several seeds as one population, and exact separation ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mnemoscope import nn, tasks
from mnemoscope.measures import separation_rank
from mnemoscope.studies.machinery.execution import executor
from mnemoscope.training import fit_population

__all__ = ["measure_rank", "train"]


@executor("fit")
def train(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Train one network per seed on the fixed sets of a task; return losses and scores on test, seed by seed.

    Settings: ``network``, ``input_size``, ``hidden_size``, ``num_layers``, ``options``; ``task``, ``task_settings``;
    ``seeds``; ``epochs``, and any setting of `mnemoscope.training.fit`.
    """
    given = dict(settings)
    task = tasks.create(given.pop("task"), **given.pop("task_settings", {}))
    name, options = given.pop("network"), given.pop("options", {})
    sizes = {size: given.pop(size) for size in ("input_size", "hidden_size", "num_layers")}
    seeds = given.pop("seeds")
    layers = [nn.NetworkSpec(name, **sizes, options=options, seed=seed).build() for seed in seeds]
    given["iterations"] = given.pop("epochs") * _steps_per_epoch(task, given["batch_size"])
    trained = fit_population(layers, task, seeds=seeds, folder=folder / "population", progress=False, **given)
    return {
        "test_loss": [_number(run.loss) for run in trained],
        "test_score": [_number(run.score) for run in trained],
        "steps": [run.ending.step for run in trained],
        "reasons": [run.reason for run in trained],
        "layout": None if trained[0].layout is None else trained[0].layout["name"],
    }


@executor("separation-rank")
def measure_rank(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return the exact rank of a circuit with random weights on one-hot templates, and the float rank beside it.

    Settings: channels ``M``, width ``R``, horizon ``T``, layers ``L``, ``seed``.
    """
    generator = torch.Generator().manual_seed(settings["seed"])
    circuit = nn.RAC(
        settings["M"],
        settings["R"],
        num_layers=settings["L"],
        output_size=1,
        dtype=torch.float64,
        generator=generator,
    )
    found = separation_rank(circuit, settings["T"], seed=settings["seed"])
    return {"rank": found.rank, "exact": found.exact, "float_rank": found.float_rank, "shape": list(found.shape)}


def _steps_per_epoch(task: tasks.Task, batch_size: int) -> int:
    splits = task.splits(0)
    return 1 if splits is None else math.ceil(splits.train.size / batch_size)


def _number(value: float) -> float | None:
    """Return a number as JSON can hold it: None for a training that failed."""
    return value if math.isfinite(value) else None
