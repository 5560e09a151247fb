"""Options of a network: those of every stack, and all of one, read off its constructor."""

from __future__ import annotations

import inspect
from typing import Any, TypedDict, get_args, get_type_hints

import torch
from torch import nn

__all__ = ["StackOptions", "option_defaults", "public_class"]


class StackOptions(TypedDict, total=False):
    """The options that every network made of cells takes."""

    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    device: torch.device | str | None
    dtype: torch.dtype | None
    generator: torch.Generator | None


def public_class(cls: type) -> type:
    """Return the class that was written: parametrize puts one of its own below it in every parametrised instance."""
    return cls.__mro__[1] if cls.__name__.startswith("Parametrized") else cls


def option_defaults(cls: type) -> dict[str, Any]:
    """Return the arguments that a network's constructor takes, with their defaults, own ones last."""
    accepted = _accepted(public_class(cls))
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if "__init__" in vars(base) and base is not nn.Module and issubclass(base, nn.Module):
            own = inspect.signature(base.__init__).parameters
            found |= {name: parameter.default for name, parameter in own.items() if name in accepted}
    return found


def _accepted(cls: type) -> set[str]:
    """Return the names that a constructor passes on or takes itself, as its ``**common: Unpack[...]`` says."""
    constructor: Any = vars(cls).get("__init__") or getattr(cls, "__init__")  # noqa: B009 - as a function, not bound
    hints = get_type_hints(constructor, include_extras=True)
    names: set[str] = set()
    for name, parameter in inspect.signature(constructor).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            names.add(name)
        elif name in hints:
            names |= set(get_type_hints(get_args(hints[name])[0]))
        else:
            names |= _accepted(cls.__mro__[1])
    return names - {"self"}
