"""Output of a stranger's code: sent to standard error, and cut after as many lines as one can read."""

from __future__ import annotations

import contextlib
import io
import sys
from contextlib import AbstractContextManager, nullcontext

__all__ = ["aside"]

_LINES = 20
"""After these the rest is left out: a cell that prints at every step would bury everything else."""


class _FewLines(io.TextIOBase):
    """Standard error for some lines."""

    def __init__(self) -> None:
        self._left = _LINES

    def writable(self) -> bool:
        """Whether it takes text."""
        return True

    def write(self, text: str) -> int:
        """Pass a text on while lines are left, and say when none are."""
        if self._left > 0:
            sys.stderr.write(text)
            self._left -= text.count("\n")
            if self._left <= 0:
                sys.stderr.write("(what the given code prints after this is left out)\n")
        return len(text)

    def flush(self) -> None:
        """Pass on what waits."""
        sys.stderr.flush()


def aside() -> AbstractContextManager[object]:
    """Keep standard output free of what is printed inside; where that is done already, the same lines are left."""
    return nullcontext() if isinstance(sys.stdout, _FewLines) else contextlib.redirect_stdout(_FewLines())
