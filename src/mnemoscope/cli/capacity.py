"""Command ``capacity``: the largest difficulty of a task that a network still learns."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemoscope.cli.cluster import Cluster, workers_at
from mnemoscope.cli.terminal import FAILURE, Force, Json, check_output, console, print_json, quiet
from mnemoscope.core.errors import UserError, choice, expected, positive_int

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mnemoscope.nn import NetworkSpec
    from mnemoscope.training import Capacity, Search
    from mnemoscope.training.capacities.inputs import Builder

__all__ = ["capacity"]

_PANEL, _SEARCH, _TRAINING = "The network", "The search", "The training"


def _option(*names: str, panel: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False, **more)


Networks = Annotated[
    list[str],
    typer.Argument(
        metavar="NETWORK",
        help="Names of `mnemoscope networks`, or FILE.py:CLASS (this runs the file's code); each may have sizes and "
        "options of its own: lstm:hidden=32.",
        show_default=False,
    ),
]
Task = Annotated[str, typer.Argument(metavar="TASK", help="A task or an environment of `mnemoscope tasks`.")]
Hidden = Annotated[int | None, _option("--hidden", panel=_PANEL, help="Hidden size n. Default: 64.")]
Layers = Annotated[
    str, _option("--layers", panel=_PANEL, help="Layers; several depths as 1,2,3. Default: 1.", metavar="N|N,N")
]
Parameters = Annotated[
    int | None,
    _option("--parameters", panel=_PANEL, help="Instead of --hidden: the size with so many, as --count says."),
]
Count = Annotated[
    str,
    _option("--count", panel=_PANEL, help="What counts: recurrent, all (with readout), published."),
]
Set = Annotated[
    list[str] | None, _option("--set", panel=_PANEL, help="An option of the network, NAME=VALUE.", metavar="NAME=VALUE")
]
TaskSet = Annotated[
    list[str] | None,
    _option("--task-set", panel=_SEARCH, help="A setting of the task, NAME=VALUE.", metavar="NAME=VALUE"),
]
Criterion = Annotated[
    float, _option("--criterion", panel=_SEARCH, help="The score of a mastered level. Default: 0.99.")
]
Quorum = Annotated[float, _option("--quorum", panel=_SEARCH, help="Share of seeds that must master it. Default: 0.5.")]
Seeds = Annotated[int, _option("--seeds", panel=_SEARCH, help="Trainings per level. Default: 3.")]
Seed = Annotated[int, _option("--seed", panel=_SEARCH, help="The first seed. Default: 0.")]
Start = Annotated[int | None, _option("--start", panel=_SEARCH, help="The first level.")]
Largest = Annotated[int | None, _option("--largest", panel=_SEARCH, help="The last level that is tried.")]
Grid = Annotated[str | None, _option("--grid", panel=_SEARCH, help="Levels in ascending order instead: 50,100,150.")]
Resolution = Annotated[
    float, _option("--resolution", panel=_SEARCH, help="How well the limit is to be known, as a share. Default: 0.1.")
]
Iterations = Annotated[
    int | None,
    _option("--iterations", panel=_TRAINING, help="Of one training, at most. Default: 2000, in an environment 200."),
]
Budget = Annotated[int | None, _option("--budget", panel=_SEARCH, help="Iterations of all trainings together.")]
Minutes = Annotated[
    float | None,
    _option("--minutes", panel=_SEARCH, help="Of training, in all."),
]
Warm = Annotated[bool, _option("--warm-start", panel=_SEARCH, help="Start from the weights of an easier level.")]
Folder = Annotated[
    Path | None,
    typer.Option("--folder", metavar="FOLDER", help="Record it here. Default: a folder in $MNEMOSCOPE_RUNS or ./runs."),
]
Data = Annotated[str | None, typer.Option("--data", metavar="FOLDER", help="Of tasks that read files.")]
Training = Annotated[
    list[str] | None,
    _option("--train", panel=_TRAINING, help="A setting of training: lr=0.001, batch_size=32.", metavar="NAME=VALUE"),
]
Plot = Annotated[str | None, typer.Option("--plot", metavar="PATH", help="Draw the curve: .svg, .png, .pdf, .html.")]


def capacity(
    networks: Networks,
    task: Task,
    hidden: Hidden = None,
    layers: Layers = "1",
    parameters: Parameters = None,
    count: Count = "recurrent",
    options: Set = None,
    task_settings: TaskSet = None,
    criterion: Criterion = 0.99,
    quorum: Quorum = 0.5,
    seeds: Seeds = 3,
    seed: Seed = 0,
    start: Start = None,
    largest: Largest = None,
    grid: Grid = None,
    resolution: Resolution = 0.1,
    iterations: Iterations = None,
    budget: Budget = None,
    minutes: Minutes = None,
    warm_start: Warm = False,
    folder: Folder = None,
    data: Data = None,
    training: Training = None,
    ray: Cluster = None,
    plot: Plot = None,
    force: Force = False,
    json: Json = False,
    *,
    about: dict[str, Any],
) -> None:
    """Find the largest difficulty of a task that a network still learns; of several, each, and compare them.

    Trains several seeds at each level: levels double as long as most seeds master them, then the gap is bisected.
    Several networks, or depths (--layers 1,2,3), best at one number of --parameters, are compared paired by seed.
    """
    from mnemoscope import tasks
    from mnemoscope.cli.options import named_values
    from mnemoscope.nn.parameters import COUNTS
    from mnemoscope.report import chart
    from mnemoscope.runs import root
    from mnemoscope.training import Search, compare_capacities
    from mnemoscope.training.capacities.inputs import checked_seeds, checked_training, maker
    from mnemoscope.training.capacities.result import draw_capacities

    if plot is not None:
        chart.check_path(plot)
        check_output(plot, force)
    chosen = tasks.problem(
        task, **named_values(task_settings or (), "--task-set") | ({} if data is None else {"data": data})
    )
    depths = _depths(layers)
    if minutes is not None and not minutes > 0:
        raise expected("--minutes", "a number above 0", minutes)
    settings = {
        "criterion": criterion,
        "quorum": quorum,
        "seeds": [seed + k for k in checked_seeds(seeds)],
        "start": start,
        "largest": largest,
        "grid": None if grid is None else _integers("--grid", grid),
        "resolution": resolution,
        "iterations": iterations,
        "budget": budget,
        "warm_start": warm_start,
        **checked_training(named_values(training or (), "--train"), chosen),
    }
    sizes: dict[str, Any] = {} if hidden is None else {"hidden_size": hidden}
    sizes |= {} if parameters is None else {"parameters": parameters, "count": count}
    choice("count", count, COUNTS)
    own = named_values(options or (), "--set")
    with quiet():  # every network before the first training: a mistake in the last must not cost hours
        builders = [
            maker(_described(network, depth, sizes, own, about), chosen) for network in networks for depth in depths
        ]
    builders = _told_apart(builders)
    home = root() if folder is None else None
    with workers_at(ray, home or folder) as workers:
        settings |= {} if workers is None else {"workers": workers}
        places = [_place(folder, one, builders) for one in builders]
        searches = [
            Search(one, chosen, folder=place, root=home, **settings)
            for one, place in zip(builders, places, strict=True)
        ]
        found = _searched(searches, chosen, minutes, json)
    compared = compare_capacities(found) if len(found) > 1 and seeds > 1 else []
    if plot is not None:
        chart.save(draw_capacities(found), plot)
    if json:
        print_json({"capacities": [one.to_dict() for one in found], "comparisons": [one.to_dict() for one in compared]})
        return
    for line in (*found, *compared):
        console().print(str(line), style="bold", soft_wrap=True)
    first = searches[0].settings.folder
    typer.echo(f"recorded in {first if first is None or len(searches) == 1 else first.parent}")
    if compared and not all(one.complete for one in found):
        typer.echo("differences are of what was mastered so far: not every search is finished")


def _described(
    network: str, depth: int, sizes: Mapping[str, Any], options: Mapping[str, Any], about: Mapping[str, Any]
) -> NetworkSpec:
    """Return one network of those that were typed, at one depth; advice is for those that are not our own."""
    from mnemoscope.cli.profile import described
    from mnemoscope.core.plugins import is_location

    deep = {"num_layers": depth} if depth > 1 else {}
    return described(network, {**sizes, **deep}, options, about if is_location(network) else {})


def _told_apart(builders: Sequence[Builder]) -> list[Builder]:
    """Return them with labels that differ: of classes of one name in several files, with the file."""
    labels = [one.label for one in builders]
    named = [
        one._replace(label=f"{one.label} of {_file(one)}") if labels.count(one.label) > 1 and _file(one) else one
        for one in builders
    ]
    for one in named:
        if sum(one.label == other.label for other in named) > 1:
            raise UserError(f"networks must differ in name or size to be told apart, got {one.label} twice")
    return named


def _file(one: Builder) -> str:
    path, colon, _ = str(one.spec.get("network", "")).rpartition(":")
    return Path(path).name if colon and path.endswith(".py") else ""


def _place(folder: Path | None, one: Builder, builders: Sequence[Builder]) -> Path | None:
    """Return where a search is recorded: in the folder itself, or each in one of its own name."""
    if folder is None or len(builders) == 1:
        return folder
    if len({other.spec["network"] for other in builders}) == 1 and len({o.spec["num_layers"] for o in builders}) > 1:
        return folder / f"depth-{one.spec['num_layers']}"
    return folder / "-".join(re.findall(r"[A-Za-z0-9.]+", one.label))


def _searched(searches: Sequence[Search], task: Any, minutes: float | None, json: bool) -> list[Capacity]:
    from mnemoscope.training import take_turns

    try:
        with quiet():
            return take_turns(searches, minutes=minutes, on_level=None if json else _teller(task, minutes))
    except KeyboardInterrupt:
        typer.echo("interrupted; the same command goes on", err=True)
        raise typer.Exit(FAILURE) from None


def _teller(task: Any, minutes: float | None) -> Callable[[Search, Mapping[str, Any]], None]:
    """Return what prints a line for every level that is done, with the time left where there is a limit."""
    begin = time.monotonic()

    def tell(search: Search, level: Mapping[str, Any]) -> None:
        scores = ", ".join("diverged" if score is None else f"{score:.4f}" for score in level["scores"])
        word = "mastered" if level["mastered"] else "not mastered"
        left = "" if minutes is None else f"; at most {_spoken(60 * minutes - (time.monotonic() - begin))} left"
        name = f"{search.builder.label}, {task.difficulty} {level['level']}"
        typer.echo(f"{name}: {word} (scores {scores}), {level['seconds']:.0f} s{left}", err=True)

    return tell


def _spoken(seconds: float) -> str:
    return f"{max(0.0, seconds):.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _depths(text: str) -> list[int]:
    depths = [positive_int("--layers", depth) for depth in _integers("--layers", text)]
    if len(set(depths)) != len(depths):
        raise expected("--layers", "different depths", text)
    return depths


def _integers(flag: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UserError(f"{flag} must be whole numbers with commas between, got {text!r}") from None
