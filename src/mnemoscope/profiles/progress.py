"""Progress of a profile: what is measured now and about how long is left, a line at a time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

from mnemoscope.profiles.runner import Piece, Watch

__all__ = ["Joined", "Lines", "Progress", "about_left"]

PATIENCE = 5.0
"""Seconds of work below which nobody needs to be told."""

_APART = 1.0
"""Seconds between two lines: parts that take less have none."""


class Progress(Protocol):
    """Progress that is shown in some way."""

    def watch(self, piece: Piece | None, done: float, total: float) -> None:
        """Hear of a piece that begins (None at the end), and how many of how many estimated seconds are done."""

    def say(self, text: str) -> None:
        """Hear of something within a piece that takes minutes."""


class Lines:
    """Progress as lines on standard error, for scripts and logs: one for each part, with the time left.

    Parameters
    ----------
    label
        Returns the name of the network that a piece of work is about.
    out
        Where lines go.
    """

    def __init__(self, label: Callable[[Piece], str], out: TextIO | None = None) -> None:
        self._label, self._out = label, sys.stderr if out is None else out
        self._begin = time.perf_counter()
        self._last = -_APART

    def watch(self, piece: Piece | None, done: float, total: float) -> None:
        """Print what begins, unless it all takes seconds only or the last line is younger than a second."""
        passed = time.perf_counter() - self._begin
        if piece is None or total < PATIENCE or passed - self._last < _APART:
            return
        name = f"{self._label(piece)}: {piece.section.title}, seed {piece.seed}"
        self.say(f"{name}; {about_left(passed, done, total)}")

    def say(self, text: str) -> None:
        """Print a line."""
        self._last = time.perf_counter() - self._begin
        print(text, file=self._out, flush=True)


class Joined:
    """Watch of two runners, one after the other, as of one.

    Parameters
    ----------
    watch
        Told of both.
    later
        Estimated seconds of the second one.
    """

    def __init__(self, watch: Watch, later: float) -> None:
        self.watch, self.before, self.total, self.later = watch, 0.0, 0.0, later

    def __call__(self, piece: Piece | None, done: float, total: float) -> None:
        """Tell of a piece that begins, among all of both."""
        self.total = total
        if piece is not None or not self.later:
            self.watch(piece, self.before + done, self.before + total + self.later)

    def goes_on(self) -> None:
        """Begin with the second one."""
        self.before, self.later = self.total, 0.0


def about_left(passed: float, done: float, total: float) -> str:
    """Say about how long is left, by how long what is done took against its estimate, which counts for a tenth of all.

    Examples
    --------
    >>> about_left(20.0, 10.0, 40.0), about_left(0.0, 0.0, 300.0)
    ('about 51 s left', 'about 5 min left')
    """
    ratio = (passed + total / 10) / (done + total / 10)
    seconds = max(1.0, ratio * (total - done))
    return f"about {seconds:.0f} s left" if seconds < 100 else f"about {seconds / 60:.0f} min left"
