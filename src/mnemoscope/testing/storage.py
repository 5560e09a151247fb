"""Copies of a network: in memory, in a state_dict, pickled, in a file."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils import parametrize

from mnemoscope.nn.options import public_class
from mnemoscope.nn.registry import NETWORKS, card
from mnemoscope.nn.storage import load, save
from mnemoscope.testing.checking import check
from mnemoscope.testing.compare import require, require_same
from mnemoscope.testing.report import Skipped
from mnemoscope.testing.subject import Network, Subject
from mnemoscope.testing.training import train_step

__all__ = ["check_deepcopy", "check_pickle", "check_safetensors", "check_state_dict"]


@check("keep all that forward uses in parameters and buffers, so that load_state_dict(state_dict()) works")
def check_state_dict(subject: Subject) -> None:
    """`load_state_dict(state_dict())` makes another network the same function, bit for bit."""
    network = _trained(subject)
    twin = subject.build_deep()
    twin.load_state_dict(network.state_dict())
    _require_twin(subject, network, twin, "keep all that forward uses in parameters and buffers of the state_dict")


@check("let copy.deepcopy copy the network")
def check_deepcopy(subject: Subject) -> None:
    """`copy.deepcopy` gives the same function with parameters and buffers of its own."""
    network = _trained(subject)
    _freeze_first(network)
    twin = deepcopy(network)
    _require_twin(subject, network, twin, "let copy.deepcopy give the same function")
    _require_flags(network, twin, "copy.deepcopy")
    shared = _pointers(network) & _pointers(twin)
    require(not shared, "give a deepcopy parameters and buffers of its own, none in the original's memory")
    x = subject.inputs(network)
    before = subject.run(network, x)
    twin.requires_grad_(True)
    train_step(subject, twin)
    require_same(subject.run(network, x), before, "let training a deepcopy leave the original as it was")


@check("let pickle.dumps and pickle.loads carry the network, as processes that share work do")
def check_pickle(subject: Subject) -> None:
    """Pickling gives the same function, mode and frozen parameters, and draws nothing from torch's generator."""
    network = _trained(subject)
    if "<locals>" in type(network).__qualname__:
        raise Skipped("the class is defined within a function, where pickle cannot find it")
    _freeze_first(network)
    try:
        content = pickle.dumps(network)
    except RuntimeError as error:
        if any(parametrize.is_parametrized(module) for module in network.modules()):
            raise Skipped("torch does not pickle parametrised modules") from error
        raise
    twin, drew = _watch(lambda: pickle.loads(content))
    require(isinstance(twin, nn.Module), "let pickle give back the network")
    require(not twin.training, "keep the mode, training or evaluation, in a pickled network")
    _require_flags(network, twin, "pickle")
    _require_twin(subject, network, twin, "let a pickled network come back as the same function")
    require(not drew, "draw nothing from torch's global generator in unpickling")


@check("keep the state_dict one of plain tensors, none in another's memory, that safetensors can store")
def check_safetensors(subject: Subject) -> None:
    """Saved as safetensors (by `ms.nn.save` if it is registered) and loaded, the network is the same, bit for bit."""
    network = _trained(subject)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.safetensors"
        if _is_registered(network):
            save(network, path)
            twin, drew = _watch(lambda: load(path).eval())
            require(repr(twin) == repr(network), f"restore all options on load, {network!r}, not {twin!r}")
        else:
            drew = False
            save_file({name: tensor.contiguous() for name, tensor in network.state_dict().items()}, path)
            twin = subject.build_deep()
            twin.load_state_dict(load_file(path))
    _require_twin(subject, network, twin, "let the tensors in a safetensors file be all that the function depends on")
    require(not drew, "draw nothing from torch's global generator in ms.nn.load")


def _trained(subject: Subject) -> Network:
    """Build a network and train it for two steps, so that nothing in it is as it started."""
    network = subject.build_deep()
    for _ in range(2):
        train_step(subject, network)
    return network.eval()


def _freeze_first(network: Network) -> None:
    for parameter in network.parameters():
        parameter.requires_grad_(False)
        return


def _require_flags(network: Network, twin: Network, by: str) -> None:
    flags, others = ([p.requires_grad for p in n.parameters()] for n in (network, twin))
    require(flags == others, f"keep requires_grad of every parameter through {by}: a frozen one must stay frozen")


def _require_twin(subject: Subject, network: Network, twin: Network, sentence: str) -> None:
    require_same(dict(twin.state_dict()), dict(network.state_dict()), f"{sentence}: the state_dict changes")
    x = subject.inputs(network)
    require_same(subject.run(twin, x), subject.run(network, x), f"{sentence}: the output changes")


def _watch(make: Callable[[], Any]) -> tuple[Any, bool]:
    """Return what `make` makes, and whether it drew from torch's global generator."""
    before = torch.get_rng_state()
    made = make()
    return made, not torch.equal(before, torch.get_rng_state())


def _pointers(network: Network) -> set[int]:
    tensors: list[Tensor] = [*network.parameters(), *network.buffers()]
    return {tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.numel()}


def _is_registered(network: Network) -> bool:
    cls, own = public_class(type(network)), card(type(network))
    return own is not None and own.name in NETWORKS and NETWORKS[own.name] is cls
