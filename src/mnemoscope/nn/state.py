"""States: pytrees of tensors, and how they become one vector per example."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from mnemoscope.core.errors import Description, expected

__all__ = [
    "State",
    "as_type",
    "check_state",
    "complex_of",
    "fits",
    "flatten",
    "index_batch",
    "insert_batch",
    "join_cells",
    "remove_batch",
    "split_cells",
    "unflatten",
]

State = Any
"""A pytree of tensors. Every leaf has the batch at one common axis, `axis` below: 1 in torch's layout
``(layers * directions, batch, n)``, 0 in all others."""


def flatten(state: State, axis: int) -> Tensor:
    """Return the state as ``(batch, size)`` real numbers; integer leaves (lengths, counters) are left out."""
    rows = [_rows(leaf, axis) for leaf in tree_leaves(state) if _counts(leaf)]
    return torch.cat(rows, dim=1)


def unflatten(flat: Tensor, like: State, axis: int) -> State:
    """Invert `flatten`: a state shaped as `like`, whose integer leaves it keeps."""
    leaves, spec = tree_flatten(like)
    width = flatten(like, axis).shape[1]
    if flat.dim() != 2 or flat.shape[1] != width:
        raise expected("flat state", f"of shape (batch, {width})", tuple(flat.shape))
    rebuilt, start = [], 0
    for leaf in leaves:
        if not _counts(leaf):
            rebuilt.append(leaf)
            continue
        first = leaf.movedim(axis, 0)
        width = _rows(leaf, axis).shape[1]
        part = flat[:, start : start + width]
        start += width
        shape = (flat.shape[0], *first.shape[1:])
        part = torch.view_as_complex(part.reshape(*shape, 2)) if leaf.is_complex() else part.reshape(shape)
        rebuilt.append(part.movedim(0, axis))
    return tree_unflatten(rebuilt, spec)


def insert_batch(state: State, axis: int) -> State:
    """Give an unbatched state a batch of one."""
    return tree_map(lambda leaf: leaf.unsqueeze(axis), state)


def remove_batch(state: State, axis: int) -> State:
    """Take the batch of one away."""
    return tree_map(lambda leaf: leaf.squeeze(axis), state)


def index_batch(state: State, index: Tensor | None, axis: int) -> State:
    """Reorder the examples of a state."""
    return state if index is None else tree_map(lambda leaf: leaf.index_select(axis, index), state)


def check_state(state: State, like: State) -> None:
    """Raise the standard error unless `state` has the structure, shapes and type of `like`."""
    leaves, spec = tree_flatten(state)
    wanted, wanted_spec = tree_flatten(like)
    all_tensors = all(isinstance(leaf, Tensor) for leaf in leaves)
    if spec != wanted_spec or not all_tensors:
        raise expected("hx", _describe(like), Description(_describe(state)))
    for leaf, want in zip(leaves, wanted, strict=True):
        if leaf.shape != want.shape:
            raise expected("hx", _describe(like), Description(_describe(state)))
        if leaf.dtype != want.dtype and not (_counts(leaf) and torch.is_autocast_enabled(leaf.device.type)):
            raise expected("hx", f"of type {want.dtype}", leaf.dtype)


_LEAF = tree_flatten(0)[1]


def fits(state: State, spec: Any, like: list[tuple[torch.Size, torch.dtype]], batch: int, axis: int) -> bool:
    """Say whether a state has a known structure: leaves of these shapes, but for the batch, and types."""
    leaves, came = ([state], _LEAF) if isinstance(state, Tensor) else tree_flatten(state)
    return bool(came == spec) and all(
        isinstance(leaf, Tensor) and leaf.dtype == dtype and leaf.shape == (*shape[:axis], batch, *shape[axis + 1 :])
        for leaf, (shape, dtype) in zip(leaves, like, strict=True)
    )


def join_cells(cells: list[State], axis: int) -> State:
    """Return the states of a stack's cells as one: a tuple where the batch is in front, else torch's layout."""
    if axis == 0:
        return tuple(cells)
    if isinstance(cells[0], Tensor):
        return torch.stack(cells)  # memory of its own: the last state may be a part of the output
    return tree_map(lambda *leaves: torch.stack(leaves), cells[0], *cells[1:])


def split_cells(state: State, axis: int, count: int) -> list[State]:
    """Invert `join_cells`: the states of `count` cells."""
    if axis == 0:
        return list(state)
    if isinstance(state, Tensor):
        return list(state.unbind(0))
    return [tree_map(lambda leaf, i=i: leaf[i], state) for i in range(count)]


def as_type(state: State, dtype: torch.dtype) -> State:
    """Return the state in another real type, from which it differs only under autocast."""
    return tree_map(lambda leaf: _rounded(leaf, dtype) if _counts(leaf) else leaf, state)


def complex_of(dtype: torch.dtype) -> torch.dtype:
    """Return the complex type of a real one; written out, since torch.compile does not know `dtype.to_complex`."""
    return torch.complex128 if dtype == torch.float64 else torch.complex64


def _rounded(leaf: Tensor, dtype: torch.dtype) -> Tensor:
    return leaf.to(complex_of(dtype) if leaf.is_complex() else dtype)


def _counts(leaf: Tensor) -> bool:
    return leaf.is_floating_point() or leaf.is_complex()


def _rows(leaf: Tensor, axis: int) -> Tensor:
    first = torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf
    return first.movedim(axis, 0).flatten(1)


def _describe(state: State) -> str:
    if isinstance(state, Tensor):
        return f"a tensor of shape {tuple(state.shape)}"
    if isinstance(state, list | tuple):
        name = type(state).__name__
        return f"a {name} of ({', '.join(_describe(part) for part in state)})"
    return f"a {type(state).__name__}"
