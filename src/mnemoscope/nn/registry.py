"""The table of networks: names, cards, and how one is built from its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import nn

from mnemoscope.core.errors import UserError, expected, nearest
from mnemoscope.core.plugins import is_location, load_object
from mnemoscope.core.registry import Registry
from mnemoscope.nn.networks import TABLE

__all__ = ["KINDS", "NETWORKS", "Card", "card", "create", "get", "names", "network"]

KINDS = ("recurrent", "sequence", "classifier", "relational")
NETWORKS: Registry[type[nn.Module]] = Registry(
    "network",
    "mnemoscope.networks",
    table={name: f"mnemoscope.nn.networks.{place.split(':')[0]}" for name, place in TABLE.items()},
    listed="mnemoscope networks",
)

N = TypeVar("N", bound=type[nn.Module])


@dataclass(frozen=True)
class Card:
    """What a network says of itself.

    Attributes
    ----------
    name
        Its registry name.
    family
        The group that it is listed in.
    equations
        Its definition, one line per equation.
    state
        Real numbers in the state of one layer, as a function of the hidden size n.
    references
        Keys of `mnemoscope.core.references`, the defining one first.
    kind
        How it is called: one of `KINDS`.
    notes
        Facts that a user should know before choosing it.
    """

    name: str
    family: str
    equations: tuple[str, ...]
    state: str
    references: tuple[str, ...]
    kind: str = "recurrent"
    notes: tuple[str, ...] = ()


def network(name: str, **facts: Any) -> Callable[[N], N]:
    """Return a class decorator that registers a network under `name` with the facts of its `Card`."""

    def file(cls: N) -> N:
        kind = getattr(cls, "kind", "recurrent")
        setattr(cls, "card", Card(name=name, kind=kind, **facts))  # noqa: B010 - the attribute is ours, on anybody's module
        NETWORKS.register(name)(cls)
        return cls

    return file


def names(kind: str | None = None) -> list[str]:
    """Return the names of all networks, or of those of one kind, sorted."""
    if kind is not None and kind not in KINDS:
        raise UserError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    return [name for name in NETWORKS if kind in (None, getattr(NETWORKS[name], "kind", None))]


def get(name: str) -> type[nn.Module]:
    """Return the class of a network by its registry name, or from ``file.py:Class`` (which runs the file)."""
    if not isinstance(name, str):
        raise expected("a network", "named by a string", name)
    return load_object(name) if is_location(name) and name not in NETWORKS else NETWORKS[name]


def card(cls: type[nn.Module]) -> Card | None:
    """Return the card of a network's class, if it has one."""
    found = getattr(cls, "card", None)
    return found if isinstance(found, Card) else None


def create(name: str, /, *sizes: Any, **options: Any) -> Any:
    """Build a network by name.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> ms.nn.create("ornn", input_size=3, hidden_size=8, reflections=4)
    ORNN(3, 8, reflections=4)
    """
    cls = get(name)
    try:
        inspect.signature(cls).bind(*sizes, **options)
    except TypeError as error:
        known = [key for key in inspect.signature(cls).parameters if key not in ("args", "kwargs")]
        wrong = [key for key in options if key not in known]
        near = nearest(wrong[0], known) if wrong and "unexpected" in str(error) else None
        hint = f"; did you mean {near!r}?" if near else f"; it takes {', '.join(known)}"
        raise UserError(f"{name} cannot be built: {error}{hint}") from None
    return cls(*sizes, **options)
