"""Merging: runs of shards, and of other folders of runs, put together into one folder of runs.

Runs are known by their names, which follow from their content: the same run of two machines is one run. A finished one
takes the place of one that is not, and of two that are not the further one stays. Nothing that differs is lost: it is
listed and left where it is.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import TEMPORARY, make_folder, sync_folder, write_failure
from mnemoscope.machines.manifests import Manifest, read_manifests
from mnemoscope.machines.shards import Shard, split
from mnemoscope.runs.documents import canonical
from mnemoscope.runs.errors import Damaged
from mnemoscope.runs.folders import LOCK, is_run, scan
from mnemoscope.runs.lock import Held, Lock, holder
from mnemoscope.runs.packing import ENDING, unpack
from mnemoscope.runs.record import Record, read_record
from mnemoscope.runs.status import read_status
from mnemoscope.runs.stores import FolderStore, Store, open_store

__all__ = ["Merged", "fetch", "merge"]

_TIMES = ("seconds", "processor_seconds")
"""Parts of a summary that are other ones each time."""


@dataclass
class Merged:
    """What came of a merge, by names of runs; `missing` and `overlapping` are lines on shards.

    Attributes
    ----------
    added, replaced, kept
        New in the folder; there before, but not as far; there already.
    differing, busy
        Left where they are: with other numbers or another configuration than the run of that name, or being written.
    missing, overlapping
        Shards that lack runs, and shards that have runs in common.
    """

    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    overlapping: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Candidate:
    """A run that may be merged: its name, and what puts a copy of it into a new folder."""

    name: str
    copy: Callable[[Path], Record]
    folder: Path | None = None


def merge(sources: Sequence[str | os.PathLike[str]], target: Path, *, partial: bool = False) -> Merged:
    """Put the runs of folders or stores together into one folder.

    Parameters
    ----------
    sources
        Folders of shards (or URLs), and ordinary folders of runs.
    target
        The folder of runs that gets them; made where there is none.
    partial
        Merge also when shards are missing; otherwise that is an error, which lists them, and nothing is done.
    """
    stores = [open_store(one) for one in sources]
    for store in stores:
        if isinstance(store, FolderStore):
            _check_source(store.folder, target)
    found = {str(store): list(_candidates(store)) for store in stores}
    manifests = {str(store): list(read_manifests(store)) for store in stores}
    for place, listed in found.items():
        if not listed and not manifests[place]:
            raise UserError(f"{place!r} holds neither runs nor shards")
    merged = Merged(overlapping=_overlapping(manifests))
    there = {one.name for listed in found.values() for one in listed} | _finished(target)
    merged.missing = _missing([one for listed in manifests.values() for one in listed], there)
    if merged.missing and not partial:
        raise UserError(f"shards are missing: {'; '.join(merged.missing)}; to merge what is there, give --partial")
    make_folder(target)
    for listed in found.values():
        for one in listed:
            getattr(merged, _put(one, target)).append(one.name)
    return merged


def fetch(store: Store, name: str, target: Path) -> bool:
    """Put one packed run of a store into a folder of runs; say whether the run is there then."""
    file = f"{name}{ENDING}"
    if file not in store.names():
        return False
    make_folder(target)
    return _put(_Candidate(name, functools.partial(_unpacked, store, file)), target) != "busy"


def _check_source(source: Path, target: Path) -> None:
    if not source.is_dir():
        raise UserError(f"there is no folder {str(source)!r}")
    if target.exists() and source.samefile(target):
        raise UserError(f"{str(source)!r} is the folder of the runs itself: name others, or another with --runs")


def _candidates(store: Store) -> Iterator[_Candidate]:
    for name in store.names():
        if name.endswith(ENDING):
            yield _Candidate(name.removesuffix(ENDING), functools.partial(_unpacked, store, name))
    if isinstance(store, FolderStore):
        for entry in sorted(os.scandir(store.folder), key=lambda one: one.name):
            folder = Path(entry.path)
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False) and is_run(folder):
                yield _Candidate(entry.name, functools.partial(_copied, folder), folder)


def _unpacked(store: Store, name: str, folder: Path) -> Record:
    try:
        return unpack(store.read(name), folder, name)
    except Damaged as error:
        raise Damaged(f"{error}; remove it from {str(store)!r}, and run its shard again") from None


def _copied(source: Path, folder: Path) -> Record:
    try:
        shutil.copytree(source, folder, symlinks=True, ignore=shutil.ignore_patterns(LOCK, ".*"))
    except (OSError, shutil.Error) as error:
        first = error.args[0][0][2] if isinstance(error, shutil.Error) else error
        raise UserError(f"{str(source)!r} cannot be copied: {first}") from error
    return read_record(folder, source.name)


def _finished(target: Path) -> set[str]:
    """Return the names of the runs in a folder that are finished."""
    found = set()
    for one in target.iterdir() if target.is_dir() else ():
        with contextlib.suppress(UserError):
            if is_run(one) and read_status(one).state == "finished":
                found.add(one.name)
    return found


# Shards ---------------------------------------------------------------------------------------------


def _missing(manifests: Sequence[Manifest], there: set[str]) -> list[str]:
    """Return a line for every whole of which runs are missing: in which shards, and how many."""
    lines = []
    for (study, scale, plan), group in groupby(sorted(manifests, key=lambda one: one.whole), lambda one: one.whole):
        listed = list(group)
        counts = [one.of for one in listed]
        of = max(set(counts), key=lambda count: (counts.count(count), count))
        begun = {one.number for one in listed if one.of == of}
        short = []
        for number in range(1, of + 1):
            own = split(plan, Shard(of, number))
            lacking = sum(name not in there for name in own)
            if lacking:
                short.append(f"{number}/{of} ({lacking} of {len(own)} runs{'' if number in begun else ', not begun'})")
        if short:
            lines.append(f"{study} at {scale} scale lacks {', '.join(short)}")
    return lines


def _overlapping(manifests: dict[str, list[Manifest]]) -> list[str]:
    """Return a line for every two shards that have runs in common."""
    lines = []
    listed = [(place, one) for place, found in manifests.items() for one in found]
    for (first, a), (second, b) in combinations(listed, 2):
        common = set(a.runs) & set(b.runs)
        if common:
            where = f"in {first!r} and in {second!r}" if first != second else f"in {first!r}"
            lines.append(f"{a.study} {a.shard} and {b.study} {b.shard} {where} have {len(common)} runs in common")
    return lines


# Runs -----------------------------------------------------------------------------------------------


def _put(candidate: _Candidate, target: Path) -> str:
    """Put one run into its place; return which list of `Merged` it belongs to."""
    place = target / candidate.name
    if candidate.folder is not None and _in_use(candidate.folder):
        return "busy"
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        new = candidate.copy(temporary)
        if not os.path.lexists(place):
            _rename(temporary, place)
            return "added"
        which = _compared(new, temporary, place)
        if which != "replaced":
            return which
        lock = Lock(place / LOCK)
        try:
            lock.acquire()
        except Held:
            return "busy"
        aside = place.with_name(f".{place.name}.{secrets.token_hex(4)}{TEMPORARY}")
        try:
            _rename(place, aside)
            _rename(temporary, place)
        finally:
            lock.release()
            shutil.rmtree(aside, ignore_errors=True)
        return which
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _in_use(folder: Path) -> bool:
    """Say whether a run, or one within it, is being written."""
    return any(holder(one / LOCK) for one in (folder, *(found.folder for found in scan(folder))))


def _rename(before: Path, after: Path) -> None:
    try:
        before.rename(after)
        sync_folder(after.parent)
    except OSError as error:
        raise write_failure(after, error) from error


def _compared(new: Record, here: Path, there: Path) -> str:
    try:
        old = read_record(there, there.name)
    except UserError:  # it is damaged: whoever looks at it is told
        return "differing"
    if canonical([new.kind, new.spec]) != canonical([old.kind, old.spec]):
        return "differing"
    if new.status == old.status == "finished":
        return "kept" if canonical(_result(new)) == canonical(_result(old)) else "differing"
    if "finished" in (new.status, old.status):
        return "replaced" if new.status == "finished" else "kept"
    return "replaced" if _progress(here) > _progress(there) else "kept"


def _result(record: Record) -> Any:
    summary = record.summary
    return {n: v for n, v in summary.items() if n not in _TIMES} if isinstance(summary, dict) else summary


def _progress(folder: Path) -> int:
    """Return how many steps are kept of a run and of those within it."""
    steps = 0
    for one in (folder, *(found.folder for found in scan(folder))):
        with contextlib.suppress(UserError):
            steps += 1 + (read_status(one).checkpoint or 0)
    return steps
