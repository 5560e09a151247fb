"""Commands ``tasks`` and ``task show``: the list of tasks, and one sequence of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mnemoscope.cli.output import Json, console, print_json

if TYPE_CHECKING:
    from mnemoscope.tasks import Task

__all__ = ["Data", "app", "task_of", "tasks"]

Name = Annotated[str, typer.Argument(metavar="TASK", help="A name of `mnemoscope tasks`.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting: delay=20. Can be given several times."),
]
Data = Annotated[
    str | None, typer.Option("--data", metavar="FOLDER", help="Where the data are; by default $MNEMOSCOPE_DATA.")
]
Seed = Annotated[int, typer.Option("--seed", help="Draws the example.")]
Plot = Annotated[
    str | None, typer.Option("--plot", metavar="PATH", help="Draw it: .svg, .png, .pdf, .html or .json (Vega-Lite).")
]

_WIDE = 140
"""Columns of a terminal from which on the list has room for everything."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, invoke_without_command=True)


def tasks(json: Json = False) -> None:
    """List all tasks: what makes them harder, the loss without memory, the score, reference."""
    from mnemoscope.cli.task_facts import overview
    from mnemoscope.tasks import get, names

    found = [overview(get(name)()) for name in names()]
    if json:
        print_json({"tasks": found})
        return
    out = console(wide=True)
    titles = ["harder by", "baseline", "which is", "score", "data", "reference"]
    if out.width < _WIDE:
        titles = [title for title in titles if title not in ("which is", "data")]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("name", no_wrap=True, overflow="fold")
    for title in titles:
        table.add_column(title, overflow="fold", justify="right" if title == "baseline" else "left")
    for one in found:
        cells = {
            "harder by": ", ".join(one["axes"]),
            "baseline": "" if one["baseline"] is None else f"{one['baseline']:.4g}",
            "which is": one["naive"],
            "score": one["metric"],
            "data": one["dataset"] or "",
            "reference": "; ".join(one["cited"]),
        }
        table.add_row(one["name"], *(cells[title] for title in titles))
    out.print(table)
    out.print()
    out.print(
        f"{len(found)} tasks. baseline: the loss of the best answer that uses no memory, at the default settings."
    )
    out.print("Files that tasks read: mnemoscope data. One sequence of a task: mnemoscope task show NAME")


@app.callback()
def task(context: typer.Context) -> None:
    """Look at a task: one of its sequences, its settings, its baseline."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def show(task: Name, set: Set = None, data: Data = None, seed: Seed = 0, plot: Plot = None, json: Json = False) -> None:
    """Show one sequence of a task as a person would write it down, with the settings of the task."""
    import torch

    from mnemoscope.cli.task_facts import example, overview, print_task
    from mnemoscope.report import chart

    if plot is not None:
        chart.check_path(plot)
    found = task_of(task, set or [], data)
    batch = found.sample(1, torch.Generator().manual_seed(_seed(seed)))
    if plot is not None:
        from mnemoscope.tasks.drawing import draw_example

        chart.save(draw_example(found, batch), plot)
    if json:
        print_json(overview(found) | {"seed": seed, "example": example(found, batch)})
    else:
        print_task(console(), found, batch, plot)


def task_of(name: str, settings: list[str], data: str | None) -> Task:
    """Return the task of a command: by name, with the settings NAME=VALUE and the data folder that were given."""
    from mnemoscope.core.errors import Description, UserError, expected
    from mnemoscope.tasks import create, get

    values: dict[str, Any] = {}
    for text in settings:
        setting, equals, value = text.partition("=")
        if not equals or not setting.isidentifier():
            raise expected("--set", "NAME=VALUE, as in delay=20", Description(repr(text)))
        values[setting] = _value(value)
    if data is not None:
        if get(name).dataset is None:
            raise UserError(f"the task {name} reads no data; --data is for mnist, pmnist, smnist, shakespeare and ptb")
        values["data"] = data
    return create(name, **values)


def _value(text: str) -> Any:
    from mnemoscope.cli.options import plain_value

    return tuple(plain_value(part) for part in text.split(",")) if "," in text else plain_value(text)


def _seed(seed: int) -> int:
    from mnemoscope.core.errors import expected

    if not 0 <= seed < 2**63:
        raise expected("--seed", "a whole number from 0 to 2^63 - 1", seed)
    return seed
