"""Checks: functions of a network's factory that fail with one sentence."""

from __future__ import annotations

import functools
import io
import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Protocol

import torch

from mnemoscope.core.errors import UserError
from mnemoscope.testing.report import CheckFailed, Skipped
from mnemoscope.testing.subject import Factory, Subject

__all__ = ["Check", "brief", "check", "unreported"]

SEED = 20
_HERE = Path(__file__).parent
_FOREIGN = ("site-packages", "dist-packages", "<")


class Check(Protocol):
    """A check: raises `CheckFailed` or `Skipped`, or returns nothing. Its docstring says what it asks."""

    __name__: str
    __doc__: str | None

    def __call__(self, factory: Factory | Subject, /) -> None:
        """Check what `factory` builds."""


def check(advice: str, made: Callable[[Factory], Subject] = Subject) -> Callable[[Callable[[Any], None]], Check]:
    """Make a check of a function of a `Subject`.

    The check can be called with a factory. It runs under its own seed, leaves torch's generator as it was, and turns
    every error that the network raises into one sentence.

    Parameters
    ----------
    advice
        What the network's author must change when the network raises an error where it should not.
    made
        Makes the subject of a factory.
    """

    def make(function: Callable[[Any], None]) -> Check:
        @functools.wraps(function)
        def run(factory: Factory | Subject, /) -> None:
            subject = factory if isinstance(factory, Subject) else made(factory)
            failed = f"{subject.name} fails {function.__name__}: "
            with torch.random.fork_rng(devices=[]), torch.enable_grad():
                torch.manual_seed(SEED)
                try:
                    function(subject)
                except Skipped:
                    raise
                except CheckFailed as failure:
                    raise CheckFailed(failed + str(failure)) from failure.__cause__
                except (Exception, SystemExit) as error:  # code that ends the program fails like any other
                    raised = "" if isinstance(error, UserError) else "it raised "
                    raise CheckFailed(f"{failed}{advice}; {raised}{brief(error)}") from error

        return run

    return make


@contextmanager
def unreported() -> Iterator[None]:
    """Keep to itself what torch prints and logs of a graph that it cannot make: its error says it, in one line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def brief(error: BaseException) -> str:
    """Return an error in one line: its type, its message, and where in the author's own code it arose."""
    message = " ".join(str(error).split())
    if isinstance(error, UserError):  # a sentence of ours, which says where
        return message
    message = message if len(message) <= 200 else message[:197] + "..."
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_authors(frame.filename)]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {message}{place}"


def _is_authors(filename: str) -> bool:
    return Path(filename).parent != _HERE and not any(part in filename for part in _FOREIGN)
