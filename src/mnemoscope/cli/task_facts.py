"""Facts of a task for the commands on tasks, and one of its sequences as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from mnemoscope.tasks import Batch, Task

__all__ = ["example", "overview", "print_task"]

T = TypeVar("T")


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
        "naive": task.naive,
        "metric": task.metric,
        "dataset": task.dataset,
        "references": list(task.references),
        "cited": [reference(key).short for key in task.references],
    }


def example(task: Task, batch: Batch) -> dict[str, Any]:
    """Return the first sequence of a batch, ready for JSON: symbols by their number."""
    from mnemoscope.nn.panels import Panels

    steps = int(batch.lengths[0])
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
    what = {"classification": "class", "relational": "answer", "regression": "number", "binary": "bit"}[task.kind]
    size = [(task.steps, "step"), (facts["input_size"], "input"), (facts["output_size"], what)]
    settings = ", ".join(f"{name} = {_plain(value)}" for name, value in task.settings().items())
    found = {
        "settings": settings,
        "size": ", ".join(_counted(count, name) for count, name in size),
        "harder by": ", ".join(facts["axes"]) or "nothing that can be set step by step",
        "baseline": f"{facts['baseline']:.4g}" + ("" if task.naive.isdigit() else f" ({task.naive})"),
        "score": task.metric,
        "reference": "; ".join(facts["cited"]),
    }
    return found | ({} if picture is None else {"picture": picture})


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
