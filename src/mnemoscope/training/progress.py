"""How far a training is, on standard error of a terminal: loss, score, baseline, time left. Quiet in pipes."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

__all__ = ["Progress"]

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
    baseline
        The loss without memory.
    show
        Whether to show it; None: when standard error is a terminal.
    """

    def __init__(self, total: int, label: str, baseline: float, show: bool | None = None) -> None:
        self.total, self.label, self.baseline = total, label, baseline
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
        return ", ".join([*parts, f"without memory {self.baseline:.3g}"])


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
