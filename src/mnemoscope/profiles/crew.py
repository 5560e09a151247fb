"""Crew of processes that measure side by side, each with one thread.

What they find is bit for bit what one process finds: where there may be several, every piece is measured on one thread,
and it depends on nothing but its network and seed.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from types import TracebackType
from typing import Self

from mnemoscope.core import memory
from mnemoscope.profiles.measuring import Bench, Piece, Subject
from mnemoscope.profiles.results import SeedResult
from mnemoscope.profiles.section import ProfileSection
from mnemoscope.profiles.settings import Settings

__all__ = ["Crew", "cores", "size", "worth_it"]

_WORTH = 12.0
"""Seconds of work from which on starting processes, which import torch, is made up for."""

_BUSY = 1.5
"""Load of the machine from which on a second process would gain nothing."""

_EMPTY, _COPIES, _STEPS = 600 * 2**20, 6, 2048
"""Bytes of a process that imported torch; copies of the weights in double precision, and states along trajectories."""

_BENCHES: dict[str, Bench] = {}
"""Of this process, by the fingerprint of a network."""


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def size(settings: Settings) -> int:
    """Return how many processes there may be."""
    return min(settings.processes, cores())


def worth_it(subjects: Sequence[Subject], sections: Sequence[ProfileSection], settings: Settings, left: float) -> bool:
    """Whether several processes would be done earlier than one, as the probe of the networks' steps says."""
    if size(settings) < 2 or left < _WORTH:
        return False
    if size(settings) * max(map(_memory, subjects)) > memory.allowance():
        return False
    paces = [each.pace[0] for each in subjects if each.pace is not None and each.pace[0] is not None]
    if not paces or max(each.load for each in paces if each is not None) > _BUSY:
        return False
    try:
        pickle.dumps(([each.spec for each in subjects], list(sections)))
    except Exception:  # what a stranger's module is made of, no file can hold
        return False
    return True


def _memory(subject: Subject) -> int:
    """Return about how many bytes a process needs that measures a network."""
    return _EMPTY + _COPIES * 8 * (subject.facts.parameters + _STEPS * (subject.facts.state_size or 0))


class Crew:
    """Processes that wait for work."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.size = size(settings)
        self._pool = ProcessPoolExecutor(self.size, mp_context=get_context("spawn"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:  # nobody waits for what was begun
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
        self._pool.shutdown(wait=error is None, cancel_futures=True)

    def begin(self, piece: Piece, subject: Subject, seconds: float | None) -> Future[tuple[SeedResult, str]]:
        """Hand a piece of work to the next process that is free."""
        known = dataclasses.replace(subject, network=None, results={})
        return self._pool.submit(_measure, known, self.settings, piece.section, piece.seed, seconds)


def _measure(
    known: Subject, settings: Settings, section: ProfileSection, seed: int, seconds: float | None
) -> tuple[SeedResult, str]:
    """Measure in a process of the crew: the result, and the digest of the weights."""
    if known.fingerprint not in _BENCHES:
        _BENCHES[known.fingerprint] = Bench(settings)
        _BENCHES[known.fingerprint].rebuild(known)
    bench = _BENCHES[known.fingerprint]
    result = bench.measured(Piece(0, section, seed, 0.0), seconds)
    bench.network(0, seed)
    return result, bench.subjects[0].digests[seed]
