"""Use in other people's code: loading without memory, writing into weights, export."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import nn
from torch._dynamo.eval_frame import is_dynamo_supported
from torch.nn.utils import parametrize

from mnemoscope.testing.checking import check, unreported
from mnemoscope.testing.compare import require, require_close, require_same
from mnemoscope.testing.report import CheckFailed, Skipped
from mnemoscope.testing.subject import Network, Subject

__all__ = ["check_export", "check_meta_loading", "check_writes"]


@check("let the network be built under torch.device('meta') and filled by load_state_dict(assign=True)")
def check_meta_loading(subject: Subject) -> None:
    """Built on the meta device and loaded with `assign=True`, the network is the same function, bit for bit."""
    network = subject.build_deep()
    _require_declared(network, "it was understood by calling it, for which its weights need values")
    with torch.device("meta"):
        twin = subject.build_deep()
    twin.load_state_dict(network.state_dict(), assign=True)
    left = [name for name, tensor in (*twin.named_parameters(), *twin.named_buffers()) if tensor.is_meta]
    if left:
        raise CheckFailed(f"put {', '.join(left)} into the state_dict, or make it where it is used: it stays on meta")
    x = subject.inputs(network)
    sentence = "make all that forward uses from the state_dict, nothing from memory that was never filled"
    require_same(subject.run(twin, x), subject.run(network, x), sentence)


@check("let parameters be written in place, and let the next call use what was written")
def check_writes(subject: Subject) -> None:
    """A value written in place into a weight is used by the next call, or refused; it never does nothing."""
    network, twin = subject.build_deep(), subject.build_deep()
    x = subject.inputs(network)
    with torch.no_grad():
        subject.run(network, x)  # what is kept from call to call is kept now
        for parameter in network.parameters():
            parameter.data.mul_(0.5)
        after = subject.run(network, x)
        twin.load_state_dict(network.state_dict())
        require_close(after, subject.run(twin, x), "use the parameters as they are at each call, not as they were")
    for module in network.modules():
        for name in getattr(module, "parametrizations", {}):
            require(_is_seen(module, name), f"refuse writing into {name}, which is computed: it changes nothing")


@check("write forward so that torch.export.export can follow it, with no decision on values of tensors")
def check_export(subject: Subject) -> None:
    """`torch.export.export`, without gradients and parametrisations, gives the same output and state."""
    if not is_dynamo_supported():
        raise Skipped("torch.export does not run on this platform")
    network = _plain(subject.build())
    _require_declared(network, "what torch.export follows of an adapted module is up to that module")
    x = subject.given(network, subject.inputs(network, time=3, batch=2))
    with torch.no_grad():
        with unreported():
            program = torch.export.export(network, (x,))
        require_close(program.module()(x), network(x), "let forward be the same function when it is exported")


def _require_declared(network: Network, reason: str) -> None:
    """Skip a check for adapted modules, which declare nothing of themselves."""
    if not getattr(network, "declares", True):
        raise Skipped(reason)


@torch.no_grad()
def _is_seen(module: nn.Module, name: str) -> bool:
    try:
        nn.init.zeros_(getattr(module, name))
    except (RuntimeError, ValueError):
        return True  # refused, which is as good
    return not bool(getattr(module, name).any())


def _plain(network: Network) -> Any:
    """Return a copy whose weights are parameters, as far as its parametrisations can be removed."""
    network = deepcopy(network)
    for module in list(network.modules()):
        for name in list(getattr(module, "parametrizations", {})):
            parametrize.remove_parametrizations(module, name)
    return network
