"""Progress of a profile in the terminal, and its plan before it begins."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.table import Table

from mnemoscope.cli.terminal import console, error_console, print_json

if TYPE_CHECKING:
    from mnemoscope.profiles.measuring import Piece
    from mnemoscope.profiles.profiling import Profiling
    from mnemoscope.profiles.progress import Progress

__all__ = ["print_plan", "shown_progress"]


@contextmanager
def shown_progress(work: Profiling, json: bool) -> Iterator[Progress | None]:
    """Show a bar, what is measured, and about how long is left; in a log a line for each part; with --json nothing."""
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    from mnemoscope.profiles.progress import Lines

    out = error_console()
    if not out.is_terminal:
        yield None if json else Lines(work.label)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    left = TextColumn("{task.fields[left]}")
    with RichProgress(*columns, left, console=out, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        yield _Bar(bar, work)


class _Bar:
    """Progress as a bar."""

    def __init__(self, bar: Any, work: Profiling) -> None:
        self._bar, self._work = bar, work
        self._task = bar.add_task("", total=None, left="")
        self._begin = time.perf_counter()

    def watch(self, piece: Piece | None, done: float, total: float) -> None:
        from mnemoscope.profiles.progress import about_left

        if piece is not None:
            name = f"{piece.section.title} of {self._work.label(piece)}, seed {piece.seed}"
            about = about_left(time.perf_counter() - self._begin, done, total)
            self._bar.update(self._task, description=name, completed=done, total=total, left=about)

    def say(self, text: str) -> None:
        self._bar.update(self._task, description=text, left="")


def print_plan(work: Profiling, json: bool) -> None:
    """Print what would be measured, and about how long it takes."""
    pieces = work.plan()
    total, expected = work.expected_seconds(bounded=False), work.expected_seconds()
    budget, one = work.runner.budget, work.runner.one_seed()
    found: dict[tuple[str, str], list[float]] = {}
    for label, piece in pieces:
        found.setdefault((label, piece.section.name), []).append(piece.seconds)
    if json:
        plan = [
            {"network": network, "part": name, "seeds": len(each), "seconds": sum(each)}
            for (network, name), each in found.items()
        ]
        print_json({"plan": plan, "seconds": total, "expected": expected, "budget": budget, "one_seed": one})
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("network", "part", "seeds", "about"):
        table.add_column(title, justify="right" if title in ("seeds", "about") else "left")
    for (network, name), each in found.items():
        table.add_row(network, name, str(len(each)), f"{sum(each):.1f} s")
    out = console(wide=True)
    out.print(table)
    out.print(f"\nabout {total:.0f} s in all{_cut(total, one, budget)}; nothing was measured")


def _cut(total: float, one: float, budget: float | None) -> str:
    """Say what the budget makes of it."""
    if budget is None or total <= budget:
        return ""
    if one <= budget:
        return f", of which the budget of {budget:g} s takes as many seeds as it can (--full: all)"
    return (
        f", one seed of every part {one:.0f} s; the budget is {budget:g} s (--minutes {one / 60:.1f}: one seed of all)"
    )
