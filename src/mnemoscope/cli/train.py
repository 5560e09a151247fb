"""Command ``train``: an experiment from a TOML file, or from what is typed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mnemoscope.cli.cluster import Cluster, workers_at
from mnemoscope.cli.terminal import FAILURE, Force, Json, check_output, console, print_json, quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mnemoscope.core.result import Result
    from mnemoscope.training import Run

__all__ = ["Plot", "finish", "train"]

What = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT.toml|NETWORK",
        help=r"A file with iterations = .., \[network] name = .., \[task] name = .. and any setting of "
        "mnemoscope.training.fit; or a name of `mnemoscope networks`, or FILE.py:CLASS (this runs the file's code).",
        show_default=False,
    ),
]
TaskName = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK", help="With NETWORK: a task or an environment of `mnemoscope tasks`.", show_default=False
    ),
]
Hidden = Annotated[int | None, typer.Option("--hidden", help="Hidden size of NETWORK. Default: 64.")]
Layers = Annotated[int | None, typer.Option("--layers", help="Layers of NETWORK. Default: 1.")]
Parameters = Annotated[
    int | None,
    typer.Option("--parameters", help="Instead of --hidden: the size of NETWORK with so many."),
]
Count = Annotated[
    str, typer.Option("--count", help="What --parameters counts: recurrent, all (with readout), published.")
]
Set = Annotated[list[str] | None, typer.Option("--set", help="An option of NETWORK, NAME=VALUE.", metavar="NAME=VALUE")]
TaskSet = Annotated[
    list[str] | None,
    typer.Option("--task-set", help="A setting of TASK, NAME=VALUE: corridor=20.", metavar="NAME=VALUE"),
]
Training = Annotated[
    list[str] | None,
    typer.Option("--train", help="A setting of training: lr=0.001, batch_size=32.", metavar="NAME=VALUE"),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Of weights and batches; instead of those of the file.")]
Iterations = Annotated[
    int | None,
    typer.Option(
        "--iterations",
        help="Steps of the optimiser, in an environment updates; with NETWORK 1000 by default, in an environment 100.",
        show_default=False,
    ),
]
Folder = Annotated[
    str | None, typer.Option("--folder", metavar="PATH", help="Where to record it, instead of among the runs.")
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
    what: What,
    task: TaskName = None,
    hidden: Hidden = None,
    layers: Layers = None,
    parameters: Parameters = None,
    count: Count = "recurrent",
    options: Set = None,
    task_settings: TaskSet = None,
    training: Training = None,
    seed: Seed = None,
    iterations: Iterations = None,
    folder: Folder = None,
    data: Data = None,
    device: Device = None,
    ray: Cluster = None,
    plot: Plot = None,
    force: Force = False,
    json: Json = False,
    *,
    about: dict[str, Any],
) -> None:
    """Train a network on a task or in an environment, as a TOML file or these options say, record the run, and test it.

    The run can be killed at any moment and goes on with `mnemoscope resume`, or with the same command again.
    """
    from dataclasses import replace

    from mnemoscope.cli.options import named_values
    from mnemoscope.core.errors import UserError
    from mnemoscope.nn.advice import about_words
    from mnemoscope.runs import root
    from mnemoscope.tasks import control
    from mnemoscope.training import Experiment, read_experiment

    changes = {"seed": seed, "iterations": iterations, "device": device}
    if task is None:
        given: dict[str, Any] = {"--hidden": hidden, "--layers": layers, "--parameters": parameters}
        given |= {"--set": options, "--task-set": task_settings}
        more = {about_words(about)[0] if about else "": about or None}
        for flag, value in {**given, "--train": training, **more}.items():
            if value is not None:
                raise UserError(f"{flag} belongs to NETWORK TASK, not to a file: give both, or write it into the file")
        if not what.endswith(".toml"):
            raise UserError(
                f"{what!r} is no .toml file; to train a network, name a task too: mnemoscope train {what} copy"
            )
        found = read_experiment(what, changes)
    else:
        sizes: dict[str, Any] = {"hidden_size": hidden, "num_layers": layers, "parameters": parameters}
        sizes |= {} if parameters is None else {"count": count}
        network = {"name": what} | {name: size for name, size in sizes.items() if size is not None}
        default = 100 if task in control.names() else 1000
        settings = {"iterations": default} | {name: value for name, value in changes.items() if value is not None}
        found = Experiment(
            network | named_values(options or (), "--set") | about,
            {"name": task} | named_values(task_settings or (), "--task-set"),
            named_values(training or (), "--train") | settings,
        )
    if data is not None:
        found = replace(found, task={**found.task, "data": data})
    if ray is not None and "seeds" not in found.settings:
        raise UserError("--ray is for populations: give seeds, as in --train seeds=[0,1,2]")
    with workers_at(ray, root() if folder is None else Path(folder).absolute().parent) as workers:
        finish(lambda show: found.run(folder=folder, root=root(), progress=show, workers=workers), plot, force, json)


def finish(work: Callable[[bool | None], Run | list[Run] | Result], plot: str | None, force: bool, json: bool) -> None:
    """Do the work of a training and print what came out; of one that diverged or was interrupted the way on."""
    from mnemoscope.core.result import Result
    from mnemoscope.machines import stops_on_signals
    from mnemoscope.report import chart
    from mnemoscope.runs import OutOfBudget
    from mnemoscope.training import Diverged

    if plot is not None:
        chart.check_path(plot)
        check_output(plot, force)
    try:
        with quiet(), stops_on_signals():
            made = work(False if json else None)
    except Diverged as failure:
        if json:
            print_json(failure.run.to_dict())
        typer.echo(f"failed: {failure}", err=True)
        raise typer.Exit(FAILURE) from None
    except (KeyboardInterrupt, OutOfBudget) as stop:
        typer.echo(_way_on(getattr(stop, "__notes__", [])), err=True)
        raise typer.Exit(FAILURE) from None
    if isinstance(made, Result):
        _finish_search(made, plot, json)
        return
    several = made if isinstance(made, list) else [made]
    if plot is not None:
        chart.save(chart.beside(*(run.plot() for run in several)) if len(several) > 1 else several[0].plot(), plot)
    if json:
        print_json({"runs": [run.to_dict() for run in several]} if isinstance(made, list) else several[0].to_dict())
    else:
        _print(several, plot)


def _way_on(notes: Sequence[str]) -> str:
    """Say how an interrupted run goes on: by its id or folder, and with --trust where it runs the code of a file."""
    if not notes:
        return "interrupted before anything was recorded; begin again with the same command"
    again = f"`mnemoscope resume {shlex.quote(notes[-1])}{_trust(notes[-1])}`"
    return f"interrupted; the same command again, or {again}, goes on"


def _trust(run: str) -> str:
    """Return the option that a command on a run needs where its network is the code of a file."""
    from mnemoscope.core.errors import UserError
    from mnemoscope.core.plugins import is_location
    from mnemoscope.runs import find, load

    try:
        network = load(find(run)).spec.get("network", {})
    except UserError:
        return ""
    name = network.get("name", "") if isinstance(network, dict) else network
    return " --trust" if is_location(str(name)) else ""


def _finish_search(found: Result, plot: str | None, json: bool) -> None:
    from mnemoscope.report import chart
    from mnemoscope.training import Capacity

    if plot is not None:
        chart.save(found.plot(), plot)
    if json:
        own = found.to_dict()
        print_json({"capacities": [own], "comparisons": []} if isinstance(found, Capacity) else own)
    else:
        console().print(str(found), style="bold", soft_wrap=True)


def _shortest(folder: Path) -> str:
    """Return how a run is named in a command: the beginning of its id where it is among the usual runs."""
    from mnemoscope.runs import root

    return folder.name[:8] if folder.parent == root() else str(folder)


def _print(found: list[Run], plot: str | None) -> None:
    out = console(wide=True)
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
    if len(found) == 1 and first.folder is not None:
        place = _shortest(first.folder)
        rows["before and after"] = f"mnemoscope profile {shlex.quote(place)}{_trust(place)}"
    if plot is not None:
        rows["picture"] = plot
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, value)
    out.print()
    out.print(table)
