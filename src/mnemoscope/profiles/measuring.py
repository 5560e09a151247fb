"""Measuring of one section of one network, with one set of weights."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.core.errors import Overtime, UserError
from mnemoscope.core.loading import time_limit
from mnemoscope.measures.dynamics import ROOM, Dynamics, few_threads
from mnemoscope.measures.inputs import given_sequences
from mnemoscope.measures.pace import Pace, pace_of
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.storage import weights_digest
from mnemoscope.profiles.checks import brief, check_network
from mnemoscope.profiles.results import SeedResult, seed_result, without_result
from mnemoscope.profiles.row import NetworkFacts
from mnemoscope.profiles.section import Context, ProfileSection, unheard
from mnemoscope.profiles.settings import Settings
from mnemoscope.profiles.subject import facts_of, fingerprint

__all__ = ["Bench", "Piece", "Subject"]


@dataclass(frozen=True)
class Piece:
    """One section at one seed of one network, and about how many seconds it takes; none when it is known already."""

    subject: int
    section: ProfileSection
    seed: int
    seconds: float


@dataclass
class Subject:
    """A network with what is known of it before it is measured."""

    spec: NetworkSpec
    network: Any
    facts: NetworkFacts
    notices: tuple[str, ...]
    fingerprint: str
    digests: dict[int, str]
    results: dict[str, dict[int, SeedResult]] = field(default_factory=dict)
    pace: tuple[Pace | None] | None = None


class Bench:
    """Networks, built and checked, and ready to be measured section by section.

    Parameters
    ----------
    settings
        How much work to do.
    folder
        Where sections that take long keep what they have so far; None: nowhere.
    """

    def __init__(self, settings: Settings, folder: Path | None = None) -> None:
        self.settings, self.folder = settings, folder
        self.subjects: list[Subject] = []
        self._shared: dict[str, dict[int, SeedResult]] = {}
        self._last: tuple[int, int, Any] | None = None
        self._wide: tuple[Subject, int, int, Any] | None = None
        self._dynamics: Dynamics | None = None
        self.say: Callable[[str], None] = unheard

    def add(self, specs: Iterable[NetworkSpec]) -> None:
        """Build and check networks, or raise about one of which nothing could be measured."""
        self.subjects += [self._prepared(spec) for spec in specs]

    def rebuild(self, known: Subject) -> None:
        """Take a network that another process checked."""
        self.subjects.append(dataclasses.replace(known, network=_build(known.spec, self.seeds(known)[0])))

    def _prepared(self, spec: NetworkSpec) -> Subject:
        seed = self.settings.seeds_of(spec.trained)[0]
        spec = spec.resolved()
        network = _build(spec, seed)
        notices = check_network(network, spec.label)
        if _grown(network) is not None:
            room = f"its memory grows: measures give it room for {ROOM} steps, more where they need it"
            notices += (f"{room}; --set capacity=N gives it another",)
        given = self._given(network)
        notices += (f"measures are driven by {given}",) if given else ()
        mark = fingerprint(spec, network, self.settings.quick, self.settings.inputs)
        return Subject(spec, network, facts_of(spec, network), notices, mark, {seed: weights_digest(network)})

    def _given(self, network: Any) -> str:
        """Say what the user's sequences are, or raise where the network does not take them."""
        if self.settings.inputs is None:
            return ""
        found = given_sequences(self.settings.inputs, int(network.input_size))
        source = f" of {self.settings.inputs_file}" if self.settings.inputs_file else " that were given"
        return f"the {found.shape[1]} sequences of {found.shape[0]} steps{source}"

    @property
    def _width(self) -> int | None:
        """Numbers a step of the user's sequences."""
        shape = np.shape(self.settings.inputs)
        return None if self.settings.inputs is None else shape[-1] if len(shape) > 1 else 1

    def seeds(self, subject: Subject) -> list[int]:
        """Return the seeds of a network."""
        return self.settings.seeds_of(subject.spec.trained)

    def seeds_of(self, subject: Subject, section: ProfileSection) -> list[int]:
        """Return the seeds at which a section is measured."""
        seeds = self.seeds(subject)
        return seeds[:1] if section.once else seeds

    def context(self, subject: Subject, seed: int) -> Context:
        """Return what a section is told of a network."""
        make = None if subject.spec.trained else partial(_build, subject.spec)
        return Context(
            seed=seed,
            quick=self.settings.quick,
            facts=subject.facts,
            rebuild=None if make is None else partial(self._rebuilt, subject, seed),
            make=make,
            train_minutes=self.settings.train_minutes,
            rivals=len(self.subjects),
            say=self.say,
            folder=None if self.folder is None else self.folder / subject.fingerprint[:16],
            prepare=self._prepare,
            grown=_grown(subject.network),
            inputs=self.settings.inputs,
        )

    def seconds(self, subject: Subject, section: ProfileSection, seed: int) -> float:
        """Return about how long a section takes, by the pace of the network."""
        context = dataclasses.replace(self.context(subject, seed), pace=self._pace(subject))
        return section.seconds(subject.network, context)

    def _threads(self, subject: Subject) -> AbstractContextManager[None]:
        """Limit threads: one where there may be several processes, and for small states.

        Sums in another order are other numbers: how many processes there are, and whether, must not show in them.
        """
        return few_threads(0 if self.settings.processes > 1 else subject.facts.state_size or 0)

    def _pace(self, subject: Subject) -> Pace | None:
        """Return what single steps of a network take; looked at once, when somebody asks for an estimate."""
        if subject.pace is None and subject.facts.kind == "recurrent":
            flow = self._prepare(subject.network)
            with self._threads(subject):
                found = pace_of(flow) if isinstance(flow, Dynamics) else None
            subject.pace = (found,)
        return None if subject.pace is None else subject.pace[0]

    def reason_against(self, subject: Subject, section: ProfileSection, seed: int) -> str | None:
        """Say why a section does not apply to a network, or None when it does."""
        return section.reason_against(subject.network, self.context(subject, seed))

    def asked(self, section: ProfileSection) -> dict[int, Context]:
        """Return the networks to which a section applies, each with the context of its first seed."""
        found = {index: self.context(each, self.seeds_of(each, section)[0]) for index, each in enumerate(self.subjects)}
        return {i: each for i, each in found.items() if section.reason_against(self.subjects[i].network, each) is None}

    def _together(self, section: ProfileSection) -> dict[int, SeedResult]:
        """Measure a section of all networks to which it applies by one call."""
        begin, asked = time.perf_counter(), self.asked(section)
        found = section.run_together([self.subjects[i].network for i in asked], list(asked.values()))
        took = (time.perf_counter() - begin) / len(asked)
        return {
            index: _unmeasured(each, took) if isinstance(each, Exception) else seed_result(section, each, took)
            for index, each in zip(asked, found, strict=True)
        }

    def measured(self, piece: Piece, seconds: float | None = None) -> SeedResult:
        """Measure a section of a network at a seed, or say why there is no result: it is given up after `seconds`."""
        if piece.section.together:
            if piece.section.name not in self._shared:
                self._shared[piece.section.name] = self._together(piece.section)
            return self._shared[piece.section.name][piece.subject]
        begin, subject = time.perf_counter(), self.subjects[piece.subject]
        context = self.context(subject, piece.seed)
        limit = nullcontext() if seconds is None else time_limit(max(seconds, 1e-3), "it")
        try:
            with nullcontext() if piece.section.threads else self._threads(subject), limit:
                found = piece.section.run(self.network(piece.subject, piece.seed), context)
            return seed_result(piece.section, found, time.perf_counter() - begin)
        except Exception as error:  # one that fails must not lose the others
            return _unmeasured(error, time.perf_counter() - begin)

    def network(self, index: int, seed: int) -> Any:
        """Return a network at a seed. The last one is kept, since sections follow each other at the same seed."""
        subject = self.subjects[index]
        if seed == self.seeds(subject)[0]:
            return subject.network
        if self._last is None or self._last[:2] != (index, seed):
            self._last = (index, seed, _build(subject.spec, seed))
            subject.digests[seed] = weights_digest(self._last[2])
        return self._last[2]

    def _rebuilt(self, subject: Subject, seed: int, width: int) -> Any:
        """Return a network at a seed with another input size; the last one is kept, as sections ask for it in turn."""
        if self._wide is None or self._wide[0] is not subject or self._wide[1:3] != (seed, width):
            self._wide = (subject, seed, width, _build(subject.spec, seed, width))
        return self._wide[3]

    def _prepare(self, network: Any) -> Any:
        """Return a network prepared for all measures: one copy in float64 for each set of weights."""
        if self._dynamics is None or self._dynamics.original is not network:
            try:
                # A section that builds the network with another width asks something else of it.
                own = self.settings.inputs if network.input_size == self._width else None
                self._dynamics = Dynamics.of(network, differentiable=False, inputs=own)
            except UserError:
                return network  # each measure says itself why it does not take it
        return self._dynamics


def _unmeasured(error: Exception, seconds: float) -> SeedResult:
    """Return what there is of a section that raised: a `UserError` means that it does not apply."""
    if isinstance(error, Overtime):
        return without_result("stopped", f"{error}, which is all that was left of the budget", seconds)
    if isinstance(error, UserError):
        return without_result("not applicable", " ".join(str(error).split()), seconds)
    return without_result("failed", brief(error), seconds)


def _grown(network: Any) -> int | None:
    """Return the numbers in a memory that grows, with the room that measures give it; None for all others."""
    open_ended = getattr(network, "grows", False) and getattr(network, "capacity", None) is None
    return int(network.state_size_at(ROOM)) if open_ended else None


def _build(spec: NetworkSpec, seed: int, input_size: int | None = None) -> Any:
    """Return a network at a seed, with another input size where one is asked for."""
    if spec.trained:
        return spec.build()
    sizes = {} if input_size is None else {"input_size": input_size}
    return spec.replace(seed=seed, **sizes).build()
