"""Crew of processes that measure side by side, each with one thread.

What they find is bit for bit what one process finds: states of up to 512 numbers are measured on one thread anyway, and
a piece of work depends on nothing but its network and seed.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from types import TracebackType
from typing import Self

from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles.measuring import Bench, Piece, Subject
from mnemoscope.profiles.results import SeedResult
from mnemoscope.profiles.section import ProfileSection
from mnemoscope.profiles.settings import Settings

__all__ = ["Crew", "cores", "worth_it"]

_ONE_THREAD = 512
"""Numbers in a state up to which one thread is used; beyond, a single process uses all cores itself."""

_WORTH = 12.0
"""Seconds of work from which on starting processes, which import torch, is made up for."""

_BUSY = 1.5
"""Load of the machine from which on a second process would gain nothing."""

_BENCHES: dict[str, Bench] = {}
"""Of this process, by the fingerprint of a network."""


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def worth_it(subjects: Sequence[Subject], sections: Sequence[ProfileSection], settings: Settings, left: float) -> bool:
    """Whether several processes would be done earlier than one, as the probe of the networks' steps says."""
    if min(settings.processes, cores()) < 2 or left < _WORTH:
        return False
    if any((each.facts.state_size or _ONE_THREAD + 1) > _ONE_THREAD for each in subjects):
        return False
    paces = [each.pace[0] for each in subjects if each.pace is not None and each.pace[0] is not None]
    if not paces or max(each.load for each in paces if each is not None) > _BUSY:
        return False
    try:
        pickle.dumps(([each.spec for each in subjects], list(sections)))
    except Exception:  # what a stranger's module is made of, no file can hold
        return False
    return True


class Crew:
    """Processes that wait for work."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.size = min(settings.processes, cores())
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
        key = subject.fingerprint
        return self._pool.submit(_measure, key, subject.spec, self.settings, piece.section, piece.seed, seconds)


def _measure(
    key: str, spec: NetworkSpec, settings: Settings, section: ProfileSection, seed: int, seconds: float | None
) -> tuple[SeedResult, str]:
    """Measure in a process of the crew: the result, and the digest of the weights."""
    if key not in _BENCHES:
        _BENCHES[key] = Bench(settings)
        _BENCHES[key].add([spec])
    bench = _BENCHES[key]
    result = bench.measured(Piece(0, section, seed, 0.0), seconds)
    bench.network(0, seed)
    return result, bench.subjects[0].digests[seed]
