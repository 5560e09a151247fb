"""Where commands print: a console for people, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

__all__ = ["Json", "console", "error_console", "print_json"]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead, and nothing else.")]

_UNLIMITED = 1000


def console(*, wide: bool = False) -> Console:
    """Return a console on standard output.

    Parameters
    ----------
    wide
        Never fold lines when the output is piped, so that each row of a table stays one line to grep in.
    """
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    width = _UNLIMITED if wide and piped else None
    return Console(width=width, highlight=False, markup=False, emoji=False)


def error_console() -> Console:
    """Return a console on standard error, for progress."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(document, indent=2, allow_nan=False))
