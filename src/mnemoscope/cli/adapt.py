"""Command ``adapt``: what is understood of a module of one's own, and a file that says it once for all."""

from __future__ import annotations

import inspect
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemoscope.cli.profile import Hidden, InputSize, Layers, Set
from mnemoscope.cli.terminal import Force, Json, check_output, console, print_json, quiet

if TYPE_CHECKING:
    from mnemoscope.nn import NetworkSpec

__all__ = ["adapt"]

Location = Annotated[
    str,
    typer.Argument(metavar="FILE.py:CLASS", help="Or package.module:CLASS. This runs the file's code."),
]
Write = Annotated[
    str | None,
    typer.Option("--write", metavar="FILE.py", help="Write a file with a function `build` that every command takes."),
]

_READY = '''"""{name} as a network of Mnemoscope, as `mnemoscope adapt` understood it."""

from mnemoscope.nn import NetworkSpec


def build(input_size={input_size!r}, hidden_size={hidden_size!r}):
    """{reading}"""
    return NetworkSpec(
        {what!r},
        input_size=input_size,
        hidden_size=hidden_size,
        options={options!r},
        advice={advice!r},
    ).build()
'''

_TEMPLATE = '''"""{name} as a network of Mnemoscope: fill in the two lines that are marked.

It could not be read by itself: {reason}
It is built as {name}{constructor}, and called as forward{forward}.
"""

import torch
from torch import nn

from mnemoscope.core.plugins import load_object

{name} = load_object({what!r})


class Adapter(nn.Module):
    """One step: (batch, input) and a state in, the output and the next state out."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.inner = {name}({arguments})  # FILL IN 1: the arguments of the constructor

    def forward(self, x, state=None):
        if state is None:
            state = x.new_zeros(len(x), self.hidden_size)
        state = self.inner({call})  # FILL IN 2: the call that gives the next state
        return state, state


def build(input_size={input_size!r}, hidden_size={hidden_size!r}):
    """Build it; what its constructor prints goes nowhere."""
    return Adapter(input_size, hidden_size)
'''


def adapt(
    network: Location,
    hidden: Hidden = None,
    input_size: InputSize = None,
    layers: Layers = None,
    options: Set = None,
    write: Write = None,
    force: Force = False,
    json: Json = False,
    *,
    about: dict[str, Any],
) -> None:
    """Say how a module of your own is read, with what was guessed; and write it down as a file.

    Where it cannot be read, the file that --write makes has two marked lines to fill in.
    """
    from mnemoscope.cli.options import named_values
    from mnemoscope.cli.profile import sizes_of
    from mnemoscope.core.errors import UserError
    from mnemoscope.core.files import write_atomic
    from mnemoscope.nn import NetworkSpec

    if write is not None:
        check_output(write, force)
    sizes = sizes_of(hidden, input_size, layers, None, "recurrent")
    spec = NetworkSpec(network, **sizes, options=named_values(options or (), "--set"), **about)
    try:
        with quiet():
            built = spec.build()
    except UserError as error:
        if write is None:
            raise
        with quiet():
            content = _template(spec, str(error))
        write_atomic(write, content.encode())
        raise UserError(
            f"{str(error).split('; call')[0]}; {write} has two marked lines to fill in, then: "
            f"mnemoscope profile {shlex.quote(write)}:build"
        ) from error
    reading, guesses = str(getattr(built, "reading", "")), list(getattr(built, "guesses", ()))
    if write is not None:
        write_atomic(write, _ready(spec, built, reading).encode())
    if json:
        print_json({"network": network, "reading": reading, "guesses": guesses, "written": write})
        return
    out = console()
    out.print(reading or f"{spec.name} is a network of Mnemoscope already", style="bold", soft_wrap=True)
    for guess in guesses:
        out.print(f"  {guess}", soft_wrap=True)
    if write is not None:
        out.print(f"written: {write}; use it as mnemoscope profile {shlex.quote(write)}:build", soft_wrap=True)


def _ready(spec: NetworkSpec, built: Any, reading: str) -> str:
    words = {"name": spec.name, "what": _absolute(spec.what), "reading": reading.replace('"', "'") or "Build it."}
    sizes = {"input_size": spec.input_size, "hidden_size": spec.hidden_size or 64}
    return _READY.format(**words, **sizes, options=dict(spec.options), advice=dict(spec.advice))


def _template(spec: NetworkSpec, reason: str) -> str:
    from mnemoscope.nn.registry import get

    cls = get(spec.what)
    forward = getattr(cls, "forward", None)
    taken = list(inspect.signature(forward).parameters)[1:] if callable(forward) else ["x", "state"]
    call = ", ".join(["x", "state", *taken[2:]][: max(len(taken), 1)])
    built = _written(cls)
    return _TEMPLATE.format(
        name=spec.name,
        what=_absolute(spec.what),
        reason=" ".join(reason.split()).replace("\\", "/").replace('"', "'"),
        constructor=built,
        forward=_written(forward),
        arguments="input_size, hidden_size",
        call=call,
        input_size=spec.input_size or 1,
        hidden_size=spec.hidden_size or 64,
    )


def _written(function: Any) -> str:
    try:
        return str(inspect.signature(function)).replace("\\", "/").replace('"', "'")
    except (TypeError, ValueError):
        return "(..)"


def _absolute(what: Any) -> str:
    """Return the location by the whole path: the file may be used from elsewhere."""
    from pathlib import Path

    where, _, name = str(what).rpartition(":")
    return f"{Path(where).resolve()}:{name}" if where.endswith(".py") else str(what)
