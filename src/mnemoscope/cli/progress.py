"""How far a long command is, on standard error, while it works; gone when it prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mnemoscope.cli.output import error_console

__all__ = ["tracked"]

T = TypeVar("T")
R = TypeVar("R")


def tracked(items: Iterable[T], name: Callable[[T], str], work: Callable[[T], R]) -> Iterator[tuple[T, R]]:
    """Give each item with what `work` makes of it. Meanwhile a bar shows its name, and about how long is left."""
    todo = list(items)
    bar = _bar()
    task = bar.add_task("", total=len(todo))
    for item in todo:
        bar.update(task, description=name(item))
        with bar:
            made = work(item)
        bar.advance(task)
        yield item, made


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    out = error_console()
    return Progress(
        *columns,
        TimeRemainingColumn(),
        console=out,
        transient=True,
        disable=not out.is_terminal,
        redirect_stdout=False,  # what is printed on standard output belongs there
        redirect_stderr=False,
    )
