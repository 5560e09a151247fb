"""Trainings in environments as runs of studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mnemoscope import nn
from mnemoscope.studies.machinery.execution import executor
from mnemoscope.tasks import control
from mnemoscope.training import ppo
from mnemoscope.training.control.improvement import Improvement
from mnemoscope.training.control.learning import READOUT, split_settings
from mnemoscope.training.control.playing import Player
from mnemoscope.training.fitting import ready
from mnemoscope.training.model import spec_for

__all__ = ["train_in_environment", "update_of"]


@executor("ppo")
def train_in_environment(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Train one network in an environment; return its returns along training and in every test.

    Settings: ``network``, ``hidden_size``, ``options``; ``environment``, ``environment_settings``; ``seed``,
    ``iterations`` and any other setting of `mnemoscope.training.ppo`.
    """
    layer, environment, given = _made(settings)
    run = ppo(layer, environment, folder=folder / "run", progress=False, **given)
    return {
        "parameters": sum(p.numel() for p in run.model.parameters()),
        "tests": {label: test["score"] for label, test in run.tests.items()},
        "iterations": [line["step"] for line in run.metrics],
        "returns": [line["score"] for line in run.metrics],
    }


def update_of(settings: Mapping[str, Any]) -> Callable[[], Any]:
    """Return a call that makes the next update of such a training."""
    layer, environment, given = _made(settings)
    options, own = split_settings(given)
    player = Player(ready(layer, environment, options, READOUT), environment, options, own.within(environment))
    improvement = Improvement(player)
    return lambda: improvement([player.next()])


def _made(settings: Mapping[str, Any]) -> tuple[Any, control.Environment, dict[str, Any]]:
    """Return network, environment and the settings of their training."""
    given = dict(settings)
    environment = control.create(given.pop("environment"), **given.pop("environment_settings", {}))
    name, options = given.pop("network"), given.pop("options", {})
    spec = nn.NetworkSpec(name, hidden_size=given.pop("hidden_size"), options=options, seed=given["seed"])
    return spec_for(spec, environment).build(), environment, given
