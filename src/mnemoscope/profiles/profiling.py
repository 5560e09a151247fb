"""Work of a profile: networks and what they are set beside, measured, and the page that follows."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mnemoscope.core.files import writable
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles.atlas import references as atlas
from mnemoscope.profiles.page import keyed
from mnemoscope.profiles.plan import Plan
from mnemoscope.profiles.profile import Profile
from mnemoscope.profiles.progress import Joined, Progress
from mnemoscope.profiles.results import Store, beside
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.runner import Piece, Runner, Settings

__all__ = ["Profiling"]


class Profiling:
    """Networks and what they are set beside, ready to be measured: everything that can be wrong is found before that.

    One network is set beside references with as many parameters and inputs; of several, the references of each are the
    others.

    Parameters
    ----------
    specs
        What the profile is about.
    settings
        How much to do.
    html
        Where the page goes; results are then kept beside it, and taken up again. None: nowhere.
    fresh
        Measure the references too, as thoroughly as the network.
    plan
        A file that says what is measured; where there is none, it is written with what was.

    Attributes
    ----------
    runner
        What measures, and knows its plan.
    references
        What measures references; None where the atlas has them, or none are needed.
    """

    def __init__(
        self,
        specs: Sequence[NetworkSpec],
        settings: Settings,
        *,
        html: str | os.PathLike[str] | None = None,
        fresh: bool = False,
        plan: str | os.PathLike[str] | None = None,
    ) -> None:
        self.page = None if html is None else writable(html)
        self.plan_file = None if plan is None else writable(plan)
        given = Plan.read(self.plan_file) if self.plan_file is not None and self.plan_file.exists() else None
        store = Store(None if self.page is None else writable(beside(self.page)))
        self.runner = Runner(specs, settings, store, plan=given)
        self.references: Runner | None = None
        self._stored: list[Row] = []
        self._at_work = self.runner
        if len(specs) == 1:
            facts = self.runner.subjects[0].facts
            self._stored = [] if fresh or settings.inputs is not None else atlas.rows_like(facts, quick=settings.quick)
            if fresh or not self._stored:
                self.references = atlas.measuring(facts, settings, self.runner.budget, fresh=fresh)
                self.runner.reserved = 0.0 if fresh or self.references is None else self.references.expected_seconds()
            self.runner.references = self._stored

    def label(self, piece: Piece) -> str:
        """Return the name of the network that a piece of work is about."""
        return self._at_work.label(piece)

    def plan(self) -> list[tuple[str, Piece]]:
        """Return the work in its order, each piece with the name of its network."""
        found = [(self.runner.label(piece), piece) for piece in self.runner.plan()]
        if self.references is not None:
            found += [(f"{self.references.label(piece)} (reference)", piece) for piece in self.references.plan()]
        return found

    def expected_seconds(self, *, bounded: bool = True) -> float:
        """Return about how long it takes on the clock, references that are measured included."""
        runners = filter(None, (self.runner, self.references))
        return sum(each.expected_seconds(bounded=bounded) for each in runners)

    def run(self, command: str, progress: Progress | None = None) -> Profile:
        """Measure, set what was found beside the references, and write the page.

        Parameters
        ----------
        command
            What makes the profile again.
        progress
            Told of every piece of work.
        """
        watch = None if progress is None else Joined(progress.watch, self._later())
        if progress is not None:
            for runner in filter(None, (self.runner, self.references)):
                runner.say = progress.say
        own = keyed(self.runner.run(watch))
        if self.plan_file is not None and not self.plan_file.exists() and not self.runner.interrupted:
            self.runner.done().write(self.plan_file)
        others = keyed(self._beside(watch), [row.key for row in own])
        measured = self.references is not None
        found = Profile(
            rows=tuple(own),
            references=tuple(others),
            interrupted=self.runner.interrupted,
            command=command,
            about_references=atlas.about(own[0], others, measured) if len(own) == 1 else "",
            sections=self.runner.sections,
        )
        if self.page is not None:
            found.to_html(self.page)
        return found

    def _later(self) -> float:
        """Return the seconds of work that follow the networks' own."""
        return 0.0 if self.references is None else self.references.expected_seconds()

    def _beside(self, watch: Joined | None) -> list[Row]:
        if self.references is None or self.runner.interrupted:
            return self._stored
        if watch is not None:
            watch.goes_on()
        self._at_work = self.references
        rows = self.references.run(watch)
        self.runner.interrupted = self.references.interrupted
        return rows
