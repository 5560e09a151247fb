"""Runner of a profile's sections on networks within a budget of time: every section once first, then further seeds."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext

from mnemoscope.core.environment import environment_facts
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles.budget import OVER, ceiling, judgements_by_section, open_share, settled
from mnemoscope.profiles.crew import Crew, size, worth_it
from mnemoscope.profiles.measuring import Bench, Piece, Subject
from mnemoscope.profiles.plan import Entry, Plan
from mnemoscope.profiles.results import SeedResult, Store, merge, without_result
from mnemoscope.profiles.row import Row, RowSettings, SectionRow
from mnemoscope.profiles.section import ProfileSection, all_sections
from mnemoscope.profiles.settings import Settings
from mnemoscope.profiles.subject import network_words, spell

__all__ = ["Piece", "Runner", "Settings", "Subject", "Watch"]

Watch = Callable[[Piece | None, float, float], None]
"""Called before each piece (None at the end) with how many of how many estimated seconds are done."""


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
    plan
        What an earlier run did, to be done again without looking at the clock; None: as the budget allows.

    Attributes
    ----------
    sections
        What is measured.
    bench
        The networks, built and checked, and what measures them.
    interrupted
        Whether somebody stopped it.
    stopped
        Whether the budget was used up before the end.
    references
        Rows that the networks are judged beside, by which further seeds are chosen; None: nothing is judged yet.
    reserved
        Seconds of the budget that are kept for something else: references that are measured as well.
    """

    def __init__(
        self,
        specs: Sequence[NetworkSpec],
        settings: Settings,
        store: Store | None = None,
        *,
        beside_blocks: bool = False,
        plan: Plan | None = None,
    ) -> None:
        self.beside_blocks = beside_blocks
        self.settings = settings
        self.store = store or Store()
        self.interrupted = False
        self.stopped = False
        self.references: Sequence[Row] = ()
        self.reserved = 0.0
        self.sections = tuple(all_sections())
        self.bench = Bench(settings, self.store.folder)
        self._given = plan
        self._begin = time.perf_counter()
        self._apart = 0.0
        self._took: dict[tuple[int, str], float] = {}
        self._planned: dict[tuple[int, str, int], float] = {}
        self._entries: list[Entry] = []
        self.add(specs)
        if plan is not None:
            plan.check([each.spec.label for each in self.subjects], [each.name for each in self.sections])

    @property
    def say(self) -> Callable[[str], None]:
        """Told in words, where somebody listens, of what happens within a piece that takes minutes."""
        return self.bench.say

    @say.setter
    def say(self, told: Callable[[str], None]) -> None:
        self.bench.say = told

    @property
    def subjects(self) -> list[Subject]:
        """The networks, built and checked."""
        return self.bench.subjects

    def add(self, specs: Iterable[NetworkSpec]) -> None:
        """Measure these networks too."""
        self.bench.add(specs)
        kinds = {each.facts.kind for each in self.subjects} | ({"sequence"} if self.beside_blocks else set())
        self.sections = tuple(each.among(kinds) for each in self.sections)

    def plan(self) -> list[Piece]:
        """Return the work in its order, with an estimate of its time: first every section once, then further seeds."""
        if self._given is not None:
            return list(self._repeated(self._given))
        return [piece for turn in range(self._turns) for piece in self._turn(turn)]

    def expected_seconds(self, *, bounded: bool = True) -> float:
        """Return about how long all of it takes: what is measured within its budget, and what is trained beside."""
        pieces = self.plan()
        trained, measured = (
            sum(each.seconds for each in pieces if each.section.trains is kind) for kind in (True, False)
        )
        measured /= self._abreast(pieces)
        if self.budget is None or not bounded:
            return trained + measured
        return trained + min(measured, self.budget - self.reserved)

    def one_seed(self) -> float:
        """Return about how long one seed of every section takes that is measured."""
        pieces = [each for each in self._turn(0) if not each.section.trains]
        return sum(each.seconds for each in pieces) / self._abreast(pieces)

    def done(self) -> Plan:
        """Return what was measured, and what was not and why, to be repeated."""
        return Plan(tuple(each.spec.label for each in self.subjects), tuple(self._entries))

    @property
    def budget(self) -> float | None:
        """Seconds that measuring may take; None: as long as it takes."""
        if self._given is not None:
            return None
        if self.settings.budget is not None or not self.settings.bounded:
            return self.settings.budget
        return ceiling((each.facts.state_size for each in self.subjects), quick=self.settings.quick)

    @property
    def _turns(self) -> int:
        return max(len(self.bench.seeds(each)) for each in self.subjects)

    def _turn(self, turn: int) -> list[Piece]:
        """Return all sections at the seed of a turn: every section has its first seed before any has its second.

        Training comes after all that is measured.
        """
        pieces = [
            Piece(index, section, seed, self._estimate(index, section, seed))
            for index, subject in enumerate(self.subjects)
            for section in self.sections
            for seed in self.bench.seeds_of(subject, section)[turn : turn + 1]
            if self.bench.reason_against(subject, section, seed) is None
        ]
        return sorted(pieces, key=lambda piece: piece.section.trains)

    def _repeated(self, plan: Plan) -> Iterator[Piece]:
        """Yield the pieces of a plan, and file what it did without."""
        named = {each.name: each for each in self.sections}
        for each in plan.entries:
            section = named[each.part]
            piece = Piece(each.network, section, each.seed, self._estimate(each.network, section, each.seed))
            if each.status == "done":
                yield piece
            else:
                self._file(piece, without_result(each.status, each.reason or ""))

    def _ahead(self, turn: int) -> list[Piece]:
        """Return the work of a turn by what is known so far: where references are told apart least comes first."""
        pieces = self._turn(turn)
        if not self.settings.bounded:
            return pieces
        if turn == 0:  # what is judged comes before what is not, should the time end early
            return sorted(pieces, key=lambda each: (each.section.trains, not _judged(each.section)))
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
        left_out = result["status"] in ("stopped", "settled")
        status, reason = (result["status"], result["reason"]) if left_out else ("done", None)
        self._entries.append(Entry(piece.subject, piece.section.name, piece.seed, reason, status))

    def run(self, watch: Watch | None = None) -> list[Row]:
        """Do the work, and return one row per network, in their order."""
        self._check_together()
        self._entries = []
        planned = self.plan()
        self._planned = {(each.subject, each.section.name, each.seed): each.seconds for each in planned}
        abreast = self._abreast(planned)
        total, self._entries = self.expected_seconds() * abreast, []
        self._begin, self._apart = time.perf_counter(), 0.0
        progress = _Progress(watch, total)
        try:
            with Crew(self.settings) if abreast > 1 else nullcontext() as crew:
                if self._given is not None:
                    self._work(self._repeated(self._given), crew, progress)
                else:
                    for turn in range(self._turns):
                        self._work(self._ahead(turn), crew, progress)
        except KeyboardInterrupt:
            self.interrupted = True
        self.store.save()
        if watch is not None:
            watch(None, total, total)
        return self.rows()

    def _abreast(self, pieces: Sequence[Piece]) -> int:
        """Return how many pieces are measured at once: as many as there are processes, where that is worth it."""
        left = sum(each.seconds for each in pieces if not (each.section.once or each.section.trains))
        left = left if self.budget is None else min(left, self.budget)
        return size(self.settings) if worth_it(self.subjects, self.sections, self.settings, left) else 1

    def _work(self, pieces: Iterable[Piece], crew: Crew | None, progress: _Progress) -> None:
        """Do some pieces: in their order, or as many at once as there are processes."""
        running: dict[Future[tuple[SeedResult, str]], Piece] = {}
        for piece in pieces:
            while crew is not None and len(running) >= crew.size:
                self._collect(running, progress)
            if self._taken_up(piece) or not self._affordable(piece):
                continue
            progress.begins(piece)
            if crew is None or piece.section.once or piece.section.trains or piece.section.threads:
                self._measured(piece, self.bench.measured(piece, self._left(piece)))
                progress.ends(self._planned.get(_key(piece), piece.seconds))
            else:
                running[crew.begin(piece, self.subjects[piece.subject], self._left(piece))] = piece
        while running:
            self._collect(running, progress)

    def _collect(self, running: dict[Future[tuple[SeedResult, str]], Piece], progress: _Progress) -> None:
        """Wait for a piece that another process measures, and file it."""
        for each in wait(running, return_when=FIRST_COMPLETED).done:
            piece = running.pop(each)
            try:
                result, digest = each.result()
                self.subjects[piece.subject].digests[piece.seed] = digest
            except BrokenProcessPool:  # it was killed, perhaps for want of memory: here there is more
                result = self.bench.measured(piece, self._left(piece))
            self._measured(piece, result)
            progress.ends(self._planned.get(_key(piece), piece.seconds))

    def rows(self) -> list[Row]:
        """Return one row per network of what is there."""
        return [self._row(subject) for subject in self.subjects]

    def label(self, piece: Piece) -> str:
        """Return the name of the network that a piece of work is about."""
        return self.subjects[piece.subject].spec.label

    def _estimate(self, index: int, section: ProfileSection, seed: int) -> float:
        subject = self.subjects[index]
        if self._known(subject, section, seed) is not None:
            return 0.0
        took = self._took.get((index, section.name))
        return self.bench.seconds(subject, section, seed) if took is None else took

    def _known(self, subject: Subject, section: ProfileSection, seed: int) -> SeedResult | None:
        return self.store.get(subject.fingerprint, section.kept_as(self.bench.context(subject, seed)), seed)

    def _spent(self) -> float:
        """Return the seconds of the budget that are gone: since the work began, without training, and reserved."""
        return time.perf_counter() - self._begin - self._apart + self.reserved

    def _left(self, piece: Piece) -> float | None:
        """Return the seconds after which a piece is given up; None: never."""
        return None if self.budget is None or piece.section.trains else OVER * self.budget - self._spent()

    def _taken_up(self, piece: Piece) -> bool:
        """Whether a result is known already; it is then filed."""
        known = self._known(self.subjects[piece.subject], piece.section, piece.seed)
        if known is not None:
            self.bench.network(piece.subject, piece.seed)
            self._file(piece, known)
        return known is not None

    def _affordable(self, piece: Piece) -> bool:
        """Whether there is time for a piece; else that is said. A further seed is not worth overrunning the budget."""
        budget, needed = self.budget, self._estimate(piece.subject, piece.section, piece.seed)
        further = piece.seed != self.bench.seeds(self.subjects[piece.subject])[0]
        if budget is None or piece.section.trains or self._spent() + needed <= budget * (1 if further else OVER):
            return True
        kept = f", {self.reserved:.0f} s of it by references" if self.reserved else ""
        reason = f"it needs about {needed:.1f} s, and the budget of {budget:g} s is used up{kept}"
        self._file(piece, without_result("stopped", reason))
        self.stopped = True
        return False

    def _measured(self, piece: Piece, result: SeedResult) -> None:
        """File a result, and keep it."""
        self._took[piece.subject, piece.section.name] = result["seconds"]
        self._apart += result["seconds"] if piece.section.trains else 0.0
        self._file(piece, result)
        self.stopped = self.stopped or result["status"] == "stopped"
        if result["status"] not in ("failed", "stopped"):  # what failed is tried again the next time
            subject = self.subjects[piece.subject]
            kept_as = piece.section.kept_as(self.bench.context(subject, piece.seed))
            self.store.put(subject.fingerprint, kept_as, piece.seed, result)

    def _check_together(self) -> None:
        """Raise, before anything is measured, where the time that networks share cannot suffice."""
        for section in (each for each in self.sections if each.together):
            asked = self.bench.asked(section)
            if any(self._known(self.subjects[i], section, each.seed) is None for i, each in asked.items()):
                section.check_together([self.subjects[i].network for i in asked], list(asked.values()))

    def _row(self, subject: Subject) -> Row:
        settings = self.settings
        return Row(
            label=subject.spec.label,
            network=subject.facts,
            settings=RowSettings(
                quick=settings.quick,
                seeds=tuple(self.bench.seeds(subject)),
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
        seeds = self.bench.seeds_of(subject, section)
        against = self.bench.reason_against(subject, section, seeds[0])
        if against is not None:
            return SectionRow(status="not applicable", reason=against)
        commands: dict[str, str] = {}
        for call in section.calls(self.bench.context(subject, seeds[0])):
            before = f"{commands[call.measure]}\n" if call.measure in commands else ""
            commands[call.measure] = before + spell(subject.spec, call, seeds[0], self.settings.inputs_file)
        results = subject.results.get(section.name, {})
        if not results and self.interrupted:
            results = {seeds[0]: without_result("stopped", "it was interrupted before")}
        found = merge(section, results, len(seeds))
        return dataclasses.replace(found, command=next(iter(commands.values()), ""), commands=commands)


class _Progress:
    """How many of the estimated seconds are done."""

    def __init__(self, watch: Watch | None, total: float) -> None:
        self.watch, self.total, self.done = watch, total, 0.0

    def begins(self, piece: Piece) -> None:
        """Tell of a piece that begins."""
        if self.watch is not None:
            self.watch(piece, self.done, self.total)

    def ends(self, seconds: float) -> None:
        """Count a piece as done."""
        self.done = min(self.total, self.done + seconds)


def _judged(section: ProfileSection) -> bool:
    return any(each.axis is not None for each in section.quantities)


def _key(piece: Piece) -> tuple[int, str, int]:
    return piece.subject, piece.section.name, piece.seed
