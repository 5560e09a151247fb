"""Configurations that strangers' constructors take: dataclasses made from their fields, namespaces that answer."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from collections.abc import Mapping
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.nn.meanings import Sizes, meaning_of, usual_value

__all__ = ["Configuration", "configuration_class"]

_ENDINGS = {"c": ("Config", "Configuration"), "a": ("Args", "Arguments"), "o": ("Options",), "s": ("Settings",)}
"""How classes of configurations are called, by the first letter of the argument that takes one."""


class Configuration:
    """A configuration that was made for a constructor.

    Parameters
    ----------
    sizes
        Of the network.
    cls
        Its class; None: a namespace that answers what public code would give.
    own
        Fields that the user gave.

    Attributes
    ----------
    value
        What the constructor gets.
    placed
        Which size went to which field.
    notes
        What was filled in, in plain words.
    """

    def __init__(self, sizes: Sizes, cls: type | None, own: Mapping[str, Any]) -> None:
        self.placed: dict[str, str] = {}
        self.notes: list[str] = []
        if cls is None:
            self.value: Any = _Namespace(sizes, dict(own), self.placed, self.notes)
            return
        found = dict(own)
        fields = list(inspect.signature(cls).parameters.values())
        self.placed = sizes.place(fields, found)
        for size, argument in self.placed.items():
            if size != "num_layers" or sizes.given["num_layers"] != 1 or _needed(cls, argument):
                found.setdefault(argument, sizes.value(size, argument))
        for field in fields:
            if field.name not in found and field.default is field.empty:
                value = usual_value(field.name, sizes, [each.name for each in fields])
                if value is not field.empty:
                    found[field.name] = value
        self.notes.append(f"its configuration is {cls.__name__}({', '.join(f'{k}={v!r}' for k, v in found.items())})")
        try:
            self.value = cls(**found)
        except TypeError as error:
            missing = [f.name for f in fields if f.default is f.empty and f.name not in found]
            flags = " ".join(f"--set config.{name}=.." for name in missing)
            raise UserError(f"{cls.__name__} cannot be built: {error}" + (f"; add {flags}" if flags else "")) from error


class _Namespace:
    """Namespace that answers for every size and every setting whose usual value is known."""

    def __init__(self, sizes: Sizes, own: dict[str, Any], placed: dict[str, str], notes: list[str]) -> None:
        self.__dict__.update(own)
        self.__dict__["_parts"] = (sizes, placed, notes)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        sizes, placed, notes = self.__dict__["_parts"]
        value = usual_value(name, sizes)
        if value is inspect.Parameter.empty:
            raise UserError(f"its configuration needs {name}; add --set config.{name}=..")
        if (meaning := meaning_of(name)) is not None:
            placed.setdefault(meaning, name)
        notes.append(f"its configuration has {name}={value!r}")
        self.__dict__[name] = value
        return value

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return what the user gave, else the default of the stranger's own code."""
        return self.__dict__.get(name, default)

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__

    def __deepcopy__(self, memo: dict[int, Any]) -> _Namespace:
        return self


def configuration_class(factory: Any, parameter: inspect.Parameter) -> type | None:
    """Return the class of a configuration: as annotated, else the only one of the module that is called so."""
    module = sys.modules.get(getattr(factory, "__module__", ""))
    annotation = parameter.annotation
    if isinstance(annotation, str):
        annotation = getattr(module, annotation.strip("'\""), None)
    for each in (annotation, *typing.get_args(annotation)):
        if isinstance(each, type) and _is_made_of_fields(each):
            return each
    if annotation not in (None, inspect.Parameter.empty):
        return None
    endings = _ENDINGS.get(parameter.name[0], ("Params",))
    called = [
        value
        for name, value in vars(module).items()
        if isinstance(value, type) and name.endswith(endings) and _is_made_of_fields(value)
    ]
    return called[0] if len(called) == 1 else None


def _is_made_of_fields(cls: type) -> bool:
    if dataclasses.is_dataclass(cls) or hasattr(cls, "_fields") or hasattr(cls, "model_fields"):
        return True
    return "__init__" in vars(cls) and cls.__module__ not in ("builtins", "argparse", "types")


def _needed(cls: type, argument: str) -> bool:
    return inspect.signature(cls).parameters[argument].default is inspect.Parameter.empty
