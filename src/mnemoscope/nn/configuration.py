"""Configurations that strangers' constructors take: dataclasses made from their fields, namespaces that answer."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
import sys
import typing
from collections.abc import Mapping
from typing import Any

from mnemoscope.core.errors import Advised, UserError
from mnemoscope.nn.meanings import Sizes, meaning_of, suggested, usual_value

__all__ = ["Configuration", "configuration_class", "fields_of", "reads_of"]

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

    def __init__(self, sizes: Sizes, cls: type | None, own: Mapping[str, Any], called: str = "config") -> None:
        self.placed: dict[str, str] = {}
        self.notes: list[str] = []
        if cls is None:
            self.value: Any = _Namespace(sizes, dict(own), self.placed, self.notes, called)
            return
        found = self._fields(sizes, cls, own)
        self.notes.append(f"its configuration is {cls.__name__}({', '.join(f'{k}={v!r}' for k, v in found.items())})")
        try:
            self.value = cls(**found)
        except TypeError as error:
            fields = inspect.signature(cls).parameters.values()
            missing = {f.name: suggested(f)[0] for f in fields if f.default is f.empty and f.name not in found}
            reason = f"{cls.__name__} cannot be built: {error}"
            raise _asked(reason, called, missing) if missing else UserError(reason) from error

    def _fields(self, sizes: Sizes, cls: type, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields by meaning and custom; those that are configurations themselves are made likewise."""
        inner = {key.partition(".")[0] for key in own if "." in key}
        found = {key: value for key, value in own.items() if "." not in key}
        fields = list(inspect.signature(cls).parameters.values())
        self.placed = sizes.place(fields, found)
        for size, argument in self.placed.items():
            if size != "num_layers" or sizes.given["num_layers"] != 1 or _needed(cls, argument):
                found.setdefault(argument, sizes.value(size, argument))
        for field in fields:
            kind = _nested(cls, field)
            if field.name not in found and kind is not None and (field.name in inner or field.default is not None):
                theirs = {key.partition(".")[2]: v for key, v in own.items() if key.partition(".")[0] == field.name}
                nested = Configuration(sizes, kind, theirs, field.name)
                found[field.name] = nested.value
                self.placed = {**nested.placed, **self.placed}
            elif field.name not in found and _open(field):
                value = usual_value(field.name, sizes, [each.name for each in fields])
                if value is not field.empty:
                    found[field.name] = value
        return found


def _open(field: inspect.Parameter) -> bool:
    """Whether a field has to be given: it has no default, or minus one, which stands for none."""
    return field.default is field.empty or (field.default == -1 and not isinstance(field.default, bool))


def _nested(cls: type, field: inspect.Parameter) -> type | None:
    """Return the class of a field that is a configuration of dataclass fields itself."""
    annotation = field.annotation
    if isinstance(annotation, str):
        annotation = getattr(sys.modules.get(cls.__module__), annotation.strip("'\""), None)
    kinds = (annotation, *typing.get_args(annotation))
    return next((each for each in kinds if isinstance(each, type) and dataclasses.is_dataclass(each)), None)


def _asked(reason: str, called: str, missing: Mapping[str, Any]) -> Advised:
    """Return the error that asks for fields of a configuration, with values that may do."""
    options = {f"{called}.{name}": value for name, value in missing.items()}
    flags = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    return Advised(reason, flags, f"options={options!r}", options=options)


class _Namespace:
    """Namespace that answers for every size and every setting whose usual value is known."""

    def __init__(
        self, sizes: Sizes, own: dict[str, Any], placed: dict[str, str], notes: list[str], called: str
    ) -> None:
        self.__dict__.update(own)
        self.__dict__["_parts"] = (sizes, placed, notes, called)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        sizes, placed, notes, called = self.__dict__["_parts"]
        value = usual_value(name, sizes)
        if value is inspect.Parameter.empty:
            raise _asked(f"its configuration needs {name}", called, {name: 8})
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


def fields_of(cls: type) -> set[str]:
    """Return what a configuration has: its fields, and what its own methods set."""
    own = set(inspect.signature(cls).parameters)
    with contextlib.suppress(OSError, TypeError):
        own |= set(re.findall(r"self\.(\w+)\s*=", inspect.getsource(cls)))
    return own | {name for name in dir(cls) if not name.startswith("_")}


def reads_of(factory: Any, name: str) -> set[str]:
    """Return what a constructor reads of an argument, by its source: ``args.n_embd``."""
    with contextlib.suppress(OSError, TypeError, AttributeError):
        return set(re.findall(rf"\b{re.escape(name)}\.(\w+)", inspect.getsource(factory.__init__)))
    return set()


def _is_made_of_fields(cls: type) -> bool:
    if dataclasses.is_dataclass(cls) or hasattr(cls, "_fields") or hasattr(cls, "model_fields"):
        return True
    return "__init__" in vars(cls) and cls.__module__ not in ("builtins", "argparse", "types")


def _needed(cls: type, argument: str) -> bool:
    return inspect.signature(cls).parameters[argument].default is inspect.Parameter.empty
