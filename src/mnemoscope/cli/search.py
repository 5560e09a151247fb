"""Command ``search``: rates, sizes and options that validation chooses, by a grid or at random."""

from __future__ import annotations

import math
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemoscope.cli.cluster import Cluster, workers_at
from mnemoscope.cli.shards import Folder, TheShard, run_shard, say_stopped
from mnemoscope.cli.terminal import FAILURE, Json, console, print_json, quiet, tracked
from mnemoscope.core.errors import UserError, expected

if TYPE_CHECKING:
    from mnemoscope.studies.machinery import Axis, Choice, RunSpec
    from mnemoscope.studies.machinery.search import Point

__all__ = ["search"]

Over = Annotated[
    list[str] | None,
    typer.Option(
        "--over",
        metavar="NAME=VALUES",
        help="What is searched over: a setting of training, hidden_size, num_layers, or an option of the network. "
        "Values as lr=0.01,0.001; with --random also a range, lr=1e-4..1e-1. May be repeated.",
    ),
]
Random = Annotated[int | None, typer.Option("--random", metavar="N", help="N points at random, instead of the grid.")]
Hidden = Annotated[int, typer.Option("--hidden", help="Hidden size, where it is no axis.")]
TaskSet = Annotated[
    list[str] | None, typer.Option("--task-set", metavar="NAME=VALUE", help="A setting of the task, for all points.")
]
Training = Annotated[
    list[str] | None, typer.Option("--train", metavar="NAME=VALUE", help="A setting of training, for all points.")
]
Seeds = Annotated[int, typer.Option("--seeds", help="Trainings of every point.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the first training, and of random points.")]
Iterations = Annotated[int, typer.Option("--iterations", help="Of every training.")]
Runs = Annotated[
    Path | None,
    typer.Option("--runs", metavar="FOLDER", help="Where runs live. Default: $MNEMOSCOPE_RUNS, else ./runs."),
]
_SHOWN = 20


def search(
    network: Annotated[str, typer.Argument(metavar="NETWORK", help="A name of `mnemoscope networks`.")],
    task: Annotated[str, typer.Argument(metavar="TASK", help="A name of `mnemoscope tasks`.")],
    over: Over = None,
    count: Random = None,
    hidden: Hidden = 64,
    task_settings: TaskSet = None,
    training: Training = None,
    seeds: Seeds = 3,
    seed: Seed = 0,
    iterations: Iterations = 1000,
    shard: TheShard = None,
    folder: Folder = None,
    ray: Cluster = None,
    runs: Runs = None,
    json: Json = False,
) -> None:
    """Search over rates, sizes and options; validation alone chooses, and the test of the choice is looked at once.

    Points are kept as runs: the same command goes on where it was, and a wider search does only what is new. Shares of
    it run on many machines (--shard K/N --folder DIR); after `mnemoscope runs merge DIR` the same command without
    --shard says what was chosen.
    """
    from mnemoscope.cli.options import named_values
    from mnemoscope.machines import stops_on_signals
    from mnemoscope.runs.folders import root
    from mnemoscope.studies.machinery import grid_points, random_points, search_plan
    from mnemoscope.training.capacities.inputs import checked_seeds

    axes = [_axis(text) for text in over or ()]
    if not axes:
        raise UserError("a search needs something to search over: --over lr=0.01,0.001")
    if len({axis.name for axis in axes}) < len(axes):
        raise UserError("every axis must be given once: --over lr=0.01,0.001 has all its values")
    if folder is not None and shard is None:
        raise UserError("--folder goes with --shard K/N")
    if shard is not None and (ray is not None or runs is not None):
        raise UserError("--shard goes with --folder, and with neither --ray nor --runs")
    points = grid_points(axes) if count is None else random_points(axes, count, seed)
    common: dict[str, Any] = {"network": network, "task": task, "hidden_size": hidden, "iterations": iterations}
    common |= {
        "task_settings": named_values(task_settings or (), "--task-set"),
        **named_values(training or (), "--train"),
    }
    common["seeds"] = [seed + one for one in checked_seeds(seeds)]
    with tempfile.TemporaryDirectory(prefix="mnemoscope-") as scratch, quiet():
        plan = search_plan(common, points, Path(scratch))
    with stops_on_signals():
        if shard is not None:
            document = run_shard(f"search-{network}-{task}", "own", plan, shard, folder, None, json)
            if json:
                print_json(document)
            return
        with workers_at(ray, root(runs)) as workers:
            found = _run(points, plan, runs, workers, json)
    _tell(axes, found, len(points), json)


