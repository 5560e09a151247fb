"""The state of a foreign module: its layout, and where it starts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from mnemoscope.core.errors import UserError
from mnemoscope.nn.state import State

__all__ = ["Filled", "Layout", "Leaf", "Made", "Start", "counterpart", "describe", "is_tensors"]


@dataclass(frozen=True)
class Leaf:
    """One tensor of a state: its shape for a batch of one, the axis of the batch, its type, what it starts as.

    `fill` is ``"zeros"``, ``"ones"``, or the name of the parameter or buffer that holds the initial value.
    """

    shape: tuple[int, ...]
    axis: int
    dtype: torch.dtype
    fill: str = "zeros"

    def make(self, module: nn.Module, batch: int, device: Any, dtype: torch.dtype) -> Tensor:
        """Return the initial value for `batch` examples."""
        shape = self.shape_of(batch)
        kind = counterpart(self.dtype, dtype)
        if self.fill == "zeros":
            return torch.zeros(shape, device=device, dtype=kind)
        if self.fill == "ones":
            return torch.ones(shape, device=device, dtype=kind)
        learned: Tensor = attrgetter(self.fill)(module)
        return learned.to(device, kind).reshape(self.shape).expand(shape)

    def shape_of(self, batch: Any) -> tuple[Any, ...]:
        """Return the shape for `batch` examples."""
        return (*self.shape[: self.axis], batch, *self.shape[self.axis + 1 :])


def is_tensors(state: Any) -> bool:
    """Whether `state` is made of tensors only, and of at least one."""
    leaves = tree_leaves(state)
    return bool(leaves) and all(isinstance(leaf, Tensor) for leaf in leaves)


def describe(state: Any, batch: int) -> Any:
    """Return the state with a `Leaf` in place of every tensor; `batch` must be a size that only the batch has."""
    return tree_map(lambda tensor: _leaf(tensor, batch), state)


def _leaf(tensor: Tensor, batch: int) -> Leaf:
    axes = [axis for axis, size in enumerate(tensor.shape) if size == batch]
    if len(axes) != 1:
        shape = tuple(tensor.shape)
        raise UserError(f"every tensor of the state must have one axis for the batch, here of {batch}, got {shape}")
    shape = tuple(1 if axis == axes[0] else size for axis, size in enumerate(tensor.shape))
    return Leaf(shape, axes[0], tensor.dtype)


@dataclass(frozen=True)
class Layout:
    """How the module's own state becomes the network's, and back.

    Vectors ``(batch, n)`` become torch's ``(1, batch, n)``; torch's own layout stays as it is; in all other states
    the batch goes to the front. Lists become one tuple.

    Attributes
    ----------
    leaves
        The module's own state with a `Leaf` in place of every tensor.
    """

    leaves: Any

    @property
    def vectors(self) -> bool:
        """Whether the module's own state is made of vectors ``(batch, n)``."""
        return all(leaf.axis == 0 and len(leaf.shape) == 2 for leaf in tree_leaves(self.leaves))

    @property
    def batch_axis(self) -> int:
        """Where the batch stands in the network's state."""
        torch_like = all(leaf.axis == 1 and len(leaf.shape) == 3 for leaf in tree_leaves(self.leaves))
        return 1 if self.vectors or torch_like else 0

    def outer(self, state: Any) -> State:
        """Return the network's state from the module's."""
        tensors = [self._out(t, leaf) for t, leaf in zip(tree_leaves(state), tree_leaves(self.leaves), strict=True)]
        return tuple(tensors) if _has_list(self.leaves) else tree_unflatten(tensors, tree_flatten(self.leaves)[1])

    def inner(self, state: State) -> Any:
        """Return the module's state from the network's."""
        kinds, spec = tree_flatten(self.leaves)
        return tree_unflatten([self._in(t, leaf) for t, leaf in zip(tree_leaves(state), kinds, strict=True)], spec)

    def __str__(self) -> str:
        """Show the shapes of the network's state: ``(1, batch, 4)``."""
        shapes = [leaf.shape_of("batch") for leaf in tree_leaves(self.leaves)]
        if self.vectors:
            shapes = [(1, *shape) for shape in shapes]
        elif self.batch_axis == 0:
            shapes = [("batch", *(size for size in shape if size != "batch")) for shape in shapes]
        return " and ".join(f"({', '.join(map(str, shape))})" for shape in shapes)

    def _out(self, tensor: Tensor, leaf: Leaf) -> Tensor:
        return tensor.unsqueeze(0) if self.vectors else tensor.movedim(leaf.axis, self.batch_axis)

    def _in(self, tensor: Tensor, leaf: Leaf) -> Tensor:
        return tensor.squeeze(0) if self.vectors else tensor.movedim(self.batch_axis, leaf.axis)


def _has_list(tree: Any) -> bool:
    children = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, tuple | list) else ()
    return isinstance(tree, list) or any(_has_list(child) for child in children)


@dataclass(frozen=True)
class Filled:
    """A start of zeros, ones or learned values, as the leaves say."""

    leaves: Any

    def __call__(self, module: nn.Module, batch: int, device: Any, dtype: torch.dtype) -> Any:
        """Return the module's own state before the first input."""
        return tree_map(lambda leaf: leaf.make(module, batch, device, dtype), self.leaves)

    def filled(self, fills: tuple[str, ...]) -> Filled:
        """Return the same start with other values."""
        leaves, spec = tree_flatten(self.leaves)
        return Filled(tree_unflatten([replace(a, fill=b) for a, b in zip(leaves, fills, strict=True)], spec))

    def __str__(self) -> str:
        fills = list(dict.fromkeys(leaf.fill for leaf in tree_leaves(self.leaves)))
        return " and ".join(fill if fill in ("zeros", "ones") else f"its {fill}" for fill in fills)


@dataclass(frozen=True)
class Made:
    """A start that a function of the user's makes, or the method of this name of the module."""

    maker: Callable[..., Any] | str

    def __call__(self, module: nn.Module, batch: int, device: Any, dtype: torch.dtype) -> Any:
        """Return the module's own state before the first input."""
        make = getattr(module, self.maker) if isinstance(self.maker, str) else self.maker
        accepted = _parameters(make)
        options = {name: value for name, value in (("device", device), ("dtype", dtype)) if name in accepted}
        state = make(batch, **options) if set(accepted) - set(options) else make(**options)
        return tree_map(lambda leaf: _moved(leaf, device, dtype), state)

    def __str__(self) -> str:
        return f"its method {self.maker} says" if isinstance(self.maker, str) else "init_state says"


Start = Filled | Made
"""Called as ``start(module, batch, device, dtype)``; gives the module's own state before the first input."""


def _parameters(function: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ["batch"]


def _moved(leaf: Any, device: Any, dtype: torch.dtype) -> Any:
    return leaf.to(device, counterpart(leaf.dtype, dtype)) if isinstance(leaf, Tensor) else leaf


def counterpart(kind: torch.dtype, dtype: torch.dtype) -> torch.dtype:
    """Return the type that a tensor of type `kind` has in a network of the real type `dtype`."""
    if kind.is_complex:
        return dtype.to_complex()
    return dtype if kind.is_floating_point else kind
