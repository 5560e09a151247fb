"""What there is to say of a network, gathered from its card, its docstrings and one instance."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from torch import nn

from mnemoscope.core import docs
from mnemoscope.core.errors import UserError, expected
from mnemoscope.core.references import REFERENCES, Reference
from mnemoscope.nn.options import option_defaults
from mnemoscope.nn.registry import card, get, names
from mnemoscope.nn.stack import Stack

__all__ = ["SIZES", "Facts", "all_facts", "facts", "network_class"]

SIZES = {"input_size": 10, "hidden_size": 64}
"""The sizes at which parameters are counted, with one layer, unless the class has `counted_at`."""


@dataclass(frozen=True)
class Facts:
    """What there is to say of a network; None and empty where it does not say it."""

    name: str
    class_name: str
    family: str | None
    kind: str | None
    state: str | None
    parameters: int | None
    counted_at: dict[str, int]
    summary: str
    equations: tuple[str, ...]
    arguments: tuple[docs.Argument, ...]
    notes: tuple[str, ...]
    reference_keys: tuple[str, ...]

    @property
    def references(self) -> list[Reference]:
        """The references of its card; a key that the bibliography does not have is an error."""
        missing = [key for key in self.reference_keys if key not in REFERENCES]
        if missing:
            raise UserError(f"{self.name} cites {missing[0]!r}, which mnemoscope.core.references.REFERENCES lacks")
        return [REFERENCES[key] for key in self.reference_keys]

    @property
    def cited(self) -> str:
        """Its defining reference in short form, or its bare key, or an empty string."""
        key = next(iter(self.reference_keys), "")
        return REFERENCES[key].short if key in REFERENCES else key

    def overview(self) -> dict[str, Any]:
        """Return the row of the list of networks, ready for JSON."""
        return {
            "name": self.name,
            "class": self.class_name,
            "family": self.family,
            "kind": self.kind,
            "state": self.state,
            "parameters": self.parameters,
            "references": list(self.reference_keys),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return self.overview() | {
            "summary": self.summary,
            "equations": list(self.equations),
            "arguments": [_argument_dict(argument) for argument in self.arguments],
            "notes": list(self.notes),
        }


def all_facts(kind: str | None = None) -> list[Facts]:
    """Return the facts of all networks, or of those of one kind, by family and name."""
    found = [facts(name) for name in names(kind)]
    return sorted(found, key=lambda one: (one.family or "~", one.name))


def facts(name: str) -> Facts:
    """Gather the facts of a network by its registry name, or from ``file.py:Class`` (which runs the file)."""
    cls = network_class(name)
    own = card(cls)
    return Facts(
        name=own.name if own else name,
        class_name=cls.__qualname__,
        family=own.family if own else None,
        kind=getattr(cls, "kind", None),
        state=own.state if own else None,
        parameters=_count_parameters(cls),
        counted_at=_sizes_of(cls),
        summary=docs.summary(cls),
        equations=own.equations if own else (),
        arguments=tuple(_arguments(cls)),
        notes=own.notes if own else (),
        reference_keys=own.references if own else (),
    )


def network_class(name: str) -> type[nn.Module]:
    """Return the class of a network, or raise when `name` leads to something else."""
    found = get(name)
    if not isinstance(found, type) or not issubclass(found, nn.Module):
        raise expected(name, "a class derived from torch.nn.Module", found)
    return found


def _sizes_of(cls: type[nn.Module]) -> dict[str, int]:
    return dict(getattr(cls, "counted_at", SIZES))


def _count_parameters(cls: type[nn.Module]) -> int | None:
    try:
        return sum(p.numel() for p in cls(**_sizes_of(cls)).parameters())
    except Exception:  # a network of strangers may take other arguments, or fail as it likes: then there is no number
        return None


def _arguments(cls: type[nn.Module]) -> list[docs.Argument]:
    accepted = option_defaults(cls) if issubclass(cls, Stack) else None
    # Where the default depends on the class, the constructor says None and the class says `NAME_default`.
    return [
        dataclasses.replace(argument, default=getattr(cls, f"{argument.name}_default", None))
        if argument.default is None
        else argument
        for argument in docs.arguments(cls, accepted)
    ]


def _argument_dict(argument: docs.Argument) -> dict[str, Any]:
    required = argument.default is docs.REQUIRED
    default = None if required else argument.default
    plain = default is None or isinstance(default, bool | int | float | str)
    return {
        "name": argument.name,
        "type": argument.type,
        "required": required and not argument.name.startswith("*"),
        "default": default if plain else repr(default),
        "meaning": argument.meaning,
    }
