"""Descent of one network's parameters: gradient, clipping, optimiser, and what comes back from a checkpoint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from mnemoscope.core.errors import Description, expected
from mnemoscope.training.cautions import penalised
from mnemoscope.training.model import Model
from mnemoscope.training.options import Options

__all__ = [
    "Descent",
    "as_real",
    "autocast",
    "base_rates",
    "decaying",
    "full_state",
    "load_weights",
    "part",
    "read_as",
    "trained_parameters",
]


class Descent(ABC):
    """What moves the parameters of one network, in place.

    Parameters
    ----------
    model
        Whose parameters move.
    options
        Rates, optimiser, clipping, penalty, precision.
    """

    def __init__(self, model: Model, options: Options) -> None:
        self.model, self.options = model, options
        self.size = 1
        self.names, self.parameters = trained_parameters(model)
        self.base_rates = base_rates(model, options)
        rates, decays = [self.base_rates[name] for name in self.names], decaying(model, options)
        self.optimiser = options.optimiser(as_real(self.parameters), rates, [name in decays for name in self.names])
        self.clipping = options.clipping
        self._recurrent = [i for i, name in enumerate(self.names) if name in model.recurrent_parameters]
        self._like = self.parameters[0]
        self._penalised = penalised(model, [options.penalty])
        self.carry: Any = None
        self.carries = False

    @abstractmethod
    def __call__(self, batches: Sequence[Any]) -> list[float]:
        """Learn from the one batch of a sequence, and return its loss before that."""

    @abstractmethod
    def scores(self) -> list[float]:
        """Return the score since the last line of the metrics."""

    def descend(self, loss: Tensor) -> None:
        """Make one step of the optimiser down a loss, the network's penalty added."""
        total = loss + self.options.penalty * self.model.penalty() if self._penalised else loss  # type: ignore[operator]
        self.optimiser.take(as_real(torch.autograd.grad(total, self.parameters, allow_unused=True)))
        if self.clipping is not None:
            self.clipping(self.optimiser, self._recurrent, None)
        self.optimiser.step()
        self.model.after_step()

    def set_rates(self, factors: Sequence[float]) -> None:
        """Multiply the rates that training began with."""
        self.optimiser.set_rates([factors[0] * self.base_rates[name] for name in self.names])

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that the next step depends on, copied, but for the generators."""
        found = {f"model/{name}": tensor for name, tensor in full_state(self.model).items()}
        found |= {f"optimiser/{name}": tensor for name, tensor in self.optimiser.tensors().items()}
        leaves = [] if self.carry is None else tree_leaves(self.carry)
        found |= {f"carry/{i}": leaf for i, leaf in enumerate(leaves)}
        return {name: tensor.detach().clone() for name, tensor in found.items()}

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` returned."""
        self.load_state(0, part(tensors, "model/"))
        self.optimiser.load(part(tensors, "optimiser/"))
        leaves = part(tensors, "carry/")
        if leaves:
            self.carry = self._carry_of([leaves[str(i)].to(self._like.device) for i in range(len(leaves))])

    def _carry_of(self, leaves: list[Tensor]) -> Any:
        layer = self.model.layer
        structure = tree_flatten(layer.init_state(1))[1]
        return tree_unflatten(leaves, structure)

    def state(self, member: int = 0) -> dict[str, Tensor]:
        """Return a copy of the network's parameters and buffers."""
        return {name: tensor.detach().clone() for name, tensor in full_state(self.model).items()}

    @torch.no_grad()
    def load_state(self, member: int, state: Mapping[str, Tensor]) -> None:
        """Take over what `state` returned."""
        load_weights(self.model, state)

    def finite(self) -> list[bool]:
        """Say whether all parameters are finite."""
        return [all(bool(p.isfinite().all()) for p in self.parameters)]

    def train_mode(self, training: bool) -> None:
        """Switch between learning and answering."""
        self.model.train(training)


def full_state(model: Model) -> dict[str, Tensor]:
    """Return parameters and buffers by name, with those that a state_dict leaves out."""
    return dict(model.named_parameters()) | dict(model.named_buffers())


@torch.no_grad()
def load_weights(model: Model, state: Mapping[str, Tensor]) -> None:
    """Take over parameters and buffers by name."""
    for name, own in full_state(model).items():
        own.copy_(state[name])


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def trained_parameters(model: Model) -> tuple[list[str], list[Tensor]]:
    """Return names and parameters that learn; one line when there are none or they are of different types."""
    found = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not found:
        raise expected("the network", "with parameters that learn", Description("none"))
    kinds = {(p.dtype.to_real() if p.is_complex() else p.dtype, p.device) for p in found.values()}
    if len(kinds) > 1:
        named = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
        raise expected("the parameters", "of one type on one device", Description(named))
    return list(found), list(found.values())


def base_rates(model: Model, options: Options) -> dict[str, float]:
    """Return the rate of each parameter by name, as the network divides its parameters."""
    return {name: float(group["lr"]) for name, group in _groups(model, options)}


def decaying(model: Model, options: Options) -> set[str]:
    """Return the names of the parameters that weight decay applies to: all whose group does not say otherwise."""
    return {name for name, group in _groups(model, options) if group.get("weight_decay", 1.0)}


def _groups(model: Model, options: Options) -> list[tuple[str, dict[str, Any]]]:
    assert options.lr is not None
    names = {id(p): name for name, p in model.named_parameters()}
    groups = model.parameter_groups(options.lr, options.lr_orthogonal, options.lr_state_space)
    return [(names[id(p)], group) for group in groups for p in group["params"]]


def as_real(tensors: Sequence[Any]) -> list[Any]:
    """Return complex tensors as pairs of real numbers, others as they are."""
    return [t if t is None or not t.is_complex() else torch.view_as_real(t.detach().resolve_conj()) for t in tensors]


def read_as(like: Tensor, options: Options) -> torch.dtype:
    """Return the number type in which a network reads its inputs and keeps its state."""
    if options.precision == "bfloat16":
        return torch.bfloat16
    return like.dtype.to_real() if like.is_complex() else like.dtype


def autocast(like: Tensor, options: Options) -> AbstractContextManager[Any]:
    """Return the context of mixed precision, where it was asked for."""
    return torch.autocast(like.device.type, torch.bfloat16) if options.precision == "bfloat16" else nullcontext()
