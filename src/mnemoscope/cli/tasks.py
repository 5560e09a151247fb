"""Commands ``tasks`` and ``task show``: the list of tasks, and one sequence of a task."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mnemoscope.cli.terminal import Force, Json, check_output, console, print_json

if TYPE_CHECKING:
    from mnemoscope.tasks import Batch, Task

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

T = TypeVar("T")

_WIDE = 140
"""Columns of a terminal from which on the list has room for everything."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, invoke_without_command=True)


def tasks(json: Json = False) -> None:
    """List all tasks and environments: what makes them harder, what is reached without memory, score, reference."""
    from mnemoscope.cli.environments import all_environments, print_environments
    from mnemoscope.tasks import get, names

    found = [overview(get(name)()) for name in names()]
    if json:
        print_json({"tasks": found, "environments": all_environments()})
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
        f"{len(found)} tasks. baseline: the loss of a naive answer at the default settings, the best without memory "
        "unless `mnemoscope task show NAME` says otherwise."
    )
    out.print("Files that tasks read: mnemoscope data. One sequence of a task: mnemoscope task show NAME")
    out.print()
    print_environments(out, all_environments())


@app.callback()
def task(context: typer.Context) -> None:
    """Look at a task: one of its sequences, its settings, its baseline."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def show(
    task: Name,
    set: Set = None,
    data: Data = None,
    seed: Seed = 0,
    plot: Plot = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show one sequence of a task as a person would write it down, with its settings; of an environment its facts."""
    import torch

    from mnemoscope.report import chart
    from mnemoscope.tasks import control

    if task in control.names():
        _show_environment(task, set or [], data, plot, json)
        return

    if plot is not None:
        chart.check_path(plot)
        check_output(plot, force)
    found = task_of(task, set or [], data)
    batch = found.sample(1, torch.Generator().manual_seed(_seed(seed)))
    if plot is not None:
        from mnemoscope.tasks.drawing import draw_example

        chart.save(draw_example(found, batch), plot)
    if json:
        print_json(overview(found) | {"seed": seed, "example": example(found, batch)})
    else:
        print_task(console(), found, batch, plot)


def _show_environment(name: str, settings: list[str], data: str | None, plot: str | None, json: bool) -> None:
    from mnemoscope.cli.environments import environment_overview, print_environment
    from mnemoscope.core.errors import UserError
    from mnemoscope.tasks import control

    if data is not None:
        raise UserError(f"the environment {name} reads no data, got --data {data}")
    if plot is not None:
        raise UserError(
            f"what {name} shows depends on what is done in it: `mnemoscope train lstm {name} --plot` draws that"
        )
    found = control.create(name, **_settings(settings))
    if json:
        print_json(environment_overview(found))
    else:
        print_environment(console(), found)


def _settings(given: list[str]) -> dict[str, Any]:
    """Return settings from NAME=VALUE."""
    from mnemoscope.core.errors import Description, expected

    values: dict[str, Any] = {}
    for text in given:
        setting, equals, value = text.partition("=")
        if not equals or not setting.isidentifier():
            raise expected("--set", "NAME=VALUE, as in delay=20", Description(repr(text)))
        values[setting] = _value(value)
    return values


def task_of(name: str, settings: list[str], data: str | None) -> Task:
    """Return the task of a command: by name, with the settings NAME=VALUE and the data folder that were given."""
    from mnemoscope.core.errors import UserError
    from mnemoscope.tasks import create, get

    values = _settings(settings)
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


def overview(task: Task) -> dict[str, Any]:
    """Return what a list of tasks says of one; None for what needs files that are not there."""
    from mnemoscope.core.docs import summary
    from mnemoscope.core.references import reference

    return {
        "name": task.name,
        "summary": summary(type(task)),
        "settings": task.settings(),
        "kind": task.kind,
        "steps": task.steps,
        "input_size": _known(lambda: task.input_size),
        "output_size": _known(lambda: task.output_size),
        "difficulty": task.difficulty,
        "axes": list(task.axes or filter(None, (task.difficulty,))),
        "baseline": _known(lambda: task.baseline),
        "baseline_is": task.baseline_is,
        "memoryless": _known(lambda: task.memoryless),
        "naive": task.naive,
        "metric": task.metric,
        "dataset": task.dataset,
        "references": list(task.references),
        "cited": [reference(key).short for key in task.references],
    }


