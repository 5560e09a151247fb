"""Going on with a run from its record alone."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mnemoscope import runs
from mnemoscope.core.errors import UserError
from mnemoscope.core.plugins import is_location
from mnemoscope.tasks import Task
from mnemoscope.training.capacity import capacity
from mnemoscope.training.capacity_result import Capacity
from mnemoscope.training.fit import fit_with
from mnemoscope.training.options import Options
from mnemoscope.training.population import fit_population
from mnemoscope.training.run import Run
from mnemoscope.training.spec import VERSION, rebuild_layer, rebuild_task

__all__ = ["resume"]


def resume(
    run: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    device: str | None = None,
    progress: bool | None = None,
    trust: bool = False,
) -> Run | list[Run] | Capacity:
    """Go on with a run where it stopped; the end is the same, bit for bit, as if it had never stopped.

    Parameters
    ----------
    run
        The folder of a run, its id, or a beginning of its id that no other has.
    root
        The folder that holds the runs; by default ``$MNEMOSCOPE_RUNS``, else ``./runs``.
    data
        The folder of the data, for tasks that read files.
    device
        Where to compute, by default on the CPU.
    progress
        Whether to show how far it is; by default on a terminal.
    trust
        Whether to run the code of the file that a network ``FILE.py:CLASS`` of the record names.

    Returns
    -------
    Run, or a list of them for a population, or the Capacity of a search. A run that has ended is read from its record.
    """
    record = runs.load(run, root)
    spec = record.spec
    if record.kind == "capacity":
        return _search(record, data, progress, trust)
    if record.kind not in ("fit", "population") or "training" not in spec:
        raise UserError(f"run {record.id} must be a training (fit or population), got one of kind {record.kind!r}")
    if spec["version"] > VERSION:
        raise UserError(f"run {record.id} was written by a newer Mnemoscope (version {spec['version']} of trainings)")
    if not isinstance(spec["readout"], str):
        raise UserError(f"the readout of run {record.id} was given as an object; call fit with the same folder instead")
    name = spec["network"]["name"]
    if is_location(name) and not trust:
        raise UserError(f"run {record.id} uses the code of {name}; look at it, and allow it with trust=True (--trust)")
    task = _with_data(rebuild_task(spec["task"]), data)
    folder = Path(record.folder)
    if "members" in spec:
        raise UserError(f"run {record.id} is a part of a population; resume the population, {str(folder.parent)!r}")
    go_on: Callable[..., Run | list[Run]] = _population if record.kind == "population" else _fit
    return go_on(spec, task, folder, device, progress)


def _fit(spec: dict[str, Any], task: Task, folder: Path, device: str | None, progress: bool | None) -> Run:
    options = Options(seed=spec["seed"], device=device, **spec["training"])
    layer = rebuild_layer(spec["network"])
    return fit_with(layer, task, options, spec["readout"], folder=folder, known=_known(spec), progress=progress)


def _population(spec: dict[str, Any], task: Task, folder: Path, device: str | None, progress: bool | None) -> list[Run]:
    layers = [rebuild_layer(spec["network"]) for _ in spec["seeds"]]
    vectors = {name: spec[name] for name in ("lr", "lr_orthogonal", "penalty")}
    common = {"seeds": spec["seeds"], "readout": spec["readout"], "device": device, **spec["training"], **vectors}
    return fit_population(layers, task, folder=folder, known=_known(spec), progress=progress, **common)


def _search(record: runs.Record, data: Any, progress: bool | None, trust: bool) -> Capacity:
    """Go on with a search; what is left of its budget is not recorded, so that it is searched to the end."""
    spec = dict(record.spec)
    name, task = spec.pop("network"), _with_data(rebuild_task(spec.pop("task")), data)
    if not isinstance(name, str):
        raise UserError(f"the network of run {record.id} was given as an object; call capacity with the same folder")
    if is_location(name) and not trust:
        raise UserError(f"run {record.id} uses the code of {name}; look at it, and allow it with trust=True (--trust)")
    training = spec.pop("training")
    return capacity(name, task, folder=Path(record.folder), progress=progress, **spec, **training)


def _known(spec: dict[str, Any]) -> dict[str, Any]:
    names: tuple[str, ...] = ("network", "drawn", "weights")
    return {name: spec[name] for name in names if name in spec}


def _with_data(task: Task, data: str | os.PathLike[str] | None) -> Task:
    if data is None:
        return task
    if not any(field.name == "data" for field in dataclasses.fields(task)):
        raise UserError(f"the task {task.name} reads no files, got data={os.fspath(data)!r}")
    return dataclasses.replace(task, data=os.fspath(data))  # type: ignore[call-arg]
