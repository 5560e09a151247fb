"""Runs of one network in each of its forms and number types, with everything that can differ between them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from mnemoscope.core.errors import UserError, choice
from mnemoscope.measures.dynamics import ROOM, Dynamics
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.state import State

__all__ = ["STEPS", "TYPES", "Run", "differentiated", "forms_of", "in_type", "recurrent_of", "relative", "tolerance"]

STEPS = "steps"
"""Name of the form that calls `step` for one input after the other: what all others are compared with."""

TYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Run:
    """Outputs, last state, and gradients at inputs and parameters, of one call.

    Attributes
    ----------
    outputs
        (time, batch, ..).
    state
        Flat, (batch, size).
    gradients
        Of a fixed linear function of all outputs; empty where they were not asked for.
    """

    outputs: Tensor
    state: Tensor
    gradients: tuple[Tensor, ...] = ()


def tolerance(dtype: torch.dtype, steps: int = 1) -> float:
    """Return the relative difference that rounding explains: sqrt(eps), and more beyond 512 steps, where it adds up."""
    return float(torch.finfo(dtype).eps ** 0.5 * max(1.0, steps / 512) ** 0.5)


def relative(found: Tensor, wanted: Tensor) -> float:
    """Return the largest difference over the largest number of `wanted`; infinite where only one is finite."""
    if not wanted.numel():
        return 0.0
    wide = [each.detach().to(torch.complex128 if each.is_complex() else torch.float64) for each in (found, wanted)]
    gap, size = (float(each.abs().max()) for each in (wide[0] - wide[1], wide[1]))
    if math.isfinite(gap) and math.isfinite(size):
        return gap / size if size > 0 else gap
    if not bool(torch.equal(wide[0].isfinite(), wide[1].isfinite())):
        return float("inf")
    finite = wide[1].isfinite()
    if not bool(finite.any()):
        return 0.0
    gap, size = (float(each[finite].abs().max()) for each in (wide[0] - wide[1], wide[1]))
    return gap / size if size > 0 else gap


def recurrent_of(network: nn.Module | Dynamics, what: str) -> Recurrent:
    """Return a copy of a network in eval mode, in its own type; a stranger's module is adapted."""
    own: nn.Module = network.original if isinstance(network, Dynamics) else network
    if not isinstance(own, Recurrent):
        from mnemoscope.nn.adapt import adapt

        own = adapt(own)
    if not isinstance(own, Recurrent):
        raise UserError(f"{what} needs a network of kind 'recurrent', got one of kind {getattr(own, 'kind', None)!r}")
    twin = copy.deepcopy(own).eval()
    if twin.grows and twin.capacity is None:
        twin.capacity = ROOM
    return twin


def in_type(network: Recurrent, name: str) -> Recurrent:
    """Return a copy whose parameters and buffers are of a type, complex ones of the complex type that fits.

    A stranger's module of several types keeps them all, and is compared in the type of its state alone.
    """
    real = TYPES[choice("dtypes", name, TYPES)]
    several = sorted({str(each.dtype).removeprefix("torch.") for each in network.parameters() if not each.is_complex()})
    if len(several) > 1:
        if network.flatten_state(network.init_state(1)).dtype != real:
            raise UserError(f"its weights are of several types, {' and '.join(several)}, and stay so")
        return copy.deepcopy(network)
    if any(each.is_complex() for each in network.parameters()) and real.itemsize < 4:
        raise UserError(f"there are no complex numbers of {name}")

    def convert(tensor: Tensor) -> Tensor:
        if tensor.is_complex():
            return tensor.to(real.to_complex())
        return tensor.to(real) if tensor.is_floating_point() else tensor

    twin = copy.deepcopy(network)
    apply: Any = twin._apply  # Module.to leaves the precision of complex parameters as it is
    apply(convert)
    return twin


def forms_of(network: Recurrent) -> dict[str, Callable[[Recurrent, Tensor], tuple[Tensor, State]]]:
    """Return the ways to run a network: step by step first, then whole sequences in every form that it has."""

    def whole(mode: str) -> Callable[[Recurrent, Tensor], tuple[Tensor, State]]:
        def run(net: Recurrent, x: Tensor) -> tuple[Tensor, State]:
            if len(net.modes) > 1:
                net.mode = mode
            return forward(net, x)

        return run

    return {STEPS: _stepped, **{mode: whole(mode) for mode in network.modes}}


def forward(network: Recurrent, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
    """Call a network on inputs (time, batch, ..), whatever its order of time and batch is."""
    y, last = network(x.transpose(0, 1) if network.batch_first else x, state)
    return (y.transpose(0, 1) if network.batch_first else y), last


def _stepped(network: Recurrent, x: Tensor) -> tuple[Tensor, State]:
    step, state, outputs = network.stepper(), network.init_state(x.shape[1], device=x.device, dtype=x.dtype), []
    for each in x:
        y, state = step(each, state)
        outputs.append(y)
    return torch.stack(outputs), state


def differentiated(
    network: Recurrent, run: Callable[[Recurrent, Tensor], tuple[Tensor, State]], x: Tensor, gradients: bool
) -> Run:
    """Run a network; gradients are those of the outputs' scalar product with fixed random numbers."""
    with torch.set_grad_enabled(gradients):
        x = x.clone().requires_grad_(gradients)
        y, state = run(network, x)
        flat = network.flatten_state(state)
        if not gradients or not y.requires_grad:
            return Run(y.detach(), flat.detach())
        weights = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(x)
        leaves = [x, *(each for each in network.parameters() if each.requires_grad and each.numel())]
        parts = [part for part in tree_leaves((y,)) if part.requires_grad]
        total = sum(((part.real if part.is_complex() else part) * weights).sum() for part in parts)
        found = torch.autograd.grad(total, leaves, materialize_grads=True)
    return Run(y.detach(), flat.detach(), found)