def example(task: Task, batch: Batch) -> dict[str, Any]:
    """Return the first sequence of a batch, ready for JSON: symbols by their number."""
    from mnemoscope.nn.panels import Panels

    steps = int(batch.ends[0])
    panels = isinstance(batch.inputs, Panels)  # images are said by their numbers
    inputs = (batch.inputs.index if panels else batch.inputs)[:steps, 0]
    symbols = task.glyphs() is not None and inputs.ndim == 2
    targets = batch.targets[0] if batch.per_sequence else batch.targets[:steps, 0]
    return {
        "inputs": (inputs.argmax(-1) if symbols else inputs).tolist(),
        "targets": targets.tolist(),
        "mask": batch.mask[:steps, 0].tolist(),
        "scored": task.scored(batch)[:steps, 0].tolist(),
        "length": steps,
    }


def print_task(out: Console, task: Task, batch: Batch, picture: str | None) -> None:
    """Print what a task is, and the first sequence of a batch."""
    facts = overview(task)
    out.print(Text(task.name, "bold"), soft_wrap=True)
    for line in textwrap.wrap(facts["summary"], min(out.width, 120)):
        out.print(line, soft_wrap=True)
    out.print()
    for name, value in _facts(task, facts, picture).items():
        out.print(f"{name:<11}{value}", soft_wrap=True)
    out.print()
    for line in _drawn(task, batch, out.width):
        out.print(line, soft_wrap=True)


def _drawn(task: Task, batch: Batch, width: int) -> list[str]:
    """Return the lines of a sequence: an image, or rows over time with what their signs mean."""
    from mnemoscope.tasks.sketch import example_rows, fitted, fold, shades

    images = task.pictures(batch)
    if not images:
        lines = list(fold(example_rows(task, batch), width))
        return [*lines, "", _legend(task, "".join(lines))]
    beside = shades(images) if len({len(image) for image in images.values()}) == 1 else []
    if beside and max(map(len, beside)) <= width:
        return beside
    return [line for name, image in images.items() for line in [*shades({name: fitted(image, width)}), ""]]


def _facts(task: Task, facts: dict[str, Any], picture: str | None) -> dict[str, str]:
    words = {"relational": "answer", "pairs": "answer", "regression": "number", "binary": "bit"}
    what = words.get(task.kind, "class")
    size = [(task.steps, "step"), (facts["input_size"], "input"), (facts["output_size"], what)]
    settings = ", ".join(f"{name} = {_plain(value)}" for name, value in task.settings().items())
    found = {
        "settings": settings,
        "size": ", ".join(_counted(count, name) for count, name in size),
        "harder by": ", ".join(facts["axes"]) or "nothing that can be set step by step",
        "baseline": f"{facts['baseline']:.4g}" + ("" if task.naive.isdigit() else f" ({task.naive})"),
        **_memoryless(task, facts),
        "score": task.metric,
        "reference": "; ".join(facts["cited"]),
    }
    return found | ({} if picture is None else {"picture": picture})


def _memoryless(task: Task, facts: dict[str, Any]) -> dict[str, str]:
    """Return whose loss the baseline is, and the best from the present input alone, where these are not the same."""
    if facts["memoryless"] == facts["baseline"]:
        return {"which is": task.baseline_is}
    best = facts["memoryless"]
    return {"which is": task.baseline_is, "without memory": "not known" if best is None else f"{best:.4g}"}


def _counted(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}{'es' if name.endswith('s') else 's'}"


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _legend(task: Task, drawn: str) -> str:
    from mnemoscope.tasks.glyphs import BLANK, CUE

    blank = "nothing open" if task.name == "dyck" else "blank" if task.glyphs() else "0"
    words = {BLANK: blank, CUE: "cue", "█": "1", "•": "counts", "⋯": "equal steps, how many in brackets"}
    return ", ".join(f"{sign} {word}" for sign, word in words.items() if sign in drawn)


def _known(value: Callable[[], T]) -> T | None:
    from mnemoscope.core.errors import UserError

    try:
        return value()
    except UserError:
        return None
