"""Runner of a profile's sections on networks within a budget of time: every section once first, then further seeds."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from mnemoscope.core.environment import environment_facts
from mnemoscope.core.errors import Overtime, UserError, expected, positive_int
from mnemoscope.core.loading import time_limit
from mnemoscope.measures.dynamics import ROOM, Dynamics, few_threads
from mnemoscope.measures.inputs import given_sequences
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.storage import weights_digest
from mnemoscope.profiles.budget import ENOUGH_SEEDS, ceiling, judgements_by_section, open_share, settled
from mnemoscope.profiles.checks import brief, check_network
from mnemoscope.profiles.results import SeedResult, Store, merge, seed_result, without_result
from mnemoscope.profiles.row import NetworkFacts, Row, RowSettings, SectionRow
from mnemoscope.profiles.section import Context, ProfileSection, all_sections, unheard
from mnemoscope.profiles.subject import facts_of, fingerprint, network_words, spell

__all__ = ["Piece", "Runner", "Settings", "Subject", "Watch"]

_SEEDS = {False: 5, True: 3}
"""How many sets of weights are drawn, by `quick`: an interval from fewer than three says nothing."""


@dataclass(frozen=True)
class Settings:
    """Settings of a profile: how much work it is.

    Attributes
    ----------
    quick
        A first look.
    seed
        The first seed.
    seeds
        How many sets of weights a network without its own is measured with; None: 5, or 3 for a first look.
    budget
        Seconds that measuring may take; None: as long as it takes, or as `bounded` says.
    train_minutes
        Minutes that training may take beside; None: nothing is trained.
    bounded
        Without a budget: whether the ceiling of `mnemoscope.profiles.budget` holds, and measuring ends earlier once
        every part has three seeds or its interval changes no judgement.
    inputs, inputs_file
        Sequences of the user's that drive every measure, (time, sequences, input_size), and the file that they are
        from; None: measures draw them.
    """

    quick: bool = False
    seed: int = 0
    seeds: int | None = None
    budget: float | None = None
    train_minutes: float | None = None
    bounded: bool = False
    inputs: Any = field(default=None, compare=False, repr=False)
    inputs_file: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**62:
            raise expected("seed", "a whole number of at least 0", self.seed)
        if self.seeds is not None:
            positive_int("seeds", self.seeds)
        if self.budget is not None and not self.budget > 0:
            raise expected("the budget", "a time above zero", self.budget)
        if self.train_minutes is not None and not self.train_minutes > 0:
            raise expected("train_minutes", "a time above zero", self.train_minutes)

    def seeds_of(self, trained: bool) -> list[int]:
        """Return the seeds: one where the weights are somebody's own."""
        usual = ENOUGH_SEEDS if self.ends_early else _SEEDS[self.quick]
        count = 1 if trained else self.seeds or usual
        return list(range(self.seed, self.seed + count))

    @property
    def ends_early(self) -> bool:
        """Whether measuring ends once no judgement changes: where nobody said how many seeds or how long."""
        return self.bounded and self.budget is None and self.seeds is None


@dataclass(frozen=True)
class Piece:
    """One section at one seed of one network, and about how many seconds it takes; none when it is known already."""

    subject: int
    section: ProfileSection
    seed: int
    seconds: float


