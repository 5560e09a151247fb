"""One sentence on a foreign module: how it was read, and how well that agrees with the module itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from mnemoscope.core.errors import UserError
from mnemoscope.nn.adapt.call import ABSENT, Call
from mnemoscope.nn.adapt.plan import Plan
from mnemoscope.nn.adapt.probe import undisturbed

__all__ = ["agreement", "reading"]

_STEPS, _FEW, _BATCH, _CHUNK = 12, 5, 3, 3
_FAR = 1e-3
"""A difference, as a share of the largest output, beyond rounding in any precision."""


def reading(network: Any, kind: str, plan: Plan) -> str:
    """Return the sentence, or raise where the network does not give what the module gives."""
    far, ways = agreement(network, plan)
    said = _sentence(network, kind, plan)
    if not far <= _FAR:
        module = type(network.module).__name__
        own = "its own forward" if plan.call.method is None else f"its own {plan.call.method}"
        raise UserError(
            f"{module} was {said}, and run so it differs from {own} by {far:.1e} of the largest output; "
            'call ms.adapt(module, kind="sequence")'
        )
    return f"{said}; agrees with your module to {far:.0e}{ways}" if far else f"{said}; agrees with your module{ways}"


def agreement(network: Any, plan: Plan) -> tuple[float, str]:
    """Return by how much the network differs from the module, as a share of the largest output, and in which forms.

    The module is called as its author would: a cell in a plain loop from the state that it starts with by itself, a
    module over sequences once on the whole. The network is run whole, in chunks and step by step.
    """
    twin = deepcopy(network).eval()  # the module itself keeps no trace
    with undisturbed(twin.module):
        x, own = _compared(twin, plan)
        found = {words: _relative(y, own) for words, y in _forms(twin, plan, x)}
    return max(found.values()), _listed(list(found))


def _compared(network: Any, plan: Plan) -> tuple[Tensor, Tensor]:
    """Return inputs and what the module gives for them: fewer where it takes no more, as with a table of positions."""
    x = _input(network, plan.call)
    if plan.call.whole and network.fixed_length is None:
        for steps in (_STEPS, _FEW):
            with suppress(Exception):  # a module may raise anything at a length that it does not take
                return x[:steps], _own(network.module, plan, x[:steps])
    return x, _own(network.module, plan, x)


def _input(network: Any, call: Call) -> Tensor:
    like = next((p for p in network.parameters() if p.is_floating_point() or p.is_complex()), torch.zeros(()))
    dtype = like.dtype.to_real() if like.is_complex() else like.dtype
    steps = _STEPS if network.fixed_length is None else network.fixed_length
    drawn = torch.randn(steps, _BATCH, network.input_size, generator=torch.Generator().manual_seed(1))
    return drawn.to(like.device, dtype)


def _own(module: Any, plan: Plan, x: Tensor) -> Tensor:
    """Return what the module gives by itself."""
    call = plan.call
    if call.whole:
        with suppress(Exception):  # its forward may need a state, and raise anything without
            return call.outputs(module, x)
    if plan.start is None:  # a block, which fails at this length
        return call.outputs(module, x)
    state: Any = plan.start(module, x.shape[1], x.device, x.dtype)
    if call.whole:
        return call(module, x, state)[0]
    outputs = []
    for now in x:
        y, state = call(module, now, state)
        outputs.append(y)
    with suppress(Exception):  # where it starts by itself, that is its start; else it may raise anything
        outputs[0] = call(module, x[0], ABSENT)[0]
    shapes = list(dict.fromkeys(tuple(y.shape) for y in outputs))
    if len(shapes) > 1:
        words = f"outputs of one shape at every step, got {shapes[0]} and then {shapes[1]}"
        raise UserError(f"{type(module).__name__} must return {words}")
    return torch.stack(outputs)


def _forms(network: Any, plan: Plan, x: Tensor) -> Iterator[tuple[str, Tensor]]:
    if plan.layout is None:
        yield "whole", network.run(x, None)
        return
    state = network.init_state(x.shape[1], device=x.device, dtype=x.dtype)
    yield "whole", network.run(x, state, None)[0]
    if network.causal:
        y, between = network.run(x[:_CHUNK], state, None)
        yield "in chunks", torch.cat([y, network.run(x[_CHUNK:], between, None)[0]])
        outputs, now = [], state
        for each in x:
            y, now = network.step(each, now)
            outputs.append(y)
        yield "step by step", torch.stack(outputs)


def _relative(y: Tensor, own: Tensor) -> float:
    if y.shape != own.shape:
        return float("inf")
    # What overflows after some steps is told by the checks before a measurement; until then it must agree.
    kept = own.isfinite().flatten(1).all(1).cumprod(0).bool()
    y, own = y[kept], own[kept]
    if not len(own):
        return 0.0
    return float((y - own).abs().max() / own.abs().max().clamp_min(torch.finfo(own.dtype).tiny))


def _listed(words: list[str]) -> str:
    several = f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]
    return f", {several}"


def _sentence(network: Any, kind: str, plan: Plan) -> str:
    call = plan.call
    words = {"cell": "a cell", "recurrent": "a recurrent module", "sequence": "a block without a state"}[kind]
    parts = [f"read as {words}" + (f" by its method {call.method}" if call.method else "")]
    orders = {"TBD": "time first", "BTD": "batch first", "BDT": "batch, features, time"}
    parts.append(orders.get(call.order or "BTD", f"axes {call.order}"))
    if plan.layout is not None:
        parts.append(f"state {_state(call, plan)}")
    if call.prefixes:
        parts.append("one answer after the last step, asked at every prefix")
    parts.append(f"inputs d = {plan.input_size}")
    if plan.output_size != plan.input_size or plan.layout is None:
        parts.append(f"outputs {plan.output_size}")
    if not network.causal:
        parts.append("not causal")
    return ", ".join(parts)


def _state(call: Call, plan: Plan) -> str:
    """Return the parts of the state with their sizes: ``h (32) and c (32)``."""
    assert plan.layout is not None
    leaves = tree_leaves(plan.layout.leaves)
    names = list(call.state_names) if len(call.state_names) == len(leaves) else [""] * len(leaves)
    sizes = [
        " x ".join(str(size) for axis, size in enumerate(leaf.shape) if axis != leaf.axis and (size > 1 or axis > 1))
        + (" complex" if leaf.dtype.is_complex else "")
        for leaf in leaves
    ]
    found = [f"{name} ({size or 1})".strip() for name, size in zip(names, sizes, strict=True)]
    if len(found) > 4:
        return f"of {len(found)} tensors"
    return f"{', '.join(found[:-1])} and {found[-1]}" if len(found) > 1 else found[0]
