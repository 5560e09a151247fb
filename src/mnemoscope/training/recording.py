"""Driving a training: lines into the record, checkpoints when they are due, the state of one that failed kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from mnemoscope.runs import Run as Record
from mnemoscope.runs.record import Metrics
from mnemoscope.training.loop import Loop
from mnemoscope.training.moments import Snapshot
from mnemoscope.training.progress import Progress

__all__ = ["drive", "restore"]


def restore(loop: Loop, record: Record | None) -> None:
    """Go on from the latest checkpoint of the record, if there is one."""
    found = None if record is None else record.latest()
    if found is not None:
        loop.restore(Snapshot(found.step, found.tensors, found.state))


def drive(
    loop: Loop,
    record: Record | None,
    progress: Progress,
    tell: Callable[[int, list[dict[str, Any]]], None] | None = None,
    *,
    rewind: bool = False,
) -> Metrics:
    """Run a training to its end, and return the lines of the metrics that it wrote now.

    Parameters
    ----------
    tell
        Called with the step and the new lines, when there are any.
    rewind
        Whether the last checkpoint of a network that failed is the good one before, and not how it ended.
    """
    lines = Metrics()
    keeper = _Keeper(record, loop.options.checkpoint_seconds, loop.options.checkpoint_every)
    for rows in loop.run():
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


class _Keeper:
    """Decides when a checkpoint is due: the first and the last, every so many steps, and every so many seconds."""

    def __init__(self, record: Record | None, seconds: float, every: int | None) -> None:
        self.record, self.seconds, self.every = record, seconds, every
        self._saved, self._step = time.monotonic(), -1

    def consider(self, snapshot: Snapshot, *, last: bool) -> None:
        """Save a good state when one is due."""
        due = self.every is not None and snapshot.step % self.every == 0
        if due or last or snapshot.step == 0 or time.monotonic() - self._saved > self.seconds:
            self.save(snapshot, again=last)

    def save(self, snapshot: Snapshot, *, again: bool = False) -> None:
        """Save a good state, unless that of its step is saved."""
        if self.record is None or (snapshot.step <= self._step and not again):
            return
        self.record.checkpoint(snapshot.step, snapshot.tensors, snapshot.state)
        self._saved, self._step = time.monotonic(), snapshot.step
