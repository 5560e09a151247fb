"""Many networks of one shape as one: their parameters stacked, their recurrences one batched recurrence."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from mnemoscope.core.errors import Description, expected
from mnemoscope.nn.options import public_class
from mnemoscope.nn.stack import Stack
from mnemoscope.nn.state import State

__all__ = ["Population"]


class Population(nn.Module):
    """K networks of one shape.

    ``output, hx = population(x)`` with x (K, T, B, d) runs member k on x[k]; the parameters are stacked, so that one
    optimiser moves all of them, each by its own gradient.

    Parameters
    ----------
    layers
        Networks of the same class and options; their parameters are copied.
    """

    def __init__(self, layers: Sequence[Stack]) -> None:
        super().__init__()
        kinds = {(public_class(type(layer)), repr(layer)) if isinstance(layer, Stack) else layer for layer in layers}
        if len(kinds) != 1 or not isinstance(layers[0], Stack):
            raise expected("layers", "one or more networks of the same class and options", Description(f"{layers!r}"))
        first = layers[0]
        self.size = len(layers)
        # A list hides the shared network from this module's parameters: it lends its code, not its weights.
        self._base = [deepcopy(first)]
        self.names = [name for name, _ in first.named_parameters()]
        self.weights = nn.ParameterList(torch.stack([_get(layer, name) for layer in layers]) for name in self.names)
        self.buffer_names = [name for name, _ in first.named_buffers()]
        for i, name in enumerate(self.buffer_names):
            self.register_buffer(f"buffer_{i}", torch.stack([_get(layer, name) for layer in layers]))

    def _stacked(self) -> dict[str, Tensor]:
        buffers = {name: getattr(self, f"buffer_{i}") for i, name in enumerate(self.buffer_names)}
        return dict(zip(self.names, self.weights, strict=True)) | buffers

    def forward(
        self, x: Float[Tensor, "members time batch input"], hx: State | None = None
    ) -> tuple[Float[Tensor, "members time batch output"], State]:
        """Run every member on its own sequences; states have the members in front."""
        if x.dim() != 4 or x.shape[0] != self.size:
            raise expected("x", f"of shape ({self.size}, time, batch, input_size)", tuple(x.shape))
        for leaf in tree_leaves(hx):
            if leaf is not None and leaf.shape[:1] != (self.size,):
                raise expected("hx", f"with {self.size} members in front", Description(f"shape {tuple(leaf.shape)}"))
        return self._base[0].train(self.training).run_members(self._stacked(), x, hx)

    @torch.no_grad()
    def member(self, k: int) -> Stack:
        """Return a copy of network k."""
        layer = deepcopy(self._base[0])
        for name, stacked in self._stacked().items():
            _get(layer, name).copy_(stacked[k])
        return layer

    def after_step(self) -> None:
        """Do what every member must do after a step of the optimiser."""
        for k in range(self.size):
            layer = self.member(k)
            layer.after_step()
            with torch.no_grad():
                for name, stacked in self._stacked().items():
                    stacked[k].copy_(_get(layer, name))


def _get(layer: nn.Module, name: str) -> Tensor:
    path, _, leaf = name.rpartition(".")
    found: Tensor = getattr(layer.get_submodule(path), leaf)
    return found.detach()
