"""What ``profile`` and ``compare`` show: the progress, the plan, the summary with its verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from mnemoscope.cli.terminal import console, error_console, print_json

if TYPE_CHECKING:
    from mnemoscope.profiles.profile import Profile
    from mnemoscope.profiles.runner import Piece, Runner, Watch

__all__ = ["print_plan", "print_profile", "progress"]


@contextmanager
def progress(runner: Runner) -> Iterator[Watch | None]:
    """Show a bar, what is measured, and about how long is left; nothing where nobody looks."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    out = error_console()
    if not out.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    left = TextColumn("{task.fields[left]}")
    with Progress(*columns, left, console=out, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task("", total=None, left="")
        begin = time.perf_counter()

        def watch(piece: Piece | None, done: float, total: float) -> None:
            if piece is not None:
                ratio = (time.perf_counter() - begin) / done if done > 1 else 1.0
                about = f"about {max(1, round(ratio * (total - done)))} s left"
                name = f"{piece.part.title} of {runner.label(piece)}, seed {piece.seed}"
                bar.update(task, description=name, completed=done, total=total, left=about)

        yield watch


def print_plan(runner: Runner, json: bool) -> None:
    """Print what would be measured, and about how long it takes."""
    pieces = runner.plan()
    total = sum(piece.seconds for piece in pieces)
    found: dict[tuple[str, str], list[float]] = {}
    for piece in pieces:
        found.setdefault((runner.label(piece), piece.part.name), []).append(piece.seconds)
    if json:
        plan = [
            {"network": network, "part": name, "seeds": len(each), "seconds": sum(each)}
            for (network, name), each in found.items()
        ]
        print_json({"plan": plan, "seconds": total})
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("network", "part", "seeds", "about"):
        table.add_column(title, justify="right" if title in ("seeds", "about") else "left")
    for (network, name), each in found.items():
        table.add_row(network, name, str(len(each)), f"{sum(each):.1f} s")
    out = console(wide=True)
    out.print(table)
    out.print(f"\nabout {total:.0f} s in all; nothing was measured")


def print_profile(found: Profile, taken_up: int, page: Path | None, written: int) -> None:
    """Print the summary of every network, the verdict, and what was written."""
    from mnemoscope.profiles.summary import identity
    from mnemoscope.profiles.summary import table as summarised

    out = console(wide=True)
    for row in found.rows:
        out.print(f"{row['label']}", style="bold")
        out.print(f"{identity(row)}\n")
        for said in row["notices"]:
            out.print(f"note: {said}\n", style="yellow")
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=True, header_style="dim")
        for title in ("", "this network (95%)", _beside(found)):
            table.add_column(title, overflow="fold")
        for line in summarised(row, found.references):
            table.add_row(*line)
        out.print(table)
        out.print()
    _print_verdict(out, found)
    if taken_up:
        out.print(f"{taken_up} results were taken up from an earlier run", style="dim")
    if page is not None:
        out.print(f"page: {page}")
    if written:
        out.print(f"{written} files for a paper were written")


def _beside(found: Profile) -> str:
    counts = sorted(row["network"]["parameters"] for row in found.references)
    return f"{len(counts)} references, {counts[0]:,} to {counts[-1]:,} parameters" if counts else "no references"


def _print_verdict(out: Any, found: Profile) -> None:
    marks = {"good": ("+", "green"), "bad": ("-", "red"), "neutral": ("·", "default")}
    statements = found.page.verdict
    for statement in statements:
        mark, colour = marks[statement.tone]
        out.print(f"{mark} {statement.text}", style=colour)
        if statement.tone != "neutral":
            out.print(f"    {statement.confidence}", style="dim")
    if statements:
        out.print()
