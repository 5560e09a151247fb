"""References beside a profile: established networks with as many parameters and inputs, from the atlas or measured.

The atlas ships with the package as one versioned file, and ``mnemoscope atlas build`` makes it again. Where it has
nothing of a network's size, references are measured once, as a first look measures, and kept in a folder of the user's
(``MNEMOSCOPE_CACHE``, else that of the system).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from mnemoscope.core.errors import UserError
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles.atlas.builder import INPUT_SIZE, REFERENCES
from mnemoscope.profiles.atlas.file import Atlas, read, where
from mnemoscope.profiles.atlas.interpolation import NEAR, at_parameters
from mnemoscope.profiles.results import Store
from mnemoscope.profiles.row import NetworkFacts, Row
from mnemoscope.profiles.runner import Runner, Settings
from mnemoscope.profiles.section import all_sections

__all__ = ["VARIABLE", "about", "load", "measuring", "rows_like"]

VARIABLE = "MNEMOSCOPE_CACHE"
"""The environment variable that names the folder of references that were measured."""

_ALLOWED = 45.0
"""Seconds that references may take without being asked for, where there is no budget."""

_SHARE = 0.25
"""Share of the budget that they may take: those that tell most come first."""

_TELLING = ("lstm", "gru", "rnn", "orth-rnn", "nnrnn", "irnn", "linear-rnn", "2rnn", "rac", "scornn", "scurnn")
_TIMED = ("step_microseconds",)
"""What depends on the machine, and is compared only where it was measured."""


def load(path: Path | None = None) -> Atlas:
    """Return the atlas in use, or that of a file; read once as long as the file stays as it is."""
    source = where() if path is None else path
    found = source.stat() if source.is_file() else None
    # A new file within the clock's resolution has another inode, since files are written beside and moved.
    return _load(source, None if found is None else (found.st_mtime_ns, found.st_ino, found.st_size))


@lru_cache(maxsize=4)
def _load(source: Path, stamp: tuple[int, int, int] | None) -> Atlas:
    return read(source)


def rows_like(facts: NetworkFacts, *, quick: bool = False) -> list[Row]:
    """Return what the atlas has of references with as many parameters and inputs as a network; perhaps nothing.

    Parameters
    ----------
    facts
        Of the network that they are set beside.
    quick
        Those that were measured as a first look measures: numbers that depend on how many samples there were are
        compared with their like.
    """
    if facts.kind != "recurrent" or facts.input_size != INPUT_SIZE or not facts.parameters:
        return []
    alike = [row for row in load().rows if row.settings.quick is quick]
    quantities = [each for one in all_sections() for each in one.quantities]
    return [_timeless(row) for row in at_parameters(alike, facts.parameters, quantities)]


def measuring(facts: NetworkFacts, settings: Settings, budget: float | None, *, fresh: bool = False) -> Runner | None:
    """Return what measures references at a network's own size, and keeps their numbers; None when it would take long.

    Parameters
    ----------
    facts
        Of the network that they are set beside.
    settings
        Of its profile.
    budget
        Seconds that measuring may take, of both; None: as long as it takes.
    fresh
        All of them, as thoroughly as the network, however long it takes; else those for which there is time, as a first
        look measures.
    """
    if facts.kind not in ("recurrent", "sequence") or not facts.parameters:
        return None
    block = facts.kind == "sequence"
    allowed = _ALLOWED if budget is None else _SHARE * budget
    chosen = dataclasses.replace(
        settings,
        quick=settings.quick or not fresh,
        budget=None if fresh else allowed,
        train_minutes=None,
        bounded=False,
    )
    runner = Runner([], chosen, Store(_cache(facts, chosen)), beside_blocks=block)
    if not fresh:
        runner.sections = tuple(one for one in runner.sections if any(each.axis for each in one.quantities))
    if block:  # of the others only what a block can be asked as well
        runner.sections = tuple(one for one in runner.sections if "sequence" in one.kinds)
    for name in REFERENCES if fresh else _TELLING:
        before = len(runner.subjects)
        try:
            runner.add([NetworkSpec(name, input_size=facts.input_size or 1, parameters=facts.parameters)])
        except UserError:  # it has no size as small as that
            continue
        if abs(runner.subjects[-1].facts.parameters - facts.parameters) > NEAR * facts.parameters:
            del runner.subjects[before:]
        elif not fresh and sum(piece.seconds for piece in runner.plan()) > allowed:
            del runner.subjects[before:]
            break
    return runner if len(runner.subjects) >= len(REFERENCES) // 3 else None


def _cache(facts: NetworkFacts, settings: Settings) -> Path | None:
    """Return the file of the references of a size; None where none can be kept."""
    named = os.environ.get(VARIABLE)
    system = os.environ.get("XDG_CACHE_HOME")
    folder = Path(named) if named else (Path(system) if system else Path.home() / ".cache") / "mnemoscope"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    depth = f"quick-{settings.seed}" if settings.quick else f"full-{settings.seed}"
    return folder / f"references-{facts.parameters}-{facts.input_size or 1}-{depth}.profile.json"


def _timeless(row: Row) -> Row:
    """Return a row without what another machine took."""
    sections = {
        name: dataclasses.replace(
            each, scalars={key: found for key, found in each.scalars.items() if key not in _TIMED}
        )
        for name, each in row.sections.items()
    }
    return dataclasses.replace(row, sections=sections)


def about(subject: Row, references: Sequence[Row], measured: bool) -> str:
    """Say where the references come from, how near their numbers of parameters are, and how to get them if none are."""
    own = f"{subject.network.parameters:,} parameters"
    if not references:
        if subject.network.kind not in ("recurrent", "sequence"):
            return "There are no references of its kind."
        return f"No references of {own} and {subject.network.input_size} inputs are known; --fresh measures them."
    counts = sorted(row.network.parameters for row in references)
    between = f"{counts[0]:,} to {counts[-1]:,} parameters" if counts[0] != counts[-1] else f"{counts[0]:,} parameters"
    how = "interpolated to its size" if any(_interpolated(row) for row in references) else f"with {between}"
    if measured:
        quick = "quickly " if references[0].settings.quick and not subject.settings.quick else ""
        return f"{len(references)} references {how}, measured {quick}on this machine at its own input size."
    made = references[0].environment
    return f"{len(references)} references {how}, from the atlas of {made.get('date', '?')} (measured elsewhere)."


def _interpolated(row: Row) -> bool:
    return row.network.source.startswith("interpolated")
