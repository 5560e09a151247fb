"""Call of a stranger's constructor: sizes by name or by place, and what is said when these do not fit."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from mnemoscope.core.errors import Description, UserError, expected, nearest

__all__ = ["DEFAULT_SIZES", "construct", "known_sizes"]

DEFAULT_SIZES = {"input_size": 1, "hidden_size": 64, "num_layers": 1}
"""The sizes of a network that is described without any."""


def construct(name: str, factory: Any, chosen: Mapping[str, Any], options: Mapping[str, Any]) -> nn.Module:
    """Build a stranger's network: with sizes by name where it has these names, else by place, else without any."""
    if not callable(factory) or isinstance(factory, nn.Module):
        raise expected(name, "a class or a function that builds a network", factory)
    signature = _signature(name, factory)
    sizes = {**DEFAULT_SIZES, **chosen}
    layers = {key: value for key, value in chosen.items() if key == "num_layers"}
    attempts: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {**known_sizes(factory, DEFAULT_SIZES), **chosen, **options}),
        ((sizes["input_size"], sizes["hidden_size"]), {**layers, **options}),
        ((), {**chosen, **options}),
    ]
    for args, keywords in attempts:
        if _binds(signature, args, keywords):
            return _built(name, factory, args, keywords)
    raise _unbound(name, signature, attempts[:2], chosen, options)


def _signature(name: str, factory: Any) -> inspect.Signature:
    try:
        return inspect.signature(factory)
    except (TypeError, ValueError) as error:
        raise expected(name, "a class or a function whose arguments are known", factory) from error


def known_sizes(factory: Any, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes that a constructor takes by name."""
    parameters = inspect.signature(factory).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return {key: value for key, value in sizes.items() if open_ended or key in parameters}


def _binds(signature: inspect.Signature, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    try:
        signature.bind(*args, **keywords)
    except TypeError:
        return False
    return True


def _unbound(
    name: str,
    signature: inspect.Signature,
    attempts: list[tuple[tuple[Any, ...], dict[str, Any]]],
    chosen: Mapping[str, Any],
    options: Mapping[str, Any],
) -> UserError:
    """Say what a constructor takes that was not given, or was given that it does not take, and how to give it."""
    known = [name for name, p in signature.parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    called = f"it is called as {Path(name).name}{signature}"
    for option in options:
        if option not in known:
            near = nearest(option, known)
            return UserError(f"{name} takes no {option!r}; " + (f"did you mean {near!r}?" if near else called))
    missing = min((_missing(signature, *attempt) for attempt in attempts), key=len)
    if not missing:
        return UserError(f"{name} cannot be built with {', '.join(chosen)}: {called}")
    flags = " ".join(f"--set {argument}=.." for argument in missing)
    words = ", ".join(f"{argument}=.." for argument in missing)
    return UserError(f"{name} also needs {' and '.join(missing)}; add {flags} (in Python {words}); {called}")


def _missing(signature: inspect.Signature, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[str]:
    """Return the arguments that have no default and got no value."""
    places = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    filled = {p.name for p in places[: len(args)]} | set(keywords)
    named = (*places, *(p for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY))
    return [p.name for p in named if p.default is p.empty and p.name not in filled]


def _built(name: str, factory: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> nn.Module:
    try:
        made = factory(*args, **keywords)
    except UserError:
        raise
    except Exception as error:  # a stranger's constructor may fail as it likes
        raise UserError(f"{name} cannot be built: {type(error).__name__}: {error}") from error
    if not isinstance(made, nn.Module):
        raise expected(name, "a class or a function that builds a torch.nn.Module", Description(repr(made)))
    return made
