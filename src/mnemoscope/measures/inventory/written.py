"""Tensors that a module's forward writes into the module itself, beside the state that it returns."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from mnemoscope.core.errors import UserError
from mnemoscope.nn.adapt.adapted import AdaptedSequence
from mnemoscope.nn.adapt.causality import mixes
from mnemoscope.nn.adapt.sizes import input_widths

__all__ = ["Written", "grown_states", "written_by_forward"]

_STEPS, _BATCH = 8, 3


@dataclass(frozen=True)
class Written:
    """A tensor that calls of forward change, or make longer, and that so carries something from one to the next.

    Attributes
    ----------
    name
        Of the buffer or attribute, or its place in what is returned.
    before, after
        It after a call on 8 steps, and after one on 16.
    axis
        Where its examples are; -1: it has none.
    read
        Numbers of it on which the outputs of the next call depend, by their derivatives; None: it has none (integers).
    """

    name: str
    before: Tensor
    after: Tensor
    axis: int
    read: int | None


def written_by_forward(module: nn.Module) -> tuple[Written, ...]:
    """Find what forward writes, in a copy: what two calls on different inputs leave different.

    What is computed once and kept, such as a map of the weights, is the same after both and is not listed.
    """
    twin = copy.deepcopy(module).eval()
    for parameter in twin.parameters():
        parameter.requires_grad_(False)
    call, wide = _caller(twin), copy.deepcopy(twin)
    with torch.no_grad():
        call(twin, _STEPS, 0)
        first = {name: tensor.clone() for name, tensor in _tensors(twin)}
        again = copy.deepcopy(twin)
        call(again, 2 * _STEPS, 1)
        call(wide, _STEPS, 0, _BATCH + 1)
    later, wider = dict(_tensors(again)), dict(_tensors(wide))
    changed = [
        name
        for name, tensor in first.items()
        if name in later and (tensor.shape != later[name].shape or not torch.equal(tensor, later[name]))
    ]
    axes = {name: _axis(first[name].shape, wider[name].shape) for name in changed if name in wider}
    return tuple(
        Written(name.removeprefix("module."), first[name], later[name], axis, _read(twin, name, axis, call))
        for name, axis in axes.items()
    )


def _axis(shape: torch.Size, wider: torch.Size) -> int:
    """Return the axis that is as long as the batch, in calls on two batches."""
    pairs = enumerate(zip(shape, wider, strict=False))
    return next((place for place, pair in pairs if pair == (_BATCH, _BATCH + 1)), -1)


def _tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Give buffers, and tensors that are plain attributes, by name."""
    for prefix, part in module.named_modules():
        own = {**part._buffers, **{name: value for name, value in vars(part).items() if not name.startswith("_")}}
        for name, value in own.items():
            if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
                yield f"{prefix}.{name}" if prefix else name, value


Caller = Callable[..., Any]
"""Calls a module on so many steps, with a seed, and on a batch of another size."""


def _caller(module: nn.Module) -> Caller:
    """Return how a module is called on so many steps: by its own contract, or the first way that works."""
    like = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(()))
    shape = tuple(getattr(module, "input_shape", ()))
    widths = [shape] if shape else [(width.size,) for width in input_widths(module, None)]
    stated = getattr(module, "batch_first", None)

    def caller(width: tuple[int, ...], steps: bool) -> Caller:
        batch_first = stated if isinstance(stated, bool) else not (steps and _goes_along_first(module, width, like))

        def call(owner: nn.Module, length: int, seed: int, batch: int = _BATCH) -> Any:
            order = (batch, length) if batch_first else (length, batch)
            size = (*(order if steps else (batch,)), *width)
            x = torch.randn(size, generator=torch.Generator().manual_seed(seed)).to(like)
            return owner(x)

        return call

    errors = []
    for width in widths:
        for steps in (True, False):
            found = caller(width, steps)
            try:
                with torch.no_grad():
                    found(copy.deepcopy(module), _STEPS, 0)
            except Exception as error:  # a stranger's forward may fail as it likes
                errors.append(str(error))
                continue
            return found
    reason = (" ".join(errors[0].split())[:160]) if errors else "its input size is not known"
    raise UserError(
        f"state_inventory needs a module that can be called on a sequence, got {type(module).__name__}: {reason}"
    )


def _goes_along_first(module: nn.Module, width: tuple[int, ...], like: Tensor) -> bool:
    """Whether time is the first axis of what a module reads: outputs depend on others along it, not along the second.

    Each call is of a copy, since the module keeps something.
    """
    generator = torch.Generator().manual_seed(0)
    x, other = (torch.randn(_STEPS, _STEPS + 1, *width, generator=generator).to(like) for _ in range(2))

    def run(inputs: Tensor) -> Tensor:
        found = next(each for each in tree_leaves(copy.deepcopy(module)(inputs)) if isinstance(each, Tensor))
        return found.flatten(2)

    try:
        with torch.no_grad():
            return mixes(run, x, other, axis=0) and not mixes(run, x, other, axis=1)
    except Exception:  # a stranger's forward may fail as it likes, or answer with anything
        return False


def grown_states(network: AdaptedSequence) -> tuple[Written, ...]:
    """Find what a module returns beside its output that is longer after longer sequences: a state that grows."""
    twin = copy.deepcopy(network).eval()
    like = next((p for p in twin.parameters() if p.is_floating_point()), torch.zeros(()))

    def beside(steps: int, batch: int) -> dict[str, Tensor]:
        with torch.no_grad():
            return twin.beside_output(torch.zeros(steps, batch, *twin.input_shape).to(like))

    short, long, wide = beside(_STEPS, _BATCH), beside(2 * _STEPS, _BATCH), beside(_STEPS, _BATCH + 1)
    axes = {name: _axis(short[name].shape, wide[name].shape) for name in short if name in long and name in wide}
    found = (Written(name, short[name], long[name], axis, None) for name, axis in axes.items() if axis >= 0)
    return tuple(each for each in found if each.after.numel() > each.before.numel())


def _read(module: nn.Module, name: str, axis: int, call: Caller) -> int | None:
    """Return how many numbers of a tensor the outputs of the next call depend on."""
    twin = copy.deepcopy(module)
    prefix, _, last = name.rpartition(".")
    owner = twin.get_submodule(prefix)
    value = getattr(owner, last)
    if not (value.is_floating_point() or value.is_complex()):
        return None
    leaf = value.detach().clone().requires_grad_()
    if last in owner._buffers:
        owner._buffers[last] = leaf
    else:
        setattr(owner, last, leaf)
    with torch.enable_grad():
        outputs = [each for each in tree_leaves(call(twin, _STEPS, 2)) if isinstance(each, Tensor)]
        seen = [each for each in outputs if each.requires_grad]
        if not seen:
            return 0
        generator = torch.Generator().manual_seed(3)
        weighted = [(each * torch.randn(each.shape, generator=generator).to(each)).sum().real for each in seen]
        total = torch.stack(weighted).sum()
        found = torch.autograd.grad(total, leaf, allow_unused=True)[0]
    if found is None:
        return 0
    return int(((found != 0).any(axis) if axis >= 0 else found != 0).sum())