def _axis(text: str) -> Axis:
    """Return the axis of NAME=A,B,C or NAME=LOW..HIGH."""
    from mnemoscope.cli.options import plain_value
    from mnemoscope.studies.machinery import Axis

    name, equals, values = text.partition("=")
    name = {"hidden": "hidden_size", "layers": "num_layers"}.get(name.strip(), name.strip())
    if not equals or not name or not values.strip():
        raise expected("--over", "NAME=VALUE,VALUE,.. or NAME=LOW..HIGH", text)
    ends = re.fullmatch(r"\s*([^,]+?)\s*\.\.\s*([^,]+?)\s*", values)
    if ends:
        return Axis(name, (plain_value(ends[1]), plain_value(ends[2])), is_range=True)
    return Axis(name, tuple(dict.fromkeys(plain_value(one.strip()) for one in values.split(",") if one.strip())))


def _run(points: list[Point], plan: list[RunSpec], runs: Path | None, workers: Any, json: bool) -> list[Choice]:
    from mnemoscope.machines import stop_asked
    from mnemoscope.studies.machinery import best_point, execute

    outcomes = execute(plan, runs, workers=workers)
    done: list[Any] = []
    names = {spec.key: _words(point) for point, spec in zip(points, plan, strict=True)}

    def work(_: Any) -> Any:
        with quiet():
            return next(outcomes, None)

    try:
        for _, outcome in tracked(plan, lambda spec: names[spec.key], work):
            if outcome is None:
                break
            done.append(outcome)
    except KeyboardInterrupt:
        say_stopped(len(done), len(plan))
    if stop_asked():
        say_stopped(len(done), len(plan))
    return best_point(points, done, plan)


def _words(point: Point) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in point.items())


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _tell(axes: list[Axis], found: list[Choice], points: int, json: bool) -> None:
    from mnemoscope.studies.machinery import edges

    best = found[0]
    failed = not best.loss < float("inf")
    beyond = [] if failed else edges(axes, best.point)
    if json:
        listed = [
            {"point": one.point, "validation_losses": [_number(loss) for loss in one.losses], "mean": _number(one.loss)}
            for one in found
        ]
        test = {name: best.outcome.summary[name] for name in ("test_loss", "test_score", "baseline")}
        chosen = None if failed else {"point": best.point, **test, "at_the_edge_of": beyond}
        print_json({"chosen": chosen, "points": listed})
    else:
        _print(found, beyond, failed)
    if failed:
        raise typer.Exit(FAILURE)


def _print(found: list[Choice], beyond: list[str], failed: bool) -> None:
    from statistics import fmean

    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in (*found[0].point, "validation loss", "sd over seeds"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in found[:_SHOWN]:
        values = map(_value, one.point.values())
        loss = f"{one.loss:.4g}" if one.loss < float("inf") else "diverged"
        table.add_row(*values, loss, "" if one.deviation is None else f"{one.deviation:.2g}")
    console(wide=True).print(table)
    if len(found) > _SHOWN:
        typer.echo(f"and {len(found) - _SHOWN} more")
    if failed:
        typer.echo("every point diverged: choose lower rates, or clip the gradient (--train clip_norm=1)", err=True)
        return
    best = found[0]
    scores = best.outcome.summary["test_score"]
    seeds = f"{len(scores)} seed{'' if len(scores) == 1 else 's'}"
    typer.echo(f"Chosen by validation: {_words(best.point)}; its score on the test: {fmean(scores):.4g} ({seeds})")
    if len(found) > 1 and _is_close(best, found[1]):
        typer.echo("The next point is as good within the spread of the seeds: more seeds tell them apart.")
    if beyond:
        typer.echo(f"It is at the edge of {' and '.join(beyond)}: the best may lie beyond.")


def _is_close(best: Choice, second: Choice) -> bool:
    """Say whether two points differ by less than the standard error of their difference."""
    if best.deviation is None or second.deviation is None:
        return False
    spread = math.hypot(best.deviation / len(best.losses) ** 0.5, second.deviation / len(second.losses) ** 0.5)
    return second.loss - best.loss < spread


def _number(value: float) -> float | None:
    return value if value < float("inf") else None
