"""Many networks of one shape as one: their parameters stacked, their recurrences one batched recurrence."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any, Self

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from mnemoscope.core.errors import Description, expected
from mnemoscope.nn.network import Network
from mnemoscope.nn.options import public_class
from mnemoscope.nn.state import State

__all__ = ["Population"]


class Population(nn.Module):
    """K networks of one shape.

    ``output, hx = population(x)`` with x (K, T, B, d) runs member k on x[k], and gives what the members give, members
    in front; the parameters are stacked, so that one optimiser moves all of them, each by its own gradient.

    Parameters
    ----------
    layers
        Networks of the same class, options, type and mode (training or not); their parameters are copied, and are
        trained unless they are frozen in the first.
    """

    def __init__(self, layers: Iterable[Network]) -> None:
        super().__init__()
        wanted = "a list of networks of the same class, options, type and mode"
        if not isinstance(layers, Iterable):
            raise expected("layers", wanted, Description(_describe(layers)))
        layers = list(layers)
        if len({_kind(layer) for layer in layers}) != 1 or not isinstance(layers[0], Network):
            raise expected("layers", wanted, Description("; ".join(dict.fromkeys(map(_describe, layers))) or "none"))
        first = layers[0]
        self.size = len(layers)
        self.train(first.training)
        # A list hides the shared network from this module's parameters: it lends its code, not its weights.
        self._base = [deepcopy(first)]
        self.names = [name for name, _ in first.named_parameters()]
        self.weights = nn.ParameterList(
            nn.Parameter(torch.stack([_get(layer, name) for layer in layers]), requires_grad=parameter.requires_grad)
            for name, parameter in first.named_parameters()
        )
        self.buffer_names = [name for name, _ in first.named_buffers()]
        for i, name in enumerate(self.buffer_names):
            self.register_buffer(f"buffer_{i}", torch.stack([_get(layer, name) for layer in layers]))

    def _stacked(self) -> dict[str, Tensor]:
        buffers = {name: getattr(self, f"buffer_{i}") for i, name in enumerate(self.buffer_names)}
        return dict(zip(self.names, self.weights, strict=True)) | buffers

    def forward(self, x: Float[Tensor, "members time batch *input"], hx: State | None = None) -> Any:
        """Run every member on its own sequences; states have the members in front."""
        base = self._base[0].train(self.training)
        shape = base.input_shape
        if not isinstance(x, Tensor) or x.dim() != 3 + len(shape) or x.shape[0] != self.size:
            one = "input_size" if len(shape) == 1 else ", ".join(map(str, shape))
            order = "batch, time" if base.batch_first else "time, batch"
            raise expected("x", f"a tensor of shape ({self.size}, {order}, {one})", _came(x))
        for leaf in tree_leaves(hx):
            if leaf is not None and (not isinstance(leaf, Tensor) or leaf.shape[:1] != (self.size,)):
                raise expected("hx", f"a state with {self.size} members in front", _came(leaf))
        return base.run_members(self._stacked(), x, *([hx] if base.stateful else []))

    @torch.no_grad()
    def member(self, k: int) -> Network:
        """Return a copy of network k."""
        if isinstance(k, bool) or not isinstance(k, int) or not -self.size <= k < self.size:
            raise expected("k", f"the number of a member, 0 to {self.size - 1}", k)
        layer = deepcopy(self._base[0]).train(self.training)
        for name, stacked in self._stacked().items():
            _get(layer, name).copy_(stacked[k])
        return layer

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        self._base[0]._apply(fn, recurse)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def after_step(self) -> None:
        """Do what every member must do after a step of the optimiser."""
        for k in range(self.size):
            layer = self.member(k)
            layer.after_step()
            with torch.no_grad():
                for name, stacked in self._stacked().items():
                    stacked[k].copy_(_get(layer, name))


def _kind(layer: object) -> tuple[type, str]:
    """Return what members must have in common."""
    return public_class(type(layer)) if isinstance(layer, Network) else type(layer), _describe(layer)


def _describe(layer: object) -> str:
    """Return it in one line."""
    if not isinstance(layer, Network):
        return type(layer).__name__
    like = next(layer.parameters())
    return f"{layer!r} of {like.dtype} on {like.device}, {'in training' if layer.training else 'in evaluation'}"


def _came(value: object) -> Description:
    return Description(f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__)


def _get(layer: nn.Module, name: str) -> Tensor:
    path, _, leaf = name.rpartition(".")
    found: Tensor = getattr(layer.get_submodule(path), leaf)
    return found.detach()
