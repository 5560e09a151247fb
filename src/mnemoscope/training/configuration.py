"""Configuration of a run as JSON: the network, the task, the settings; and the way back from it."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.nn.options import public_class
from mnemoscope.nn.registry import NETWORKS, card
from mnemoscope.nn.spec import DEFAULT_SIZES, NETWORK_VERSION, NetworkSpec
from mnemoscope.tasks import Problem, Task, problem
from mnemoscope.tasks import create as create_task
from mnemoscope.training.model import Model
from mnemoscope.training.options import Options

__all__ = [
    "VERSION",
    "describe_network",
    "describe_task",
    "network_spec",
    "problem_of",
    "rebuild_layer",
    "rebuild_task",
    "spec_of",
    "task_of",
]

VERSION = 1
"""Of what a training writes into its configuration and its checkpoints."""

VECTORS = ("lr", "lr_orthogonal", "penalty")
"""Settings of which every network of a population may have its own."""


def task_of(task: Any, data: Any = None) -> Task:
    """Return the task that is meant: a name with its default settings, or a `Task`."""
    if isinstance(task, Task):
        return task
    if not isinstance(task, str):
        raise expected("task", "the name of a task or a Task", Description(f"a {type(task).__name__}"))
    return create_task(task)


def problem_of(task: Any) -> Any:
    """Return the task or environment that is meant: a name with its default settings, or the thing itself."""
    if isinstance(task, Problem):
        return task
    if not isinstance(task, str):
        came = Description(f"a {type(task).__name__}")
        raise expected("task", "the name of a task or of an environment, or one of these", came)
    return problem(task)


def describe_task(task: Problem) -> dict[str, Any]:
    """Return a task as JSON."""
    return {"name": task.name, "settings": task.settings()}


def describe_network(layer: nn.Module) -> dict[str, Any]:
    """Return a network as JSON: name and options where it is in the table, else what can be said of it."""
    own = card(type(layer))
    registered = own is not None and own.name in NETWORKS and NETWORKS[own.name] is public_class(type(layer))
    dtype = str(next(layer.parameters(), torch.zeros(())).dtype).removeprefix("torch.")
    if registered and own is not None and hasattr(layer, "options"):
        options: Any = layer.options
        if _is_json(options):
            return {"name": own.name, "options": options, "dtype": dtype}
    inner = getattr(layer, "module", layer)
    name = public_class(type(inner)).__name__
    return {"name": name, "given": " ".join(repr(inner).split())[:500], "dtype": dtype}


def spec_of(
    kind: str, model: Model, task: Problem, options: Options, readout: Any, own: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the configuration of a run: everything that its numbers depend on.

    Parameters
    ----------
    own
        What only this sort of run has.
    """
    network = own.get("network") or describe_network(model.layer)
    return {
        "version": VERSION,
        "kind": kind,
        "network": network,
        "readout": readout if isinstance(readout, str) else _given(readout),
        "task": describe_task(task),
        "seed": options.seed,
        "training": {name: value for name, value in options.to_dict().items() if name != "seed"},
        **{name: value for name, value in own.items() if name != "network"},
    }


def rebuild_task(spec: Mapping[str, Any]) -> Any:
    """Return the task, or the environment, of a configuration."""
    return problem(spec["name"], **spec["settings"])


def recorded_options(spec: Mapping[str, Any], now: Mapping[str, Any]) -> list[Options]:
    """Return the settings of all networks of a training from its configuration.

    Parameters
    ----------
    now
        Settings that no number depends on and that are not recorded: device, how often checkpoints are written.
    """
    if "seeds" not in spec:
        return [Options(seed=spec["seed"], **spec["training"], **now)]
    return [
        Options(seed=seed, **{name: spec[name][k] for name in VECTORS}, **spec["training"], **now)
        for k, seed in enumerate(spec["seeds"])
    ]


def with_data(task: Any, data: str | os.PathLike[str] | None) -> Any:
    """Return a task that reads its files from a folder; None: from the usual one."""
    if data is None:
        return task
    if not any(field.name == "data" for field in dataclasses.fields(task)):
        raise UserError(f"the task {task.name} reads no files, got data={os.fspath(data)!r}")
    return dataclasses.replace(task, data=os.fspath(data))


def rebuild_layer(spec: Mapping[str, Any]) -> Any:
    """Return the network of a configuration, with weights that are about to be overwritten.

    Raises
    ------
    UserError
        If it was given as an object, or its file changed since it was recorded.
    """
    return network_spec(spec).build().to(getattr(torch, spec["dtype"]))


def network_spec(spec: Mapping[str, Any]) -> NetworkSpec:
    """Return the description of the network of a configuration, or raise when it was given as an object."""
    if "options" not in spec:
        raise UserError(
            f"the network {spec['name']} was given as an object and cannot be built again from the record; "
            "call fit with the same arguments and folder, and it goes on"
        )
    described = {name: spec[name] for name in ("options", "digest") if name in spec}
    options = dict(described["options"])
    own = (*DEFAULT_SIZES, "advice", "weights")
    described |= {name: options.pop(name) for name in own if options.get(name) is not None} | {"options": options}
    return NetworkSpec.from_dict({"version": NETWORK_VERSION, "what": spec["name"], **described})


def _given(readout: Any) -> dict[str, str]:
    return {"given": " ".join(repr(readout).split())[:500]}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
