"""The command ``train``: an experiment from a TOML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mnemoscope.cli.group import FAILURE
from mnemoscope.cli.output import Json, console, print_json, quiet
from mnemoscope.cli.warned import warned

if TYPE_CHECKING:
    from collections.abc import Callable

    from mnemoscope.training import Run

__all__ = ["Plot", "finish", "train"]

File = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT.toml",
        help=r"iterations = .., \[network] name = .., \[task] name = .., and any setting of mnemoscope.training.fit. "
        "A network FILE.py:CLASS runs the file's code.",
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", help="Instead of the seed or seeds of the file.", metavar="INTEGER")
]
Iterations = Annotated[
    int | None,
    typer.Option("--iterations", help="Instead of those of the file.", metavar="INTEGER", show_default=False),
]
Folder = Annotated[
    str | None, typer.Option("--folder", metavar="PATH", help="Where to record it, instead of a folder among the runs.")
]
Data = Annotated[
    str | None,
    typer.Option("--data", metavar="FOLDER", help="The data of tasks that read files, else $MNEMOSCOPE_DATA."),
]
Device = Annotated[str | None, typer.Option("--device", help="Where to compute: cpu, cuda, ..", metavar="DEVICE")]
Plot = Annotated[
    str | None,
    typer.Option("--plot", metavar="PATH", help="Draw the loss: .svg, .png, .pdf, .html or .json (Vega-Lite)."),
]


def train(
    experiment: File,
    seed: Seed = None,
    iterations: Iterations = None,
    folder: Folder = None,
    data: Data = None,
    device: Device = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Train a network on a task, as a TOML file says, record the run, and test it.

    The run can be killed at any moment and goes on with `mnemoscope resume`, or with the same command again.
    """
    from dataclasses import replace

    from mnemoscope.runs import root
    from mnemoscope.training import read_experiment

    found = read_experiment(experiment, {"seed": seed, "iterations": iterations, "device": device})
    if data is not None:
        found = replace(found, task={**found.task, "data": data})
    finish(lambda show: found.run(folder=folder, root=root(), progress=show), plot, json)


def finish(work: Callable[[bool | None], Run | list[Run]], plot: str | None, json: bool) -> None:
    """Do the work of a training and print what came out; of one that diverged or was interrupted the way on."""
    from mnemoscope.core import chart
    from mnemoscope.training import Diverged

    if plot is not None:
        chart.check_path(plot)
    try:
        with quiet(), warned():
            made = work(False if json else None)
    except Diverged as failure:
        if json:
            print_json(failure.run.to_dict())
        typer.echo(f"failed: {failure}", err=True)
        raise typer.Exit(FAILURE) from None
    except KeyboardInterrupt:
        typer.echo("interrupted; the same command again, or `mnemoscope resume RUN`, goes on", err=True)
        raise typer.Exit(FAILURE) from None
    several = made if isinstance(made, list) else [made]
    if plot is not None:
        chart.save(chart.beside(*(run.plot() for run in several)) if len(several) > 1 else several[0].plot(), plot)
    if json:
        print_json({"runs": [run.to_dict() for run in several]} if isinstance(made, list) else several[0].to_dict())
    else:
        _print(several, plot)


def _print(found: list[Run], plot: str | None) -> None:
    out = console()
    rows: dict[str, Any] = {}
    for run in found:
        out.print(f"seed {run.seed}: {run}" if len(found) > 1 else str(run), style="bold", soft_wrap=True)
    first = found[0]
    if len(found) == 1:
        for label, test in first.tests.items():
            rows[label] = ", ".join(f"{name} {value:.6g}" for name, value in test.items())
        if first.ending.weights_step != first.ending.step:
            rows["weights"] = f"of step {first.ending.weights_step}, the best by validation"
    if first.layout is not None:
        rows["layout"] = f"{first.layout['name']}, {len(first.layout['groups'])} groups"
    rows["folder"] = str(first.folder)
    if plot is not None:
        rows["picture"] = plot
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, value)
    out.print()
    out.print(table)
