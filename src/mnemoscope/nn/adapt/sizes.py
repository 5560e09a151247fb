"""Widths of a foreign module's input and state: candidates, likeliest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

__all__ = ["Width", "hidden_sizes", "input_widths", "layer_counts", "stated_sizes"]

_INPUT = ["input_size", "in_features", "input_dim", "in_dim", "input_features", "d_input", "n_inputs", "num_inputs"]
_INPUT += ["in_channels", "input_channels", "d_model", "embed_dim", "n_embd", "dim", "features", "hidden_size"]
_HIDDEN = ["hidden_size", "hidden_dim", "n_hidden", "num_hidden", "hidden", "state_size", "state_dim", "units", "dim"]
_HIDDEN += ["memory_size", "memory_dim", "mem_size", "mem_dim", "memory_d"]
_LAYERS = ["num_layers", "n_layers", "num_hidden_layers", "layers"]
_MOST = 12


@dataclass(frozen=True)
class Width:
    """A candidate for the width of the input.

    Attributes
    ----------
    why
        Where it was read.
    sure
        Whether the module says so itself, so that it need not be the only one that works.
    """

    size: int
    why: str
    sure: bool


def input_widths(module: nn.Module, advice: int | None) -> list[Width]:
    """Return the candidates: what the user said; else attributes of the module, then the shapes of its weights."""
    if advice is not None:
        return [Width(advice, "", True)]
    named = [Width(size, f"its attribute {name} says", True) for name, size in _attributes(module, _INPUT)]
    known = {width.size for width in named}
    shaped = [Width(size, "its weights allow", False) for size in _shaped(module) if size not in known]
    return [*dict.fromkeys(named), *shaped[:_MOST]]


def hidden_sizes(module: nn.Module) -> list[int]:
    """Return the candidates for the width of the state, from attributes and then from the weights."""
    named = [size for part in module.modules() for _, size in _attributes(part, _HIDDEN)]
    matrices = [tuple(p.shape) for p in module.parameters() if p.dim() == 2]
    square = [rows for rows, columns in matrices if rows == columns]
    return list(dict.fromkeys([*named, *square, *(size for shape in matrices for size in shape)]))[:_MOST]


def stated_sizes(module: nn.Module) -> list[int]:
    """Return what the module itself says of the width of its state."""
    return [size for _, size in _attributes(module, _HIDDEN)]


def layer_counts(module: nn.Module) -> list[int]:
    """Return the candidates for the number of layers in the state."""
    return list(dict.fromkeys([*(size for _, size in _attributes(module, _LAYERS)), 1]))


def _attributes(module: nn.Module, names: list[str]) -> Iterator[tuple[str, int]]:
    config = getattr(module, "config", None)
    for prefix, owner in (("", module), ("config.", config)):
        for name in names:
            size: Any = getattr(owner, name, None)
            if isinstance(size, int) and not isinstance(size, bool) and size > 0:
                yield prefix + name, size


def _shaped(module: nn.Module) -> list[int]:
    """Return the widths that layers and matrices inside accept, and those left beside a state in one joint matrix."""
    inside = [size for part in module.modules() for _, size in _attributes(part, _INPUT)]
    matrices = [tuple(p.shape) for p in module.parameters() if p.dim() == 2]
    either = [size for shape in matrices for size in reversed(shape) if size > 1]
    joint = [columns - n for _, columns in matrices for n in hidden_sizes(module) if columns > n]
    return list(dict.fromkeys([*inside, *either, *joint]))
