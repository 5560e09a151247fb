"""Course of a training: lines into the record, checkpoints when they are due, progress on the terminal."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from mnemoscope.runs import Checkpoint, Damaged, Metrics, OutOfBudget, Recorder
from mnemoscope.training.loop import Loop

__all__ = ["Progress", "drive", "latest_checkpoint", "restore"]


def restore(loop: Loop, record: Recorder | None) -> None:
    """Go on from the latest checkpoint of a run that was there before."""
    if record is not None and record.resumed:
        loop.restore(latest_checkpoint(record))


def latest_checkpoint(record: Recorder) -> Checkpoint:
    """Return the latest checkpoint of a run, or raise: without one nobody knows the weights that it began with."""
    found = record.first or record.latest()
    if found is None:
        raise Damaged(
            f"run {record.id} has no checkpoint, not even of the weights it began with: train in another folder"
        )
    return found


def drive(
    loop: Loop,
    record: Recorder | None,
    progress: Progress,
    tell: Callable[[int, list[dict[str, Any]]], None] | None = None,
    *,
    rewind: bool = False,
) -> Metrics:
    """Run a training to its end, and return the lines of its metrics, those before it was resumed included.

    Parameters
    ----------
    tell
        Called with the step and the new lines, when there are any.
    rewind
        Whether the last checkpoint of a network that failed is the good one before, and not how it ended.
    """
    lines = Metrics() if record is None else record.kept
    keeper = _Keeper(record, loop.iteration, loop.options.checkpoint_seconds, loop.options.checkpoint_every)
    for rows in _kept(loop, keeper, progress.until):
        for row in rows:
            lines.append(row)
            if record is not None:
                record.append(row)
        progress.update(loop.iteration, rows, len(loop.alive))
        if tell is not None and rows:
            tell(loop.iteration, rows)
        failed = loop.before_failure if rewind else None
        if failed is not None:
            keeper.save(failed)
        elif loop.good is not None:
            keeper.consider(loop.good, last=not loop.alive)
    return lines


def _kept(loop: Loop, keeper: _Keeper, until: float) -> Iterator[list[dict[str, Any]]]:
    """Run a loop; where its time is up, keep what it came to."""
    try:
        yield from loop.run(until)
    except OutOfBudget:
        if loop.good is not None:
            keeper.save(loop.good)
        raise


class _Keeper:
    """Decides when a checkpoint is due: the last, every so many steps, and every so many seconds."""

    def __init__(self, record: Recorder | None, step: int, seconds: float, every: int | None) -> None:
        self.record, self.seconds, self.every = record, seconds, every
        self._saved, self._step = time.monotonic(), step

    def consider(self, snapshot: Checkpoint, *, last: bool) -> None:
        """Save a good state when one is due."""
        due = self.every is not None and snapshot.step % self.every == 0
        if due or last or time.monotonic() - self._saved > self.seconds:
            self.save(snapshot, again=last)

    def save(self, snapshot: Checkpoint, *, again: bool = False) -> None:
        """Save a good state, unless that of its step is saved."""
        if self.record is None or (snapshot.step <= self._step and not again):
            return
        self.record.checkpoint(snapshot.step, snapshot.tensors, snapshot.state)
        self._saved, self._step = time.monotonic(), snapshot.step


_SECONDS = 0.2
"""Between two changes of the line."""


class Progress:
    """A line that shows how far a training is.

    Parameters
    ----------
    total
        Steps.
    label
        What is trained.
    naive
        The loss, or the return, of a naive answer, in words; empty where nobody knows it.
    show
        Whether to show it; None: when standard error is a terminal.
    until
        When the training stops, of `time.monotonic`.
    """

    def __init__(
        self, total: int, label: str, naive: str, show: bool | None = None, *, until: float = math.inf
    ) -> None:
        self.total, self.label, self.naive, self.until = total, label, naive, until
        self.show = sys.stderr.isatty() if show is None else show
        self._bar: Any = None
        self._shown = 0.0

    def __enter__(self) -> Self:
        if self.show:
            self._bar = _bar()
            self._bar.start()
            self._task = self._bar.add_task(self.label, total=self.total, facts="")
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, step: int, rows: Sequence[dict[str, Any]], networks: int = 1) -> None:
        """Tell it of new lines of the metrics."""
        now = time.monotonic()
        if self._bar is None or (now - self._shown < _SECONDS and step < self.total):
            return
        self._shown = now
        self._bar.update(self._task, completed=step)
        if rows:
            self._bar.update(self._task, facts=self._facts(rows, networks))

    def _facts(self, rows: Sequence[dict[str, Any]], networks: int) -> str:
        parts = [f"{networks} networks"] if networks > 1 else []
        for name in ("loss", "score", "validation_loss"):
            values = [row[name] for row in rows if name in row]
            if values:
                parts.append(f"{name.replace('_', ' ')} {sum(values) / len(values):.3g}")
        naive = [self.naive] if self.naive else []
        return ", ".join([*parts, *naive])


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    # On a narrow terminal the facts are cut, never the numbers before them.
    whole = [Column(no_wrap=True, min_width=width) for width in (9, 8, 9, 7)]
    columns = (
        TextColumn("{task.description}", markup=False, table_column=whole[0]),
        BarColumn(bar_width=8, table_column=whole[1]),
        MofNCompleteColumn(table_column=whole[2]),
        TimeRemainingColumn(table_column=whole[3]),
        TextColumn("{task.fields[facts]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    console = Console(stderr=True, highlight=False)
    return Bar(*columns, console=console, transient=True, refresh_per_second=4, redirect_stdout=False)
