"""Where commands print: a console for people, JSON for programs."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from contextlib import AbstractContextManager
from typing import Annotated, Any

import typer
from rich.console import Console

__all__ = ["Json", "console", "error_console", "print_json", "quiet"]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead, and nothing else.")]

_UNLIMITED = 1000
_NARROWEST = 80
_LEAST = 20


def console(*, wide: bool = False) -> Console:
    """Return a console on standard output.

    Parameters
    ----------
    wide
        For tables: at least 80 columns, since a cell that does not fit would be cut; and when the output is piped,
        never fold lines, so that each row stays one line to grep in.
    """
    out = Console(highlight=False, markup=False, emoji=False)
    out.width = max(out.width, _LEAST)
    if wide:
        piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
        out.width = _UNLIMITED if piped else max(out.width, _NARROWEST)
    return out


def error_console() -> Console:
    """Return a console on standard error, for progress."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def quiet() -> AbstractContextManager[object]:
    """Send what a user's code prints to standard error, so that standard output is the command's alone."""
    return contextlib.redirect_stdout(sys.stderr)


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(document, indent=2, allow_nan=False))
