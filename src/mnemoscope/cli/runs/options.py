"""The arguments that the commands on runs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "All",
    "Kind",
    "Name",
    "Names",
    "Nested",
    "Network",
    "Root",
    "Since",
    "Some",
    "Status",
    "Task",
    "Where",
    "chosen_rows",
    "printable",
    "size_text",
    "where_runs_are",
]

Name = Annotated[str, typer.Argument(metavar="RUN", help="The id of a run, a beginning of it, or its folder.")]
Names = Annotated[list[str], typer.Argument(metavar="RUN", help="Ids of runs, beginnings of them, or folders.")]
Some = Annotated[list[str] | None, typer.Argument(metavar="RUN", help="Only these runs; else all that pass.")]
Root = Annotated[
    str | None,
    typer.Option("--runs", metavar="DIR", help="The folder of the runs; else $MNEMOSCOPE_RUNS, else ./runs."),
]
Task = Annotated[str | None, typer.Option("--task", help="Only runs on this task.")]
Network = Annotated[str | None, typer.Option("--network", help="Only runs of this network.")]
Status = Annotated[
    str | None,
    typer.Option("--status", help="Only running, finished, failed, interrupted, budget, damaged or newer ones."),
]
Kind = Annotated[
    str | None,
    typer.Option("--kind", help="Only runs of this kind: fit, population, capacity, ladder, remembering, study."),
]
Since = Annotated[
    str | None, typer.Option("--since", help="Only runs begun since: 90m, 12h, 7d, 2w ago, or a date like 2026-01-31.")
]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="SQL", help='Only runs for which this is true: "score > 0.9 AND seed < 3".'),
]
All = Annotated[bool, typer.Option("--all", help="All runs, not only the newest 50.")]
Nested = Annotated[bool, typer.Option("--nested", help="Runs that are part of another one, too.")]

_UNITS = ("B", "kB", "MB", "GB", "TB")


def where_runs_are(context: typer.Context, given: str | None) -> Path:
    """Return the folder of the runs: the one given with the command, else before it, else the usual one."""
    from mnemoscope.core.errors import UserError
    from mnemoscope.runs.folders import root

    chosen = given if given is not None else context.obj
    base = root(chosen)
    if chosen is not None and not base.is_dir():
        raise UserError(f"--runs must be a folder that exists, got {chosen!r}")
    return base


def printable(value: object) -> str:
    """Return text for one cell of a table: names come from files, and must neither break lines nor steer a terminal."""
    text = "" if value is None else str(value)
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def size_text(count: float) -> str:
    """Return bytes as people say them.

    Examples
    --------
    >>> size_text(1536000)
    '1.5 MB'
    """
    unit = 0
    while count >= 999.5 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"


def chosen_rows(base: Path, runs: list[str] | None, filters: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the runs that are named, or of all, that pass the filters."""
    from mnemoscope.core.errors import UserError
    from mnemoscope.runs import find
    from mnemoscope.runs.folders import identity
    from mnemoscope.runs.query import Filters, select

    rows = select(base, Filters(**filters))
    if not runs:
        return rows
    wanted = dict.fromkeys(identity(find(run, base), base) for run in runs)
    by_id = {row["id"]: row for row in rows}
    missing = [one for one in wanted if one not in by_id]
    if missing:
        raise UserError(f"run {missing[0]} is not in {str(base)!r}, or does not pass the filters")
    return [by_id[one] for one in wanted]
