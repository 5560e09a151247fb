"""The commands on the runs' files: export, disk use, SQL, and the index made again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from mnemoscope.cli.runs.options import (
    Kind,
    Network,
    Root,
    Since,
    Some,
    Status,
    Task,
    Where,
    chosen_rows,
    printable,
    size_text,
    where_runs_are,
)
from mnemoscope.cli.terminal import Json, console, print_json

__all__ = ["disk", "export", "rebuild", "sql"]

Query = Annotated[str, typer.Argument(metavar="SELECT", help="What to ask, in SQL. It can only read.")]
Metrics = Annotated[bool, typer.Option("--metrics", help="Every line of metrics, instead of one row per run.")]
Format = Annotated[str, typer.Option("--format", help="csv or json.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="A file; else standard output.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file.")]


def export(
    context: typer.Context,
    runs: Some = None,
    metrics: Metrics = False,
    format: Format = "csv",
    output: Output = None,
    force: Force = False,
    task: Task = None,
    network: Network = None,
    status: Status = None,
    kind: Kind = None,
    since: Since = None,
    where: Where = None,
    root: Root = None,
    json: Json = False,
) -> None:
    """Write runs as a table: one row per run with its configuration and summary, or every line of metrics."""
    from mnemoscope.core.errors import choice
    from mnemoscope.runs.tables import metrics_table, runs_table, to_csv, to_json

    base = where_runs_are(context, root)
    filters = {"task": task, "network": network, "status": status, "kind": kind, "after": since, "where": where}
    rows = chosen_rows(base, runs, filters)
    table = metrics_table(base, rows) if metrics else runs_table(rows)
    written = choice("format", "json" if json else format, ("csv", "json"))
    text = to_json(table) if written == "json" else to_csv(table)
    if output is None:
        sys.stdout.write(text)  # as it is: typer.echo would take letters out that a terminal acts on
    else:
        _write(output, text, force)
        typer.echo(f"{len(table)} rows in {output}", err=True)


def disk(context: typer.Context, root: Root = None, json: Json = False) -> None:
    """Show what the runs take on the disk, the largest last."""
    import shutil

    from mnemoscope.cli.runs.table import short_ids
    from mnemoscope.runs.cleaning import usage
    from mnemoscope.runs.folders import scan

    base = where_runs_are(context, root)
    used = sorted(((one.id, usage(one.folder)) for one in scan(base)), key=lambda pair: pair[1].total)
    total = sum(one.total for _, one in used)
    free = shutil.disk_usage(base).free if base.is_dir() else None
    if json:
        listed = [{"id": name, **vars(one), "total": one.total} for name, one in used]
        print_json({"root": str(base), "runs": listed, "total": total, "free": free})
        return
    out = console(wide=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("run", "metrics", "checkpoints", "leftovers", "total"):
        table.add_column(title, justify="left" if title == "run" else "right", overflow="fold")
    short = short_ids([name for name, _ in used], ())
    for name, one in used:
        sizes = (one.metrics, one.checkpoints, one.leftovers, one.total)
        table.add_row(printable(short[name]), *map(size_text, sizes))
    out.print(table)
    left = "" if free is None else f", {size_text(free)} free"
    out.print(f"{len(used)} runs, {size_text(total)}{left} in {base}. To clean up: mnemoscope runs gc", soft_wrap=True)


def sql(context: typer.Context, query: Query, root: Root = None, json: Json = False) -> None:
    """Ask the index in SQL. Tables: runs (one row per run), metrics (run, line, step, name, value).

    Columns of runs: id, parent, kind, task, network, seed, status, reason, step, score, loss, lines, created, updated,
    hash, and as JSON spec, summary, last, environment.
    """
    from mnemoscope.core.errors import expected
    from mnemoscope.core.result import plain
    from mnemoscope.runs.query import sql as ask

    if not query.strip():
        raise expected("the query", "a SELECT", query)
    names, rows = ask(where_runs_are(context, root), query)
    if json:
        print_json({"columns": names, "rows": plain([[_text(value) for value in row] for row in rows])})
        return
    out = console(wide=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in names:
        table.add_column(printable(name), overflow="fold")
    for row in rows:
        table.add_row(*(printable(_text(value)) for value in row))
    out.print(table)


def rebuild(context: typer.Context, root: Root = None, json: Json = False) -> None:
    """Throw the index away and make it again from the folders."""
    from mnemoscope.runs import rebuild as make_again

    base = where_runs_are(context, root)
    count = make_again(base)
    if json:
        print_json({"root": str(base), "runs": count})
    else:
        typer.echo(f"The index of {count} run{'' if count == 1 else 's'} was made again in {base}.")


def _text(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _write(path: Path, text: str, force: bool) -> None:
    from mnemoscope.core.errors import UserError
    from mnemoscope.core.files import write_atomic

    if path.is_dir():
        raise UserError(f"--output must be a file, got the folder {str(path)!r}")
    if path.exists() and not force:
        raise UserError(f"--output must be a new file, or --force given, got {str(path)!r}")
    write_atomic(path.absolute(), text.encode())
