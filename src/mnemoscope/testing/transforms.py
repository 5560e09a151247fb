"""torch.func and torch.compile: what measures and populations of networks stand on."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._dynamo.eval_frame import is_dynamo_supported
from torch.func import functional_call, grad, jacrev, vmap
from torch.utils._pytree import tree_leaves

from mnemoscope.testing.checking import check, unreported
from mnemoscope.testing.compare import require, require_close, require_same
from mnemoscope.testing.report import Skipped
from mnemoscope.testing.subject import BATCH, Network, Subject

__all__ = [
    "check_compile",
    "check_flatten_state",
    "check_functional_call",
    "check_jacobian",
    "check_state_size",
    "check_vmap_gradients",
    "check_vmap_inputs",
    "check_vmap_parameters",
]

MEMBERS = 3
Tensors = dict[str, Tensor]


@check("take every weight from the module's parameters and buffers when forward runs")
def check_functional_call(subject: Subject) -> None:
    """`torch.func.functional_call` with another network's parameters and buffers is that other network."""
    network, other = subject.build_deep(), subject.build_deep()
    x = subject.inputs(network)
    require_close(
        functional_call(network, (_parameters(other), _buffers(other)), (subject.given(network, x),)),
        other(subject.given(other, x)),
        "take every weight from the module's parameters and buffers when forward runs, never from a copy",
    )


@check("write forward with operations that torch.func.vmap can batch, and no decision on values of tensors")
def check_vmap_parameters(subject: Subject) -> None:
    """`torch.func.vmap` over stacked parameters and buffers gives what a loop over the networks gives."""
    networks = [subject.build_deep() for _ in range(MEMBERS)]
    base = networks[0]
    x = subject.given(base, subject.inputs(base))
    batched = vmap(lambda p, b: functional_call(base, (p, b), (x,)))(*_stack(networks))
    looped = [tree_leaves(network(x)) for network in networks]
    require_close(
        tree_leaves(batched),
        [torch.stack(leaves) for leaves in zip(*looped, strict=True)],
        "make vmap over stacked parameters and buffers give what a loop gives",
    )


@check("write backward so that torch.func.vmap can batch it too")
def check_vmap_gradients(subject: Subject) -> None:
    """`vmap(grad(loss))` over stacked parameters gives the gradients that a loop gives."""
    networks = [subject.build_deep() for _ in range(MEMBERS)]
    base = networks[0]
    x = subject.given(base, subject.inputs(base))

    def loss(parameters: Tensors, buffers: Tensors) -> Tensor:
        y: Tensor = functional_call(base, (parameters, buffers), (x,))[0]
        return y.square().sum()

    batched = vmap(grad(loss))(*_stack(networks))
    for i, network in enumerate(networks):
        network(x)[0].square().sum().backward()
        own = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in network.named_parameters()}
        require_close(
            {name: batched[name][i] for name in own},
            own,
            "make vmap(grad(loss)) over stacked parameters give the gradients that a loop gives",
            tolerance=1e-3,
        )


@check("write forward with operations that torch.func.vmap can batch, and no decision on values of tensors")
def check_vmap_inputs(subject: Subject) -> None:
    """`torch.func.vmap` over several batches of input gives what a loop gives."""
    network = subject.build_deep()
    x = torch.stack([subject.given(network, subject.inputs(network)) for _ in range(MEMBERS)])
    looped = torch.stack([network(part)[0] for part in x])
    require_close(vmap(lambda part: network(part)[0])(x), looped, "make vmap over inputs give what a loop gives")


@check("make flatten_state and unflatten_state inverse to each other")
def check_flatten_state(subject: Subject) -> None:
    """`flatten_state` gives one real row per example, and `unflatten_state` gives the state back bit for bit."""
    network = subject.build_deep()
    subject.require(network, "flatten_state", "unflatten_state")
    state = subject.state(network)
    flat = network.flatten_state(state)
    require(
        flat.dim() == 2 and flat.shape[0] == BATCH and flat.is_floating_point(),
        "return one row of real numbers per example from flatten_state",
    )
    back = network.unflatten_state(flat, state)
    require_same(back, state, "make unflatten_state give back what flatten_state got")


@check("make state_size the width of flatten_state")
def check_state_size(subject: Subject) -> None:
    """`state_size` is the count of real numbers in the state of one example, of one layer and of several."""
    for network in (subject.build(), subject.build_deep()):
        subject.require(network, "state_size", "flatten_state")
        if network.state_size is None:
            raise Skipped("the state grows with time")
        width = network.flatten_state(subject.state(network)).shape[1]
        require(network.state_size == width, f"set state_size to the width of flatten_state, {width}")
        if hasattr(network, "init_state"):
            start = network.flatten_state(network.init_state(1)).shape[1]
            require(start == width, "give init_state as many numbers as the state that forward returns")


@check("write step with operations that torch.func can differentiate")
def check_jacobian(subject: Subject) -> None:
    """`torch.func.jacrev` through `step` gives the Jacobian of finite differences, apart for each example (float64)."""
    network = subject.build_deep().double()
    subject.require(network, "step", "flatten_state", "unflatten_state")
    subject.require_causal(network)
    x, state = subject.inputs(network)[0], subject.state(network)

    def advance(flat: Tensor) -> Tensor:
        new: Tensor = network.flatten_state(network.step(x, network.unflatten_state(flat, state))[1])
        return new

    flat = network.flatten_state(state)
    jacobian = jacrev(advance)(flat)
    require_close(
        jacobian,
        _central_differences(advance, flat),
        "make step pure and differentiable, so that its Jacobian is that of finite differences",
        tolerance=1e-6,
    )


@check("write forward so that torch.compile can trace it")
def check_compile(subject: Subject) -> None:
    """`torch.compile` (backend "aot_eager") gives the same output, state and gradients."""
    if not is_dynamo_supported():
        raise Skipped("torch.compile does not run on this platform")
    network = subject.build()
    x = subject.given(network, subject.inputs(network, time=2, batch=2))
    plain = network(x)
    gradients = _gradients(network, plain[0])
    torch._dynamo.reset()
    try:
        with unreported():
            compiled = torch.compile(network, backend="aot_eager")(x)
        alike = "let forward be the same function when it is compiled"
        require_close(compiled, plain, alike)
        require_close(_gradients(network, compiled[0]), gradients, alike)
    finally:
        torch._dynamo.reset()


def _gradients(network: Network, y: Tensor) -> list[Tensor]:
    parameters = [p for p in network.parameters() if p.numel()]
    return list(torch.autograd.grad(y.square().sum(), parameters, materialize_grads=True))


def _central_differences(function: Any, flat: Tensor, step: float = 1e-6) -> Tensor:
    """Return d function(flat) / d flat, of shape (batch, size, batch, size)."""
    shifts = step * torch.eye(flat.numel(), dtype=flat.dtype).reshape(-1, *flat.shape)
    columns = [(function(flat + shift) - function(flat - shift)) / (2 * step) for shift in shifts]
    return torch.stack(columns, dim=-1).reshape(*flat.shape, *flat.shape).detach()


def _parameters(network: Network) -> Tensors:
    return {name: p.detach() for name, p in network.named_parameters()}


def _buffers(network: Network) -> Tensors:
    return dict(network.named_buffers())


def _stack(networks: list[Network]) -> tuple[Tensors, Tensors]:
    # torch.func.stack_module_state refuses parametrised modules, each of which has a class of its own.
    return tuple(
        {name: torch.stack([part[name] for part in parts]) for name in parts[0]}
        for parts in ([_parameters(n) for n in networks], [_buffers(n) for n in networks])
    )  # type: ignore[return-value]
