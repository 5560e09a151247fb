"""Builder of the atlas: row by row, each kept at once, those that are there not measured again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.core.files import writable
from mnemoscope.machines.workers import Tell, Workers
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.parameters import COUNTED
from mnemoscope.nn.registry import get
from mnemoscope.profiles.atlas.file import LEFT_OUT, read, write
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.runner import Runner, Settings
from mnemoscope.profiles.section import all_sections

__all__ = ["BUDGETS", "INPUT_SIZE", "REFERENCES", "Job", "build", "jobs", "measure_job", "seeds_at"]

REFERENCES = (
    *("linear-rnn", "rnn", "irnn", "orth-rnn"),
    *("scornn", "exprnn", "scurnn", "nnrnn"),
    *("lstm", "gru"),
    *("rac", "2rnn"),
)
"""The reference set: first-order, orthogonal, unitary, non-normal, gated and multiplicative networks."""

BUDGETS = (2**10, 2**12, 2**14)
"""Numbers of parameters of the recurrent part."""

INPUT_SIZE = 1
"""Numbers per step of the input, as a profile's unless told otherwise."""

_LARGE = 2**14
_FEW = 3


@dataclass(frozen=True)
class Job:
    """One row to be measured.

    Attributes
    ----------
    name, budget, quick
        Of which network, at how many parameters, and whether as a first look measures.
    sections, digests
        What is lacking of a row that is there, and beginnings of the digests of its weights; empty: all of it.
    """

    name: str
    budget: int
    quick: bool
    sections: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Its name while it runs."""
        return f"{self.name} at {self.budget:,} parameters{', quick' if self.quick else ''}"


Watch = Callable[[Job, str], None]
"""Called with every row, and whether it is ``"measured"`` or was ``"kept"``."""


def seeds_at(budget: int, quick: bool) -> int | None:
    """Return how many sets of weights are measured: as many as a profile takes, and three from 2^14 parameters on.

    There a row takes up to minutes: the state of a unitary network has 254 numbers, and its Fisher memory takes the
    third power of that.
    """
    return _FEW if budget >= _LARGE and not quick else None


def jobs(names: Sequence[str] = (), budgets: Sequence[int] = (), *, quick: bool | None = None) -> list[Job]:
    """Return the rows that are asked for, checked: the cheap ones first.

    Parameters
    ----------
    names
        Networks; none: the reference set.
    budgets
        Numbers of parameters; none: all three.
    quick
        Only those measured as a first look, or only the others; None: both.
    """
    for name in names:
        if getattr(get(name), "kind", "recurrent") != "recurrent":
            raise expected("a network of the atlas", "recurrent", name)
    chosen = [positive_int("a budget", budget) for budget in budgets or BUDGETS]
    ways = (True, False) if quick is None else (quick,)
    return [
        Job(name, budget, way)
        for budget in sorted(set(chosen))
        for way in ways
        for name in dict.fromkeys(names or REFERENCES)
    ]


def build(
    path: Path,
    names: Sequence[str] = (),
    budgets: Sequence[int] = (),
    *,
    quick: bool | None = None,
    again: bool = False,
    watch: Watch | None = None,
    workers: Workers | None = None,
) -> int:
    """Measure the rows that are not in the file yet or not whole, and return how many were measured.

    Of a row that lacks a section, or has an older version of it, only that section is measured. The file is written
    after every row, so that an interrupted build goes on where it stopped.

    Parameters
    ----------
    path
        The file; what it holds stays there.
    names, budgets, quick
        Which rows, as for `jobs`.
    again
        Measure also those that are there.
    watch
        Called before each row; of rows that workers measure, when they are done.
    workers
        Who measures, several rows at a time; None: this process.
    """
    todo = jobs(names, budgets, quick=quick)
    writable(path)
    known = {_key(row): row for row in (read(path).rows if path.is_file() else ())}
    tell = watch or (lambda *_: None)
    needed = []
    for job in todo:
        row = None if again else known.get((job.name, job.budget, job.quick))
        if row is None:
            needed.append(job)
        elif lacking := _lacking(row):
            needed.append(dataclasses.replace(job, sections=lacking, digests=row.settings.digests))
        else:
            tell(job, "kept")
    for job, row in _here(needed, tell) if workers is None else _elsewhere(needed, tell, workers):
        known[_key(row)] = _completed(known.get(_key(row)), row, job)
        write(path, list(known.values()), _notes())
    return len(needed)


def _lacking(row: Row) -> tuple[str, ...]:
    """Return what is measured without training, and what a row has not, or in an older version, or failed."""
    found = []
    for one in all_sections():
        own = row.sections.get(one.name)
        if row.network.kind not in one.kinds or one.trains or one.name in LEFT_OUT:
            continue
        if own is None or own.status == "failed" or (own.status == "done" and own.version != one.version):
            found.append(one.name)
    return tuple(found)


def _completed(known: Row | None, found: Row, job: Job) -> Row:
    """Return a row with the sections that were measured now; it keeps its others, where its weights are the same."""
    if known is None or not _same_weights(known.settings.digests, found.settings.digests):
        return found
    fresh = {name: each for name, each in found.sections.items() if name in (job.sections or found.sections)}
    return dataclasses.replace(known, sections={**known.sections, **fresh}) if job.sections else found


def _same_weights(short: Sequence[str], digests: Sequence[str]) -> bool:
    """Say whether the beginnings of digests that a file keeps are those of these weights."""
    return bool(short) and digests[0].startswith(short[0])


def _here(todo: Sequence[Job], tell: Watch) -> Iterator[tuple[Job, Row]]:
    for job in todo:
        tell(job, "measured")
        yield job, _measured(job)


def _elsewhere(todo: Sequence[Job], tell: Watch, workers: Workers) -> Iterator[tuple[Job, Row]]:
    sent = [dataclasses.asdict(job) for job in todo]
    for number, found in workers.run("mnemoscope.profiles.atlas.builder:measure_job", sent):
        tell(todo[number], "measured")
        yield todo[number], Row.from_dict(found)


def measure_job(job: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """Measure one row for whoever drives many machines."""
    return _measured(Job(**job)).to_dict()


def _measured(job: Job) -> Row:
    spec = NetworkSpec(job.name, input_size=INPUT_SIZE, parameters=job.budget).resolved()
    runner = Runner([spec], Settings(quick=job.quick, seeds=seeds_at(job.budget, job.quick)))
    if job.sections and _same_weights(job.digests, list(runner.subjects[0].digests.values())):
        runner.sections = tuple(each for each in runner.sections if each.name in job.sections)
    (row,) = runner.run()
    return dataclasses.replace(row, budget=job.budget)


def _key(row: Row) -> tuple[str, int, bool]:
    return row.network.source, row.budget or 0, row.settings.quick


def _notes() -> list[str]:
    return [
        f"Networks have about as many parameters as their budget, counted as: {COUNTED}.",
        f"Inputs have {INPUT_SIZE} number per step; weights are initialised, one set for every seed.",
        f"From {_LARGE:,} parameters on {_FEW} seeds are measured instead of 5, since a row takes minutes there.",
        "Curves are thinned to 16 points; what depends on time (step_microseconds) is of the machine named.",
    ]
