"""Trainings in environments as runs of studies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mnemoscope import nn
from mnemoscope.studies.machinery.execution import executor
from mnemoscope.tasks import control
from mnemoscope.training import ppo
from mnemoscope.training.model import spec_for

__all__ = ["train_in_environment"]


@executor("ppo")
def train_in_environment(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Train one network in an environment; return its returns along training and in every test.

    Settings: ``network``, ``hidden_size``, ``options``; ``environment``, ``environment_settings``; ``seed``,
    ``iterations`` and any other setting of `mnemoscope.training.ppo`.
    """
    given = dict(settings)
    environment = control.create(given.pop("environment"), **given.pop("environment_settings", {}))
    name, options = given.pop("network"), given.pop("options", {})
    spec = nn.NetworkSpec(name, hidden_size=given.pop("hidden_size"), options=options, seed=given["seed"])
    layer = spec_for(spec, environment).build()
    run = ppo(layer, environment, folder=folder / "run", progress=False, **given)
    return {
        "parameters": sum(p.numel() for p in run.model.parameters()),
        "tests": {label: test["score"] for label, test in run.tests.items()},
        "iterations": [line["step"] for line in run.metrics],
        "returns": [line["score"] for line in run.metrics],
    }
