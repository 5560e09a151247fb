"""Docstrings of classes and functions: their summary, and what they say of the arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["REQUIRED", "Argument", "arguments", "function_arguments", "function_summary", "parameter_docs", "summary"]

REQUIRED = inspect.Parameter.empty
"""The default of an argument that has none."""


@dataclass(frozen=True)
class Argument:
    """One argument of a call: its name, type as written, default (or `REQUIRED`) and meaning."""

    name: str
    type: str
    default: Any
    meaning: str


def summary(cls: type) -> str:
    """Return the first paragraph of a class's own docstring as one line, or an empty string.

    Examples
    --------
    >>> summary(Argument)
    'One argument of a call: its name, type as written, default (or REQUIRED) and meaning.'
    """
    own = inspect.cleandoc(vars(cls).get("__doc__") or "")
    return _plain(own.partition("\n\n")[0])


def function_summary(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a function's docstring as one line, or an empty string.

    Examples
    --------
    >>> function_summary(function_arguments)
    'Return the arguments of a function, each with what its docstring says of it.'
    """
    return _plain(inspect.cleandoc(function.__doc__ or "").partition("\n\n")[0])


def function_arguments(function: Callable[..., Any]) -> list[Argument]:
    """Return the arguments of a function, each with what its docstring says of it."""
    docs = dict(_section_entries(function.__doc__ or ""))
    return [
        Argument(_starred(parameter), _annotation(parameter) or written, parameter.default, meaning)
        for parameter in inspect.signature(function).parameters.values()
        for written, meaning in [docs.get(parameter.name, ("", ""))]
    ]


def arguments(cls: type, accepted: Collection[str] | None = None) -> list[Argument]:
    """Return the arguments of a class's constructor.

    Parameters
    ----------
    accepted
        Names to look for in the constructors of the class and its bases, where the class passes keywords on;
        by default only those of its own signature.

    Returns
    -------
    list of Argument
        Those of the class first, then those of its bases.
    """
    docs = parameter_docs(cls)
    signatures = [inspect.signature(cls).parameters.values()] if accepted is None else _own_signatures(cls)
    found: dict[str, Argument] = {}
    for parameters in signatures:
        for parameter in parameters:
            if parameter.name in found or (accepted is not None and parameter.name not in accepted):
                continue
            written, meaning = docs.get(parameter.name, ("", ""))
            found[parameter.name] = Argument(
                _starred(parameter), _annotation(parameter) or written, parameter.default, meaning
            )
    return list(found.values())


def parameter_docs(cls: type) -> dict[str, tuple[str, str]]:
    """Return type and meaning of every parameter that the "Parameters" sections of a class and its bases describe.

    The nearest class that describes a parameter is believed.
    """
    found: dict[str, tuple[str, str]] = {}
    for base in cls.__mro__:
        for name, entry in _section_entries(vars(base).get("__doc__") or ""):
            found.setdefault(name, entry)
    return found


def _own_signatures(cls: type) -> Iterator[list[inspect.Parameter]]:
    for base in cls.__mro__:
        if "__init__" in vars(base):
            yield list(inspect.signature(vars(base)["__init__"]).parameters.values())


def _section_entries(docstring: str) -> Iterator[tuple[str, tuple[str, str]]]:
    from docstring_parser import DocstringStyle, parse

    for entry in parse(docstring, style=DocstringStyle.NUMPYDOC).params:
        if entry.args[0] == "param":  # and not an attribute
            described = (entry.type_name or "", _plain(entry.description or ""))
            yield from ((name.strip().lstrip("*"), described) for name in entry.arg_name.split(","))


def _plain(text: str) -> str:
    return " ".join(text.replace(":math:", "").replace("`", "").split())


def _annotation(parameter: inspect.Parameter) -> str:
    if parameter.annotation is inspect.Parameter.empty:
        return ""
    written = parameter.annotation
    return written if isinstance(written, str) else inspect.formatannotation(written)


def _starred(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    return f"**{parameter.name}" if parameter.kind is parameter.VAR_KEYWORD else parameter.name
