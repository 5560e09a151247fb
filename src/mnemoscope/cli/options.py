"""Options of commands: made from the signature of a function, and their text read as values."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from mnemoscope.cli.device import DeviceCommand
from mnemoscope.cli.terminal import bare_flags
from mnemoscope.core.arrays import ARRAYS, read_array
from mnemoscope.core.docs import REQUIRED, Argument, function_arguments
from mnemoscope.core.errors import Description, UserError, expected, positive_int

__all__ = ["Option", "make_command", "named_values", "options_of", "plain_value", "size_of"]

_SIMPLE = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "None": "none",
    "PathLike": "str",
    "Path": "str",
}
_SEVERAL = ("tuple", "list", "Sequence", "Iterable")
_HIDDEN = ("Callable", "Generator", "Module", "Mapping", "RelationalTask", "dict", "device", "dtype")
"""What no text on a command line can be: an argument that takes nothing else is no option."""

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "ints": "whole numbers separated by commas",
    "floats": "numbers separated by commas",
    "array": f"numbers separated by commas or a file ({', '.join(ARRAYS)})",
    "str": "text",
    "none": "none",
}
_METAVARS = {"int": "<int>", "float": "<float>", "ints": "N,N,..", "floats": "X,X,..", "array": "X,..|FILE"}


@dataclass(frozen=True)
class Option:
    """An option that stands for an argument of a function.

    Attributes
    ----------
    name
        The argument.
    reads
        What its text can be, in the order in which it is tried: keys of a small table of readers.
    default
        Of the argument; `REQUIRED` when it has none.
    meaning
        What the docstring says of it.
    """

    name: str
    reads: tuple[str, ...]
    default: Any
    meaning: str

    @property
    def flag(self) -> str:
        """As it is typed."""
        return "--" + self.name.replace("_", "-")

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    @property
    def annotation(self) -> Any:
        """Annotation of which Typer makes an option."""
        words = escape(self._help())
        if self.reads[0] == "bool":
            named = f"{self.flag}/--no-{self.flag.removeprefix('--')}"
            return Annotated[bool | None, typer.Option(named, help=words, show_default=False)]
        kinds = ["array"] if "array" in self.reads else [kind for kind in self.reads if kind != "none"]
        metavar = "|".join(_METAVARS.get(kind, "<str>") for kind in kinds)
        return Annotated[str | None, typer.Option(self.flag, help=words, metavar=metavar, show_default=False)]

    def value(self, given: Any) -> Any:
        """Return the value of what was typed, or raise the standard error."""
        if not isinstance(given, str):
            return given
        for kind in self.reads:
            try:
                return _READERS[kind](given)
            except UserError:  # which is a ValueError too, of a file that was meant
                raise
            except ValueError:
                continue
        wanted = " or ".join(_WORDS[kind] for kind in self.reads if kind in _WORDS)
        raise expected(self.flag, wanted, given)

    def _help(self) -> str:
        if self.required:
            return f"{self.meaning} Required."
        if self.default is None or self.default == ():
            return self.meaning
        shown = ",".join(map(str, self.default)) if isinstance(self.default, tuple) else str(self.default)
        return f"{self.meaning} Default: {shown}."


def options_of(function: Callable[..., Any], leave_out: Collection[str] = ()) -> dict[str, Option]:
    """Return the options of a function by argument, without those to leave out and those that no text can give."""
    found = {}
    for argument in function_arguments(function):
        reads = _reads(argument)
        if argument.name not in leave_out and not argument.name.startswith("*") and reads:
            found[argument.name] = Option(argument.name, reads, argument.default, argument.meaning)
    return found


def _reads(argument: Argument) -> tuple[str, ...]:
    kinds = _kinds(argument.type)
    if not kinds - {"none", "hidden"}:
        return ()
    order = ("bool", "none", "int", "float", "ints", "floats", "array", "str")
    return tuple(kind for kind in order if kind in kinds)


def _kinds(annotation: str) -> set[str]:
    try:
        tree = ast.parse(annotation, mode="eval").body
    except SyntaxError:
        return {"array"}
    return {kind for part in _alternatives(tree) for kind in _kind(part)}


def _alternatives(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_alternatives(node.left), *_alternatives(node.right)]
    return [node]


def _kind(node: ast.expr) -> set[str]:
    outer = node.value if isinstance(node, ast.Subscript) else node
    name = ast.unparse(outer).rpartition(".")[2]
    if name in _SIMPLE:
        return {_SIMPLE[name]}
    if name in _HIDDEN:
        return {"hidden"}
    if name == "Literal":
        return {"str"}
    if name in _SEVERAL and isinstance(node, ast.Subscript):
        inner = ast.unparse(node.slice)
        return {"ints"} if "int" in inner and "float" not in inner else {"floats"}
    return {"array"}


def _none(text: str) -> None:
    if text.lower() != "none":
        raise ValueError


def _number(text: str) -> float:
    value = float(text)
    if not np.isfinite(value):
        raise ValueError
    return value


def _array(text: str) -> Any:
    if text.lower().endswith(ARRAYS):
        return read_array(text)
    return np.array([_number(part) for part in text.split(",")])


_READERS: dict[str, Callable[[str], Any]] = {
    "none": _none,
    "int": int,
    "float": _number,
    "ints": lambda text: tuple(int(part) for part in text.split(",")),
    "floats": lambda text: tuple(_number(part) for part in text.split(",")),
    "array": _array,
    "str": str,
}


def size_of(flag: str, text: str | int) -> Any:
    """Return a size that was typed: a whole number, or several of a matrix or an image as ``5,5``."""
    try:
        sizes = tuple(positive_int(flag, int(part)) for part in str(text).split(","))
    except UserError:
        raise
    except ValueError:
        raise expected(flag, "a positive integer, or several as 5,5", text) from None
    return sizes[0] if len(sizes) == 1 else sizes


def plain_value(text: str) -> Any:
    """Return what a text means by its looks: true, false, none, a number, another literal of Python, or itself.

    Examples
    --------
    >>> [plain_value(text) for text in ("8", "1e-3", "true", "None", "[4, 8]", "(2, 'a')", "tanh", "8,16")]
    [8, 0.001, True, None, [4, 8], (2, 'a'), 'tanh', (8, 16)]
    """
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def named_values(texts: Collection[str], flag: str = "--option") -> dict[str, Any]:
    """Return the values of texts ``name=value``, which were given with `flag`."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not all(part.isidentifier() for part in name.split(".")):
            raise expected(flag, "NAME=VALUE, as in nonlinearity=relu", Description(repr(text)))
        found[name] = plain_value(value)
    return found


def make_command(
    name: str, run: Callable[..., None], parameters: dict[str, tuple[Any, Any]], help: str, surplus: str | None = None
) -> Any:
    """Return a command whose arguments are `parameters`: for each its annotation, as Typer reads it, and default.

    Parameters
    ----------
    name
        As which it is typed.
    run
        Called with the arguments by name.
    help
        What ``--help`` says before the arguments; no markup.
    surplus
        What is said when more is typed than the arguments; by default which words are too many.
    """

    def call(context: typer.Context, **given: Any) -> None:
        if context.args:
            raise UserError(str(surplus))
        run(**given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = [inspect.Parameter("context", keyword, annotation=typer.Context)]
    signature += [
        inspect.Parameter(argument, keyword, default=default, annotation=annotation)
        for argument, (annotation, default) in parameters.items()
    ]
    call.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name, cls=DeviceCommand, help=escape(help), context_settings={"allow_extra_args": surplus is not None})(
        call
    )
    return bare_flags(typer.main.get_command(app))
