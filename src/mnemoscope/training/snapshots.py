"""Networks of a run as they were at its checkpoints, read from the record alone."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemoscope import runs
from mnemoscope.core.errors import UserError
from mnemoscope.core.plugins import is_location
from mnemoscope.training.configuration import network_spec, rebuild_layer, rebuild_task, recorded_options
from mnemoscope.training.descent import load_weights, part
from mnemoscope.training.fitting import ready

__all__ = ["Snapshot", "recorded_network", "snapshots"]

_CHECKPOINT = re.compile(r"step-(\d+)(-2)?\.(json|safetensors)")


@dataclass(frozen=True)
class Snapshot:
    """A network after so many steps of a training.

    Attributes
    ----------
    step
        How many.
    model
        Embedding, network and readout, as they were then; at the end of a run what was tested.
    """

    step: int
    model: Any


def snapshots(
    run: str | os.PathLike[str], *, root: str | os.PathLike[str] | None = None, trust: bool = False
) -> list[Snapshot]:
    """Return the networks of a training at all of its checkpoints, the first of them before the first step.

    Parameters
    ----------
    run
        The folder of a run, its id or a beginning of it, or the file of one checkpoint, which then is the only one.
    root
        The folder that holds the runs; by default ``$MNEMOSCOPE_RUNS``, else ``./runs``.
    trust
        Whether to run the code of the file that a network ``FILE.py:CLASS`` of the record names.
    """
    record, step = _record(run, root)
    found = []
    for checkpoint in record.checkpoints():
        if step in (None, checkpoint.step):
            model = _model(record, trust)
            weights = part(checkpoint.tensors, "member/0/final/") or part(checkpoint.tensors, "step/model/")
            load_weights(model, weights)
            tested = checkpoint.state["members"]["0"]["ending"]
            found.append(Snapshot(checkpoint.step if tested is None else tested["weights_step"], model.eval()))
    if not found:
        raise UserError(f"run {record.id} has no checkpoint{'' if step is None else f' of step {step}'}")
    return found


def recorded_network(run: str | os.PathLike[str], *, root: str | os.PathLike[str] | None = None) -> tuple[Any, int]:
    """Return the description of a run's network, without weights, and the run's seed."""
    record, _ = _record(run, root)
    return network_spec(record.spec["network"]), int(record.spec["seed"])


def _record(run: str | os.PathLike[str], root: str | os.PathLike[str] | None) -> tuple[runs.Record, int | None]:
    """Return the record of a training of one network, and the step that a checkpoint's file names."""
    file = Path(run)
    named = _CHECKPOINT.fullmatch(file.name)
    if named and file.is_file():
        record, step = runs.load(file.absolute().parent.parent), int(named[1])
    else:
        record, step = runs.load(run, root), None
    if record.kind != "fit" or "training" not in record.spec:
        raise UserError(f"run {record.id} must be the training of one network (fit), got one of kind {record.kind!r}")
    return record, step


def _model(record: runs.Record, trust: bool) -> Any:
    spec = record.spec
    name = spec["network"]["name"]
    if is_location(name) and not trust:
        raise UserError(f"run {record.id} uses the code of {name}; look at it, and allow it with trust=True (--trust)")
    if not isinstance(spec["readout"], str):
        raise UserError(f"the readout of run {record.id} was given as an object, and cannot be built again")
    options = recorded_options(spec, {})[0]
    return ready(rebuild_layer(spec["network"]), rebuild_task(spec["task"]), options, spec["readout"])
