"""Stop that a scheduler asks for by a signal: what can be kept is kept, then the process ends, in time."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

__all__ = [
    "GRACE",
    "SIGNALS",
    "Stopped",
    "ask_to_stop",
    "deadline",
    "limited",
    "stop_asked",
    "stops_on_signals",
    "stops_when_asked",
]

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name))
"""What schedulers send before they kill: Slurm's time limit, preemption, the shutdown of a machine."""

GRACE = 45.0
"""Seconds after which work that does not look at `deadline` is broken off. Most schedulers kill after 30 or 60."""

_ECHO = 5.0
"""Seconds within which another signal is the same wish: a scheduler tells all processes of a job, these each other."""


class _Asked:
    """When this process is to stop, of `time.monotonic`: when that was asked for, or when its time is up."""

    moment = math.inf
    limit = math.inf


class Stopped(KeyboardInterrupt):
    """Work was broken off: it was asked to stop, and went on for too long. As Ctrl-C it leaves an interrupted run."""


def stop_asked() -> bool:
    """Say whether this process was asked to stop."""
    return not math.isinf(_Asked.moment)


def deadline(until: float = math.inf) -> float:
    """Return when to stop, of `time.monotonic`: the time given, that of `limited`, or at once when it was asked for."""
    return min(until, _Asked.moment, _Asked.limit)


def ask_to_stop() -> None:
    """Ask this process to stop, as a signal does."""
    _Asked.moment = time.monotonic()


@contextlib.contextmanager
def stops_when_asked() -> Iterator[None]:
    """Forget at the end that a stop was asked for: what comes afterwards was not meant."""
    try:
        yield
    finally:
        _Asked.moment = math.inf


@contextlib.contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Give whatever looks at `deadline` so many seconds from now on; None: as many as it likes."""
    _Asked.limit = math.inf if seconds is None else time.monotonic() + seconds
    try:
        yield
    finally:
        _Asked.limit = math.inf


@contextlib.contextmanager
def stops_on_signals(grace: float = GRACE) -> Iterator[None]:
    """Let signals ask for a stop instead of ending the process.

    Trainings look at `deadline` between two steps, keep a checkpoint, and end. What does not look, an exact computation
    say, is broken off after `grace` seconds, or at a signal some seconds after the first.

    Outside of the main thread, where Python handles no signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    over = threading.Event()

    def break_off() -> None:
        over.set()
        os.kill(os.getpid(), SIGNALS[0])

    timer = threading.Timer(grace, break_off)
    timer.daemon = True

    def ask(number: int, frame: FrameType | None) -> None:
        if over.is_set() or time.monotonic() - _Asked.moment > _ECHO:
            raise Stopped("it was asked to stop")
        if not stop_asked():
            ask_to_stop()
            timer.start()

    before = {number: signal.signal(number, ask) for number in SIGNALS}
    try:
        yield
    finally:
        timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
        _Asked.moment = math.inf
