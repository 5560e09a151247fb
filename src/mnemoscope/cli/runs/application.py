"""The command ``runs``: what was run, one run in full, several side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemoscope.cli.runs.cleaning import gc
from mnemoscope.cli.runs.files import disk, export, rebuild, sql
from mnemoscope.cli.runs.merging import merge
from mnemoscope.cli.runs.options import (
    All,
    Kind,
    Name,
    Names,
    Nested,
    Network,
    Root,
    Since,
    Status,
    Task,
    Where,
    where_runs_are,
)
from mnemoscope.cli.terminal import Json, print_json

if TYPE_CHECKING:
    from mnemoscope.runs import Record

__all__ = ["app"]

Metric = Annotated[
    str | None, typer.Option("--metric", help="Also this metric of all of them, at steps that they share.")
]

_PAGE = 50

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, invoke_without_command=True)


@app.callback()
def runs(
    context: typer.Context,
    task: Task = None,
    network: Network = None,
    status: Status = None,
    kind: Kind = None,
    since: Since = None,
    where: Where = None,
    nested: Nested = False,
    everyone: All = False,
    root: Root = None,
    json: Json = False,
) -> None:
    """List what was run, and look into it.

    Without a command, the same as `mnemoscope runs list`. RUN is the id of a run, a beginning of it, or its folder.
    """
    context.obj = root
    given = (task, network, status, kind, since, where, nested or None, everyone or None, json or None)
    if context.invoked_subcommand is None:
        list_runs(context, task, network, status, kind, since, where, nested, everyone, root, json)
    elif any(one is not None for one in given):
        from mnemoscope.core.errors import UserError

        raise UserError(f"options must come after the command: mnemoscope runs {context.invoked_subcommand} ...")


@app.command("list")
def list_runs(
    context: typer.Context,
    task: Task = None,
    network: Network = None,
    status: Status = None,
    kind: Kind = None,
    since: Since = None,
    where: Where = None,
    nested: Nested = False,
    everyone: All = False,
    root: Root = None,
    json: Json = False,
) -> None:
    """List runs, the newest last: what, of which network on which task, how far, how good.

    The newest 50; all of them with --all.
    """
    from mnemoscope.cli.runs.table import document, print_table
    from mnemoscope.runs.query import Filters, newest

    base = where_runs_are(context, root)
    filters = Filters(task, network, status, kind, since, where=where, nested=nested)
    page = newest(base, sys.maxsize if everyone else _PAGE, filters)
    if json:
        print_json({"root": str(base), "runs": [document(row) for row in page.rows], "total": page.total})
        return
    print_table(base, page, filtered=filters != Filters(nested=nested))


@app.command()
def show(context: typer.Context, run: Name, root: Root = None, json: Json = False) -> None:
    """Show one run: configuration, environment, status, metrics, checkpoints and whether they are whole."""
    from mnemoscope.cli.runs.show import facts, print_facts

    record = _record(run, where_runs_are(context, root))
    if json:
        print_json(facts(record))
    else:
        print_facts(record)


@app.command()
def compare(context: typer.Context, runs: Names, metric: Metric = None, root: Root = None, json: Json = False) -> None:
    """Put runs side by side: what differs in their configurations, what came out, the last metrics."""
    from mnemoscope.cli.runs.show import print_comparison
    from mnemoscope.core.errors import UserError
    from mnemoscope.core.result import plain
    from mnemoscope.runs.tables import compared, curves

    if len(runs) < 2:
        raise UserError(f"compare takes two runs or more, got {len(runs)}")
    base = where_runs_are(context, root)
    records = [_record(run, base) for run in runs]
    found: dict[str, Any] = compared(records)
    steps = curves(records, metric) if metric else None
    if json:
        print_json(found | ({} if steps is None else {"metric": metric, "steps": plain(steps)}))
    else:
        print_comparison(found, base, metric, steps)


def _record(run: str, base: Path) -> Record:
    from mnemoscope.runs import find, load

    return load(find(run, base), base)


for command in (export, merge, disk, gc, sql, rebuild):
    app.command()(command)
