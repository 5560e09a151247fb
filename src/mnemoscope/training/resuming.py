"""Going on with a run from its record alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mnemoscope import runs
from mnemoscope.core.errors import UserError
from mnemoscope.core.plugins import is_location
from mnemoscope.nn import NetworkSpec
from mnemoscope.tasks.control import Environment
from mnemoscope.training.capacities.result import Capacity
from mnemoscope.training.capacities.search import capacity
from mnemoscope.training.configuration import VECTORS, VERSION, rebuild_layer, rebuild_task, recorded_options, with_data
from mnemoscope.training.control.learning import ppo_with
from mnemoscope.training.control.settings import PPO
from mnemoscope.training.fitting import Run, fit_with
from mnemoscope.training.ladders import Ladder, ladder
from mnemoscope.training.memories import Remembering, remembering
from mnemoscope.training.populations import fit_population

__all__ = ["resume"]


def resume(
    run: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    device: str | None = None,
    progress: bool | None = None,
    trust: bool = False,
) -> Run | list[Run] | Capacity | Ladder | Remembering:
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
    Run, or a list of them for a population, the Capacity of a search, a Ladder or what Remembering found. A run that
    has ended is read from its record.
    """
    record = runs.load(run, root)
    spec = record.spec
    if record.kind == "capacity":
        return _search(record, data, progress, trust)
    if record.kind in ("ladder", "remembering"):
        return _series(record, data, progress, trust)
    if record.kind not in ("fit", "population") or "training" not in spec:
        raise UserError(f"run {record.id} must be a training (fit or population), got one of kind {record.kind!r}")
    if spec["version"] > VERSION:
        raise UserError(f"run {record.id} was written by a newer Mnemoscope (version {spec['version']} of trainings)")
    if not isinstance(spec["readout"], str):
        raise UserError(f"the readout of run {record.id} was given as an object; call fit with the same folder instead")
    name = spec["network"]["name"]
    if is_location(name) and not trust:
        raise UserError(f"run {record.id} uses the code of {name}; look at it, and allow it with trust=True (--trust)")
    task = with_data(rebuild_task(spec["task"]), data)
    if "members" in spec:
        raise UserError(
            f"run {record.id} is a part of a population; resume the population, {str(record.folder.parent)!r}"
        )
    go_on: Callable[..., Run | list[Run]] = _population if record.kind == "population" else _fit
    return go_on(record, task, device, progress)


def _fit(record: runs.Record, task: Any, device: str | None, progress: bool | None) -> Run:
    spec = record.spec
    options = recorded_options(spec, {"device": device})[0]
    layer = rebuild_layer(spec["network"])
    if isinstance(task, Environment):
        own = PPO(**spec["ppo"])
        return ppo_with(layer, task, options, own, folder=record.folder, known=_known(spec), progress=progress)
    return fit_with(layer, task, options, spec["readout"], folder=record.folder, known=_known(spec), progress=progress)


def _population(record: runs.Record, task: Any, device: str | None, progress: bool | None) -> list[Run]:
    spec, first = record.spec, record.latest()
    networks = (first.state if first else {}).get("networks") or [spec["network"]] * len(spec["seeds"])
    vectors = {name: spec[name] for name in VECTORS}
    return fit_population(
        [rebuild_layer(one) for one in networks],
        task,
        seeds=spec["seeds"],
        readout=spec["readout"],
        device=device,
        folder=record.folder,
        known=_known(spec),
        progress=progress,
        **spec["training"],
        **vectors,
    )


def _search(record: runs.Record, data: Any, progress: bool | None, trust: bool) -> Capacity:
    """Go on with a search; what is left of its budget is not recorded, so that it is searched to the end."""
    spec = dict(record.spec)
    name, task = spec.pop("network"), with_data(rebuild_task(spec.pop("task")), data)
    if not isinstance(name, str):
        raise UserError(f"the network of run {record.id} was given as an object; call capacity with the same folder")
    if is_location(name) and not trust:
        raise UserError(f"run {record.id} uses the code of {name}; look at it, and allow it with trust=True (--trust)")
    training = spec.pop("training")
    spec.pop("digest", None)  # of the file; that it is the same is checked where the record is opened
    return capacity(name, task, folder=Path(record.folder), progress=progress, **spec, **training)


def _series(record: runs.Record, data: Any, progress: bool | None, trust: bool) -> Ladder | Remembering:
    """Go on with a ladder or with what a network remembers; what is left of its minutes is not recorded."""
    spec = dict(record.spec)
    name = spec.pop("network")
    if not isinstance(name, str):
        raise UserError(
            f"the network of run {record.id} was given as an object; call {record.kind} with the same folder"
        )
    if is_location(name) and not trust:
        raise UserError(f"run {record.id} uses the code of {name}; look at it, and allow it with trust=True (--trust)")
    spec.pop("digest", None)  # of the file; that it is the same is checked where the record is opened
    told = {key: spec.pop(key) for key in ("hidden_size", "options", "advice", "weights") if key in spec}
    layers = int(spec.pop("num_layers"))
    network = NetworkSpec(name, **told, num_layers=layers if layers > 1 else None)
    training = {**spec.pop("training"), "progress": progress}
    if record.kind == "ladder":
        return ladder(network, folder=record.folder, **spec, **training)
    task = with_data(rebuild_task(spec.pop("task")), data)
    return remembering(network, task, folder=record.folder, **spec, **training)


def _known(spec: dict[str, Any]) -> dict[str, Any]:
    names: tuple[str, ...] = ("network", "drawn", "weights")
    return {name: spec[name] for name in names if name in spec}