Watch = Callable[[Piece | None, float, float], None]
"""Called before each piece (None at the end) with how many of how many estimated seconds are done."""


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
    beside_blocks
        Whether they are measured as the company of a block without a state.

    Attributes
    ----------
    sections
        What is measured.
    subjects
        The networks, built and checked.
    interrupted
        Whether somebody stopped it.
    stopped
        Whether the budget was used up before the end.
    say
        Told in words, where somebody listens, of what happens within a piece that takes minutes.
    references
        Rows that the networks are judged beside, by which further seeds are chosen; None: nothing is judged yet.
    """

    def __init__(
        self,
        specs: Sequence[NetworkSpec],
        settings: Settings,
        store: Store | None = None,
        *,
        beside_blocks: bool = False,
    ) -> None:
        self.beside_blocks = beside_blocks
        self.settings = settings
        self.store = store or Store()
        self.interrupted = False
        self.stopped = False
        self.references: Sequence[Row] = ()
        self.say: Callable[[str], None] = unheard
        self.sections = tuple(all_sections())
        self.subjects: list[Subject] = []
        self._spent = 0.0
        self._took: dict[tuple[int, str], float] = {}
        self._shared: dict[str, dict[int, SeedResult]] = {}
        self._last: tuple[int, int, Any] | None = None
        self._wide: tuple[Subject, int, int, Any] | None = None
        self._dynamics: Dynamics | None = None
        self.add(specs)

    def add(self, specs: Iterable[NetworkSpec]) -> None:
        """Measure these networks too."""
        self.subjects += [self._prepared(spec) for spec in specs]
        kinds = {each.facts.kind for each in self.subjects} | ({"sequence"} if self.beside_blocks else set())
        self.sections = tuple(each.among(kinds) for each in self.sections)

    def plan(self) -> list[Piece]:
        """Return the work in its order, with an estimate of its time: first every section once, then further seeds."""
        return [piece for turn in range(self._turns) for piece in self._turn(turn)]

    def expected_seconds(self) -> float:
        """Return about how long all of it takes: what is measured within its budget, and what is trained beside."""
        trained, measured = (
            sum(piece.seconds for piece in self.plan() if piece.section.trains is kind) for kind in (True, False)
        )
        return trained + (measured if self.budget is None else min(measured, self.budget))

    @property
    def budget(self) -> float | None:
        """Seconds that measuring may take; None: as long as it takes."""
        if self.settings.budget is not None or not self.settings.bounded:
            return self.settings.budget
        return ceiling((each.facts.state_size for each in self.subjects), quick=self.settings.quick)

    @property
    def _turns(self) -> int:
        return max(len(self._seeds(each)) for each in self.subjects)

    def _turn(self, turn: int) -> list[Piece]:
        """Return all sections at the seed of a turn: every section has its first seed before any has its second.

        Training comes after all that is measured.
        """
        pieces = [
            Piece(index, section, seed, self._estimate(index, section, seed))
            for index, subject in enumerate(self.subjects)
            for section in self.sections
            for seed in self._seeds_of(subject, section)[turn : turn + 1]
            if self._reason_against(subject, section, seed) is None
        ]
        return sorted(pieces, key=lambda piece: piece.section.trains)

    def _ahead(self, turn: int) -> list[Piece]:
        """Return the work of a turn by what is known so far: where references are told apart least comes first."""
        pieces = self._turn(turn)
        if turn == 0 or not self.settings.bounded:
            return pieces
        known = [judgements_by_section(self._row(each), self.references, self.sections) for each in self.subjects]
        if self.settings.ends_early:
            for piece in pieces:
                if settled(piece.section.name, turn, known[piece.subject]):
                    reason = "another seed would change no judgement"
                    self._file(piece, without_result("settled", reason))
            pieces = [piece for piece in pieces if not settled(piece.section.name, turn, known[piece.subject])]
        return sorted(pieces, key=lambda each: -open_share(known[each.subject].get(each.section.name, ())))

    def _file(self, piece: Piece, result: SeedResult) -> None:
        self.subjects[piece.subject].results.setdefault(piece.section.name, {})[piece.seed] = result

    def run(self, watch: Watch | None = None) -> list[Row]:
        """Do the work, and return one row per network, in their order."""
        self._check_together()
        self._spent, done, total = 0.0, 0.0, self.expected_seconds()
        planned = {(each.subject, each.section.name, each.seed): each.seconds for each in self.plan()}
        try:
            for piece in (each for turn in range(self._turns) for each in self._ahead(turn)):
                if watch is not None:
                    watch(piece, done, total)
                if not self._try(piece):
                    continue
                done = min(total, done + planned[piece.subject, piece.section.name, piece.seed])
        except KeyboardInterrupt:
            self.interrupted = True
        self.store.save()
        if watch is not None:
            watch(None, total, total)
        return self.rows()

    def rows(self) -> list[Row]:
        """Return one row per network of what is there."""
        return [self._row(subject) for subject in self.subjects]

    def label(self, piece: Piece) -> str:
        """Return the name of the network that a piece of work is about."""
        return self.subjects[piece.subject].spec.label

    def _prepared(self, spec: NetworkSpec) -> Subject:
        seed = self.settings.seeds_of(spec.trained)[0]
        spec = spec.resolved()
        network = _build(spec, seed)
        notices = check_network(network, spec.label)
        if _grown(network) is not None:
            notices += (f"its memory grows: measures give it room for {ROOM} steps; --set capacity=N gives it another",)
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

    def _seeds(self, subject: Subject) -> list[int]:
        return self.settings.seeds_of(subject.spec.trained)

    def _seeds_of(self, subject: Subject, section: ProfileSection) -> list[int]:
        seeds = self._seeds(subject)
        return seeds[:1] if section.once else seeds

    def _context(self, subject: Subject, seed: int) -> Context:
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
            folder=None if self.store.folder is None else self.store.folder / subject.fingerprint[:16],
            prepare=self._prepare,
            grown=_grown(subject.network),
            inputs=self.settings.inputs,
        )

    def _reason_against(self, subject: Subject, section: ProfileSection, seed: int) -> str | None:
        return section.reason_against(subject.network, self._context(subject, seed))

    def _estimate(self, index: int, section: ProfileSection, seed: int) -> float:
        subject = self.subjects[index]
        if self._known(subject, section, seed) is not None:
            return 0.0
        took = self._took.get((index, section.name))
        return section.seconds(subject.network, self._context(subject, seed)) if took is None else took

    def _known(self, subject: Subject, section: ProfileSection, seed: int) -> SeedResult | None:
        return self.store.get(subject.fingerprint, section.kept_as(self._context(subject, seed)), seed)

    def _try(self, piece: Piece) -> bool:
        """Do one piece, or say why it is not done."""
        subject = self.subjects[piece.subject]
        known = self._known(subject, piece.section, piece.seed)
        if known is not None:
            self._network(piece.subject, piece.seed)
            self._file(piece, known)
            return True
        budget, needed = self.budget, self._estimate(piece.subject, piece.section, piece.seed)
        if budget is not None and not piece.section.trains and self._spent + needed > budget:
            reason = f"it needs about {needed:.1f} s, and the budget of {budget:g} s is used up"
            self._file(piece, without_result("stopped", reason))
            self.stopped = True
            return False
        result = self._measured(piece, subject)
        self._took[piece.subject, piece.section.name] = result["seconds"]
        self._spent += 0.0 if piece.section.trains else result["seconds"]
        self._file(piece, result)
        self.stopped |= result["status"] == "stopped"
        if result["status"] not in ("failed", "stopped"):  # which is tried again the next time
            kept_as = piece.section.kept_as(self._context(subject, piece.seed))
            self.store.put(subject.fingerprint, kept_as, piece.seed, result)
        return True

    def _asked(self, section: ProfileSection) -> dict[int, Context]:
        """Return the networks to which a section applies, each with the context of its first seed."""
        found = {
            index: self._context(each, self._seeds_of(each, section)[0]) for index, each in enumerate(self.subjects)
        }
        return {i: each for i, each in found.items() if section.reason_against(self.subjects[i].network, each) is None}

    def _check_together(self) -> None:
        """Raise, before anything is measured, where the time that networks share cannot suffice."""
        for section in (each for each in self.sections if each.together):
            asked = self._asked(section)
            if any(self._known(self.subjects[i], section, each.seed) is None for i, each in asked.items()):
                section.check_together([self.subjects[i].network for i in asked], list(asked.values()))

    def _together(self, section: ProfileSection) -> dict[int, SeedResult]:
        """Measure a section of all networks to which it applies by one call."""
        begin, asked = time.perf_counter(), self._asked(section)
        found = section.run_together([self.subjects[i].network for i in asked], list(asked.values()))
        took = (time.perf_counter() - begin) / len(asked)
        return {
            index: _unmeasured(each, took) if isinstance(each, Exception) else seed_result(section, each, took)
            for index, each in zip(asked, found, strict=True)
        }

    def _measured(self, piece: Piece, subject: Subject) -> SeedResult:
        if piece.section.together:
            if piece.section.name not in self._shared:
                self._shared[piece.section.name] = self._together(piece.section)
            return self._shared[piece.section.name][piece.subject]
        begin = time.perf_counter()
        context = self._context(subject, piece.seed)
        # The same number of threads, whatever the machine has: sums in another order are other numbers.
        size = subject.facts.state_size or 0
        try:
            with self._bounded(piece), nullcontext() if piece.section.threads else few_threads(size):
                found = piece.section.run(self._network(piece.subject, piece.seed), context)
            return seed_result(piece.section, found, time.perf_counter() - begin)
        except Exception as error:  # one that fails must not lose the others
            return _unmeasured(error, time.perf_counter() - begin)

    def _bounded(self, piece: Piece) -> AbstractContextManager[None]:
        """End a piece that takes far longer than was estimated: all together never take half as long again."""
        if self.budget is None or piece.section.trains:
            return nullcontext()
        return time_limit(max(self.budget - self._spent, 0.0) + self.budget / 2, "it")

    def _network(self, index: int, seed: int) -> Any:
        """Return a network at a seed. The last one is kept, since sections follow each other at the same seed."""
        subject = self.subjects[index]
        if seed == self._seeds(subject)[0]:
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

    def _row(self, subject: Subject) -> Row:
        settings = self.settings
        return Row(
            label=subject.spec.label,
            network=subject.facts,
            settings=RowSettings(
                quick=settings.quick,
                seeds=tuple(self._seeds(subject)),
                budget=self.budget,
                train_minutes=settings.train_minutes,
                digests=tuple(subject.digests.values()),
            ),
            environment=environment_facts(),
            notices=subject.notices,
            command=network_words(subject.spec),
            sections={
                section.name: self._section_row(subject, section)
                for section in self.sections
                if section.concerns(subject.facts)
            },
        )

    def _section_row(self, subject: Subject, section: ProfileSection) -> SectionRow:
        seeds = self._seeds_of(subject, section)
        against = self._reason_against(subject, section, seeds[0])
        if against is not None:
            return SectionRow(status="not applicable", reason=against)
        commands: dict[str, str] = {}
        for call in section.calls(self._context(subject, seeds[0])):
            before = f"{commands[call.measure]}\n" if call.measure in commands else ""
            commands[call.measure] = before + spell(subject.spec, call, seeds[0], self.settings.inputs_file)
        results = subject.results.get(section.name, {})
        if not results and self.interrupted:
            results = {seeds[0]: without_result("stopped", "it was interrupted before")}
        found = merge(section, results, len(seeds))
        return dataclasses.replace(found, command=next(iter(commands.values()), ""), commands=commands)


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
