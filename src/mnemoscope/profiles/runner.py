"""Runs parts on networks within a budget of time: every part once first, then further seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mnemoscope.core.environment import environment_facts
from mnemoscope.core.errors import UserError
from mnemoscope.measures.dynamics import few_threads
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.storage import weights_digest
from mnemoscope.profiles.checks import brief, check_network
from mnemoscope.profiles.results import Store, merge, unit_of
from mnemoscope.profiles.rows import SCHEMA, Row
from mnemoscope.profiles.section import Context, Part, parts
from mnemoscope.profiles.settings import Settings
from mnemoscope.profiles.subject import facts_of, fingerprint, network_words, spell

__all__ = ["Piece", "Runner", "Watch"]

Unit = dict[str, Any]


@dataclass(frozen=True)
class Piece:
    """One part at one seed of one network, and about how many seconds it takes; none when it is known already."""

    subject: int
    part: Part
    seed: int
    seconds: float


Watch = Callable[[Piece | None, float, float], None]
"""Told before each piece (None at the end) how many of how many estimated seconds are done."""


@dataclass
class _Subject:
    """A network with what is known of it before it is measured."""

    spec: NetworkSpec
    network: Any
    facts: dict[str, Any]
    notices: tuple[str, ...]
    fingerprint: str
    digests: dict[int, str]
    units: dict[str, dict[int, Unit]] = field(default_factory=dict)


class Runner:
    """Measures networks. It can be stopped by the budget or by Ctrl-C, and always leaves rows of what is there.

    Parameters
    ----------
    specs
        The networks.
    settings
        How much work to do.
    store
        Where results are kept, and taken up from.

    Attributes
    ----------
    interrupted
        Whether somebody stopped it.
    stopped
        Whether the budget was used up before the end.
    """

    def __init__(self, specs: Sequence[NetworkSpec], settings: Settings, store: Store | None = None) -> None:
        self.settings = settings
        self.store = store or Store()
        self.interrupted = False
        self.stopped = False
        self._parts = parts()
        self._subjects = [self._prepared(spec) for spec in specs]
        self._took: dict[tuple[int, str], float] = {}
        self._last: tuple[int, int, Any] | None = None

    def plan(self) -> list[Piece]:
        """Return the work in its order, with an estimate of its time: first every part once, then further seeds."""
        most = max(len(self._seeds(each)) for each in self._subjects)
        return [
            Piece(index, part, seed, self._estimate(index, part, seed))
            for turn in range(most)
            for index, subject in enumerate(self._subjects)
            for part in self._parts
            for seed in self._seeds_of(subject, part)[turn : turn + 1]
            if self._reason_against(subject, part, seed) is None
        ]

    def run(self, watch: Watch | None = None) -> list[Row]:
        """Do the work, and return one row per network, in their order."""
        pieces = self.plan()
        begin, done, total = time.perf_counter(), 0.0, sum(piece.seconds for piece in pieces)
        try:
            for piece in pieces:
                if watch is not None:
                    watch(piece, done, total)
                if not self._try(piece, time.perf_counter() - begin):
                    continue
                done += piece.seconds
        except KeyboardInterrupt:
            self.interrupted = True
        self.store.save()
        if watch is not None:
            watch(None, total, total)
        return self.rows()

    def rows(self) -> list[Row]:
        """Return one row per network of what is there."""
        return [self._row(subject) for subject in self._subjects]

    def label(self, piece: Piece) -> str:
        """Return the name of the network that a piece of work is about."""
        return self._subjects[piece.subject].spec.label

    @property
    def notices(self) -> list[str]:
        """What a reader should know of the networks before all numbers."""
        return [said for subject in self._subjects for said in subject.notices]

    def _prepared(self, spec: NetworkSpec) -> _Subject:
        seed = self.settings.seeds_of(spec.trained)[0]
        spec = spec.resolved()
        network = _build(spec, seed)
        notices = check_network(network, spec.label)
        mark = fingerprint(spec, network, self.settings.quick)
        return _Subject(spec, network, facts_of(spec, network), notices, mark, {seed: weights_digest(network)})

    def _seeds(self, subject: _Subject) -> list[int]:
        return self.settings.seeds_of(subject.spec.trained)

    def _seeds_of(self, subject: _Subject, part: Part) -> list[int]:
        seeds = self._seeds(subject)
        return seeds[:1] if part.once else seeds

    def _context(self, subject: _Subject, seed: int) -> Context:
        trained = subject.spec.trained
        make = None if trained else partial(_build, subject.spec)
        return Context(
            seed=seed,
            quick=self.settings.quick,
            trained=trained,
            facts=subject.facts,
            rebuild=None if make is None else partial(make, seed),
            make=make,
            train_minutes=self.settings.train_minutes,
            folder=None if self.store.folder is None else self.store.folder / subject.fingerprint[:16],
        )

    def _reason_against(self, subject: _Subject, part: Part, seed: int) -> str | None:
        return part.reason_against(subject.network, self._context(subject, seed))

    def _estimate(self, index: int, part: Part, seed: int) -> float:
        subject = self._subjects[index]
        if self._known(subject, part, seed) is not None:
            return 0.0
        took = self._took.get((index, part.name))
        return part.seconds(subject.network, self._context(subject, seed)) if took is None else took

    def _known(self, subject: _Subject, part: Part, seed: int) -> Unit | None:
        return self.store.get(subject.fingerprint, part.kept_as(self._context(subject, seed)), seed)

    def _try(self, piece: Piece, elapsed: float) -> bool:
        """Do one piece, or say why it is not done."""
        subject = self._subjects[piece.subject]
        known = self._known(subject, piece.part, piece.seed)
        if known is not None:
            self._network(piece.subject, piece.seed)
            subject.units.setdefault(piece.part.name, {})[piece.seed] = known
            return True
        budget, needed = self.settings.budget, self._estimate(piece.subject, piece.part, piece.seed)
        if budget is not None and elapsed + needed > budget:
            reason = f"it needs about {needed:.1f} s, and the budget of {budget:g} s is used up"
            subject.units.setdefault(piece.part.name, {})[piece.seed] = _unit("stopped", reason, 0.0)
            self.stopped = True
            return False
        unit = self._measured(piece, subject)
        self._took[piece.subject, piece.part.name] = unit["seconds"]
        subject.units.setdefault(piece.part.name, {})[piece.seed] = unit
        if unit["status"] != "failed":  # what failed is tried again the next time
            kept_as = piece.part.kept_as(self._context(subject, piece.seed))
            self.store.put(subject.fingerprint, kept_as, piece.seed, unit)
        return True

    def _measured(self, piece: Piece, subject: _Subject) -> Unit:
        begin = time.perf_counter()
        context = self._context(subject, piece.seed)
        # The same number of threads, whatever the machine has: sums in another order are other numbers.
        size = subject.facts["state_size"] or 0
        try:
            with nullcontext() if piece.part.threads else few_threads(size):
                found = piece.part.run(self._network(piece.subject, piece.seed), context)
        except UserError as error:
            return _unit("not applicable", " ".join(str(error).split()), time.perf_counter() - begin)
        except Exception as error:  # one that fails must not lose the others
            return _unit("failed", brief(error), time.perf_counter() - begin)
        return unit_of(found, time.perf_counter() - begin)

    def _network(self, index: int, seed: int) -> Any:
        """Return a network at a seed. The last one is kept, since parts follow each other at the same seed."""
        subject = self._subjects[index]
        if seed == self._seeds(subject)[0]:
            return subject.network
        if self._last is None or self._last[:2] != (index, seed):
            self._last = (index, seed, _build(subject.spec, seed))
            subject.digests[seed] = weights_digest(self._last[2])
        return self._last[2]

    def _row(self, subject: _Subject) -> Row:
        found = {part.name: self._part_row(subject, part) for part in self._parts}
        return {
            "schema": SCHEMA,
            "label": subject.spec.label,
            "network": subject.facts,
            "settings": {**self.settings.to_dict(subject.spec.trained), "digests": list(subject.digests.values())},
            "environment": environment_facts(),
            "notices": list(subject.notices),
            "command": network_words(subject.spec),
            "parts": found,
        }

    def _part_row(self, subject: _Subject, part: Part) -> dict[str, Any]:
        seeds = self._seeds_of(subject, part)
        against = self._reason_against(subject, part, seeds[0])
        if against is not None:
            unit = _unit("not applicable", against, 0.0)
            return {**merge(part, {seeds[0]: unit}, 1), "command": "", "commands": {}}
        calls = part.calls(self._context(subject, seeds[0]))
        commands: dict[str, str] = {}
        for call in calls:
            before = f"{commands[call.measure]}\n" if call.measure in commands else ""
            commands[call.measure] = before + spell(subject.spec, call, seeds[0])
        units = subject.units.get(part.name, {})
        if not units and self.interrupted:
            units = {seeds[0]: _unit("stopped", "it was interrupted before", 0.0)}
        return {**merge(part, units, len(seeds)), "command": next(iter(commands.values()), ""), "commands": commands}


def _build(spec: NetworkSpec, seed: int, input_size: int | None = None) -> Any:
    """Return a network at a seed, with another input size where one is asked for."""
    if spec.trained:
        return spec.build()
    sizes = {} if input_size is None else {"input_size": input_size}
    return spec.replace(seed=seed, **sizes).build()


def _unit(status: str, reason: str, seconds: float) -> Unit:
    return {"status": status, "reason": reason, "seconds": seconds, "scalars": {}, "data": {}, "notes": []}
