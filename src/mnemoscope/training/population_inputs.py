"""What a population is made of: networks, seeds, settings of each, and how the record describes them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from torch import nn

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.core.seeds import check_seed, stream
from mnemoscope.nn.storage import weights_digest
from mnemoscope.tasks import Task
from mnemoscope.training.options import Options
from mnemoscope.training.spec import spec_of

__all__ = ["VECTORS", "population_known", "population_networks", "population_options", "population_spec"]

VECTORS = ("lr", "lr_orthogonal", "penalty")
"""The settings of which every network may have its own."""


def population_networks(layers: Any, seeds: Sequence[int] | None) -> tuple[list[nn.Module], list[int], bool]:
    """Return the networks, their seeds, and whether their weights were drawn here."""
    if isinstance(layers, nn.Module):
        if seeds is None:
            raise UserError("seeds must be given where layers is one network: each seed gets a copy of it")
        network: Any = layers
        if not hasattr(network, "reset_parameters"):
            name = type(network).__name__
            raise UserError(f"{name} has no reset_parameters(generator) to draw weights with; give a list of networks")
        made = [deepcopy(network) for _ in seeds]
        for one, seed in zip(made, seeds, strict=True):
            one.reset_parameters(stream(check_seed(seed), "layer"))
        return _distinct(made), list(seeds), True
    if not isinstance(layers, Sequence) or not layers or not all(isinstance(one, nn.Module) for one in layers):
        raise expected("layers", "a network, or one or more networks in a list", Description(repr(layers)[:80]))
    seeds = list(range(len(layers))) if seeds is None else list(seeds)
    if len(seeds) != len(layers):
        raise expected("seeds", f"{len(layers)} whole numbers, one for each network", seeds)
    return _distinct(list(layers)), seeds, False


def _distinct(networks: list[nn.Module]) -> list[nn.Module]:
    if not networks:
        raise expected("seeds", "one or more whole numbers", Description("none"))
    if len({id(one) for one in networks}) < len(networks):
        raise UserError("layers must be different objects, got one of them twice; give it once, with seeds=")
    return networks


def population_options(members: int, seeds: Sequence[int], settings: dict[str, Any]) -> list[Options]:
    """Return the settings of every network, vectors divided among them."""
    found = []
    for k in range(members):
        own = {"seed": seeds[k]}
        for name, value in settings.items():
            if name in VECTORS and isinstance(value, Sequence) and not isinstance(value, str):
                if len(value) != members:
                    raise expected(name, f"a number, or {members} of them, one for each network", list(value))
                value = value[k]
            own[name] = value
        found.append(Options.make(own))
    return found


def population_known(models: Sequence[Any], drawn: bool, root: Any) -> dict[str, Any]:
    """Return what the record says of the weights: drawn from the seeds, or which where content names the run."""
    if root is None or drawn:
        return {"drawn": drawn}
    return {"drawn": drawn, "weights": [weights_digest(model) for model in models]}


def population_spec(
    models: Sequence[Any], task: Task, options: Sequence[Options], readout: Any, known: dict[str, Any]
) -> dict[str, Any]:
    """Return the configuration of a population: everything that its numbers depend on."""
    own: dict[str, Any] = {"seeds": [one.seed for one in options], **known}
    own |= {name: [getattr(one, name) for one in options] for name in VECTORS}
    spec = spec_of("population", models[0], task, options[0], readout, own)
    spec["training"] = {name: value for name, value in spec["training"].items() if name not in VECTORS}
    return {name: value for name, value in spec.items() if name != "seed"}
