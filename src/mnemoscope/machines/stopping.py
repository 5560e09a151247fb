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

__all__ = ["GRACE", "SIGNALS", "Stopped", "deadline", "stop_asked", "stops_on_signals"]

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name))
"""What schedulers send before they kill: Slurm's time limit, preemption, the shutdown of a machine."""

GRACE = 45.0
"""Seconds after which work that does not look at `deadline` is broken off. Most schedulers kill after 30 or 60."""


class _Asked:
    """When a stop was asked for, of `time.monotonic`: infinite when it was not. There is one for the process."""

    moment = math.inf


class Stopped(KeyboardInterrupt):
    """Work was broken off: it was asked to stop, and went on for too long. As Ctrl-C it leaves an interrupted run."""


def stop_asked() -> bool:
    """Say whether this process was asked to stop."""
    return not math.isinf(_Asked.moment)


def deadline(until: float = math.inf) -> float:
    """Return when to stop, of `time.monotonic`: the time given, or at once when a signal has asked for it."""
    return min(until, _Asked.moment)


@contextlib.contextmanager
def stops_on_signals(grace: float = GRACE) -> Iterator[None]:
    """Let signals ask for a stop instead of ending the process.

    Trainings look at `deadline` between two steps, keep a checkpoint, and end. What does not look, an exact computation
    say, is broken off after `grace` seconds, or at a second signal.

    Outside of the main thread, where Python handles no signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    timer = threading.Timer(grace, os.kill, (os.getpid(), SIGNALS[0]))
    timer.daemon = True

    def ask(number: int, frame: FrameType | None) -> None:
        if stop_asked():
            raise Stopped("it was asked to stop")
        _Asked.moment = time.monotonic()
        timer.start()

    before = {number: signal.signal(number, ask) for number in SIGNALS}
    try:
        yield
    finally:
        timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
        _Asked.moment = math.inf
