"""Chance: only where it is asked for, and the same from the same seed."""

from __future__ import annotations

import inspect

import torch
from torch import Tensor

from mnemoscope.testing.checking import check
from mnemoscope.testing.compare import require, require_same
from mnemoscope.testing.subject import Network, Subject
from mnemoscope.testing.training import same_objects

__all__ = ["check_generator", "check_global_seed", "check_reset_parameters"]


@check("draw every initial value from the generator that is given")
def check_generator(subject: Subject) -> None:
    """`generator=` alone decides the parameters: one seed, one network; torch's global generator is not touched."""
    before = torch.get_rng_state()
    first, again, other = (_content(subject.build(generator=_generator(seed))) for seed in (1, 1, 2))
    require_same(again, first, "draw every initial value from generator=, so that one seed gives one network")
    require(not _equal(first, other), "draw the initial values from generator=, so that another seed gives another")
    untouched = torch.equal(before, torch.get_rng_state())
    require(untouched, "draw nothing from torch's global generator when generator= is given")


@check("draw initial values with torch, so that torch.manual_seed decides them")
def check_global_seed(subject: Subject) -> None:
    """Without a generator, `torch.manual_seed` decides the parameters: one seed, one network."""
    contents = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        contents.append(_content(subject.build()))
    require_same(contents[1], contents[0], "draw every initial value with torch, so that torch.manual_seed decides it")
    require(
        not _equal(contents[0], contents[2]), "draw the initial values at random, so that another seed gives another"
    )


@check("give the network a method reset_parameters() that draws all parameters anew, in place")
def check_reset_parameters(subject: Subject) -> None:
    """`reset_parameters()` draws every parameter anew and keeps the Parameter objects; a generator decides it alone."""
    network = subject.build_deep()
    require(hasattr(network, "reset_parameters"), "give the network a method reset_parameters()")
    held = list(network.parameters())
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(7.0)
    network.reset_parameters()
    for name, parameter in network.named_parameters():
        forgotten = parameter.numel() and bool((parameter == 7.0).all())
        require(not forgotten, f"draw the parameter {name} anew in reset_parameters(): it keeps its old values")
    first = _content(network)
    network.reset_parameters()
    require(not _equal(first, _content(network)), "draw new values each time in reset_parameters()")
    kept = "change parameters in place in reset_parameters(): an optimiser holds the old ones"
    require(same_objects(held, network), kept)
    if "generator" in inspect.signature(network.reset_parameters).parameters:
        _require_reset_by_generator(network)


def _require_reset_by_generator(network: Network) -> None:
    before, contents = torch.get_rng_state(), []
    for _ in range(2):
        network.reset_parameters(generator=_generator(1))
        contents.append(_content(network))
    require_same(contents[1], contents[0], "draw every value from the generator of reset_parameters(generator)")
    untouched = torch.equal(before, torch.get_rng_state())
    require(untouched, "draw nothing from torch's global generator in reset_parameters(generator)")


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _content(network: Network) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def _equal(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return all(torch.equal(tensor, right[name]) for name, tensor in left.items())
