"""Weights of one layer: by name, with the layer that they belong to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._pytree import register_pytree_node, tree_map

from mnemoscope.nn.state import complex_of

__all__ = ["Layer", "Submodule", "Weights"]


@dataclass(frozen=True)
class Layer:
    """One layer of a network in one direction, as it is declared.

    Attributes
    ----------
    index
        Its number, from 0.
    reverse
        Whether it reads sequences from their end.
    input_shape
        Shape of what it reads at a step.
    last
        Whether its output is that of the network.
    names, roles
        Names in the module and roles of its weights, by the names that `declare` gave them.
    """

    index: int = 0
    reverse: bool = False
    input_shape: tuple[int, ...] = ()
    last: bool = True
    suffix: str = ""
    names: dict[str, str] = field(default_factory=dict, compare=False)
    roles: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def input_size(self) -> int:
        """Numbers that it reads at a step."""
        return math.prod(self.input_shape)


class Weights(dict[str, Any]):
    """Weights of one layer and direction by name, ``w["weight_ih"]``, every map computed; ``w.layer`` is the layer."""

    layer: Layer

    def __init__(self, layer: Layer, found: Any = ()) -> None:
        super().__init__(found)
        self.layer = layer

    def without(self, *names: str) -> Self:
        """Return all but some."""
        return type(self)(self.layer, ((k, v) for k, v in self.items() if k not in names))

    def to(self, dtype: torch.dtype) -> Self:
        """Return them in another real type."""
        rounded: Self = tree_map(lambda leaf: _rounded(leaf, dtype), self)
        return rounded


class Submodule:
    """A submodule as one of a layer's weights: called, it uses the values that it came with."""

    def __init__(self, module: nn.Module, values: dict[str, Tensor] | None = None) -> None:
        self.module, self.values = module, values

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        if self.values is None:  # its own
            return self.module(*args, **kwargs)
        return functional_call(self.module, self.values, args, kwargs)

    def _tensors(self) -> dict[str, Tensor]:
        return dict(self.module.named_parameters()) | dict(self.module.named_buffers())


def _rounded(leaf: Any, dtype: torch.dtype) -> Any:
    if not isinstance(leaf, Tensor) or not (leaf.is_floating_point() or leaf.is_complex()):
        return leaf
    return leaf.to(complex_of(dtype) if leaf.is_complex() else dtype)


def _flatten_submodule(submodule: Submodule) -> tuple[list[Any], Any]:
    values = submodule._tensors() if submodule.values is None else submodule.values
    return list(values.values()), (submodule.module, tuple(values))


def _unflatten_submodule(leaves: Any, context: Any) -> Submodule:
    module, names = context
    return Submodule(module, dict(zip(names, leaves, strict=True)))


register_pytree_node(
    Weights,
    lambda w: (list(w.values()), (w.layer, tuple(w))),
    lambda leaves, context: Weights(context[0], zip(context[1], leaves, strict=True)),
)
register_pytree_node(Submodule, _flatten_submodule, _unflatten_submodule)
