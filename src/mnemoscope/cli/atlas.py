"""Commands ``atlas show`` and ``atlas build``: the reference networks that every profile is set beside."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemoscope.cli.cluster import Cluster, ClusterCommand, workers_at
from mnemoscope.cli.terminal import Json, console, error_console, print_json, quiet

if TYPE_CHECKING:
    from mnemoscope.profiles.atlas import Atlas
    from mnemoscope.profiles.row import Row

__all__ = ["app"]

_ROOM = 200
"""Columns of a terminal that has room for the intervals."""

_LEAST = 120
"""Columns without which a row would be cut."""

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Networks; all when none is given.")]
Budgets = Annotated[
    list[int] | None,
    typer.Option("--budget", metavar="PARAMETERS", help="A number of parameters; may be repeated. Default: all."),
]
Quick = Annotated[bool, typer.Option("--quick", help="The rows measured as a first look measures.")]
File = Annotated[str | None, typer.Option("--file", metavar="FILE", help="Another atlas than the one in use.")]
Out = Annotated[str, typer.Option("--out", metavar="FILE", help="Where to write it. Rows that are there are kept.")]
Again = Annotated[bool, typer.Option("--again", help="Measure also what is there.")]
Which = Annotated[
    str, typer.Option("--which", metavar="WHICH", help="full, quick or both: how thoroughly rows are measured.")
]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, invoke_without_command=True)


@app.callback()
def atlas(context: typer.Context) -> None:
    """Show or build the atlas: profiles of established networks at equal numbers of parameters.

    MNEMOSCOPE_ATLAS names another file than the one that ships with the package.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def show(
    names: Names = None, budget: Budgets = None, quick: Quick = False, file: File = None, json: Json = False
) -> None:
    """Show the atlas as a table: every network at every budget, means over seeds.

    With their 95% intervals where the output has 200 columns, or is piped.
    """
    from mnemoscope.profiles.atlas import load

    found = load(None if file is None else Path(file))
    rows = _chosen(found, names or [], budget or [], quick)
    if json:
        made = [row.to_dict() for row in rows]
        print_json({"file": str(found.path), "notes": list(found.notes), "rows": made})
        return
    _print_table(rows)
    for note in found.notes:
        typer.echo(note)
    made_with = sorted({f"{e['date']}, mnemoscope {e['mnemoscope']}, torch {e['torch']}" for e in _environments(rows)})
    typer.echo(f"Measured on {'; '.join(made_with)}. Again: mnemoscope atlas build")


@app.command(cls=ClusterCommand)
def build(
    names: Names = None,
    budget: Budgets = None,
    out: Out = "atlas.json",
    which: Which = "both",
    again: Again = False,
    ray: Cluster = None,
    json: Json = False,
) -> None:
    """Measure the reference networks and write the atlas, row by row: stopped, it goes on where it was.

    Rows that are in the file already are kept. The whole takes about 20 minutes of one core; a budget of 1024, three.
    """
    from mnemoscope.core.errors import choice
    from mnemoscope.profiles.atlas import build as build_rows
    from mnemoscope.profiles.atlas import load

    ways = {"full": False, "quick": True, "both": None}
    status = error_console()

    def watch(job: Any, what: str) -> None:
        if not json:
            doing = "measuring" if ray is None else "measured"
            status.print(f"{job.label}: {doing if what == 'measured' else 'is there'}")

    with workers_at(ray) as workers, quiet():
        count = build_rows(
            Path(out),
            names or [],
            budget or [],
            quick=ways[choice("--which", which, ways)],
            again=again,
            watch=watch,
            workers=workers,
        )
    rows = len(load(Path(out)).rows)
    if json:
        print_json({"file": out, "measured": count, "rows": rows})
    else:
        typer.echo(f"{out}: {rows} rows, {count} of them measured now")


def _chosen(found: Atlas, names: list[str], budgets: list[int], quick: bool) -> list[Row]:
    from mnemoscope.core.errors import Description, expected, unknown

    there = found.budgets(quick)
    for budget in budgets:
        if budget not in there:
            raise expected("--budget", f"one of {', '.join(map(str, there)) or 'none'}", Description(str(budget)))
    rows = [row for each in budgets or there for row in found.at(each, quick)]
    known = sorted({row.label for row in rows})
    for name in names:
        if name not in known:
            raise unknown(f"the atlas has no {name!r}", name, known, "it has")
    return [row for row in rows if not names or row.label in names]


def _environments(rows: list[Row]) -> list[Mapping[str, Any]]:
    return [row.environment for row in rows]


def _print_table(rows: list[Row]) -> None:
    from rich.table import Table

    from mnemoscope.core.numbers import number
    from mnemoscope.profiles.drawing import spoken
    from mnemoscope.profiles.section import all_sections, judged_quantities

    asked = {each.axis.column: each for each in judged_quantities(all_sections()) if each.axis is not None}
    judged = {title: each for title, each in asked.items() if any(row.scalar(each) is not None for row in rows)}
    out = console(wide=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("budget", "network", "n", "parameters", *judged):
        shown = title if out.width >= _ROOM else title.replace(" ", "\n").replace("-", "-\n")
        table.add_column(shown, justify="left" if title == "network" else "right", no_wrap=True)
    for row in rows:
        found = [row.scalar(each) for each in judged.values()]
        if out.width >= _ROOM:
            numbers = [spoken(each) for each in found]
        else:
            numbers = [number(None if each is None else each.value, 3) for each in found]
        network = row.network
        table.add_row(f"{row.budget:,}", row.label, str(network.hidden_size), f"{network.parameters:,}", *numbers)
    out.width = max(out.width, _LEAST)
    out.print(table)
