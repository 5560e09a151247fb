"""Space that runs take, and cleaning up: first a plan, then its execution."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import TEMPORARY, remove
from mnemoscope.runs.checkpoints import all_files, checked_files, document_path, steps
from mnemoscope.runs.documents import read_document
from mnemoscope.runs.errors import Damaged
from mnemoscope.runs.files import size
from mnemoscope.runs.folders import CHECKPOINTS, CONFIG, ENVIRONMENT, LOCK, METRICS, STATUS
from mnemoscope.runs.lock import Held, Lock, holder
from mnemoscope.runs.status import read_status, write_status

__all__ = [
    "Choices",
    "Removal",
    "Usage",
    "checkpoint_files",
    "execute",
    "known_files",
    "leftovers",
    "plan",
    "size",
    "usage",
]

_DOCUMENTS = (METRICS, ENVIRONMENT, STATUS, CONFIG, LOCK)


@dataclass(frozen=True)
class Usage:
    """Bytes of one run: its metrics, its checkpoints, what is left over, and the rest of its own files."""

    metrics: int
    checkpoints: int
    leftovers: int
    documents: int

    @property
    def total(self) -> int:
        """The bytes of all files of the run."""
        return self.metrics + self.checkpoints + self.leftovers + self.documents


def usage(folder: Path) -> Usage:
    """Return the bytes of a run's own files."""
    documents = sum(size(folder / name) for name in _DOCUMENTS if name != METRICS)
    files = [path for paths in checkpoint_files(folder).values() for path in paths]
    return Usage(size(folder / METRICS), sum(map(size, files)), sum(map(size, leftovers(folder))), documents)


def checkpoint_files(folder: Path) -> dict[int, list[Path]]:
    """Return the files of each checkpoint, by step."""
    inside = folder / CHECKPOINTS
    committed = [step for step in steps(inside) if os.path.lexists(document_path(inside, step))]
    return {step: all_files(inside, step) for step in committed}


def leftovers(folder: Path) -> list[Path]:
    """Return what nobody reads any more: half-written files, and copies of damaged ones."""
    inside = folder / CHECKPOINTS
    found = [path for path in _files(folder) if _is_temporary(path) or path.name.startswith("metrics.damaged-")]
    found += [path for path in _files(inside) if _is_temporary(path) or path.name.startswith("damaged-")]
    orphans = set(steps(inside)) - set(checkpoint_files(folder))
    return found + [path for step in sorted(orphans) for path in all_files(inside, step)]


def known_files(folder: Path) -> list[Path]:
    """Return all files that the record wrote, in the order in which they may be removed."""
    inside = [path for paths in checkpoint_files(folder).values() for path in paths]
    own = [folder / name for name in _DOCUMENTS]
    return [path for path in (*inside, *leftovers(folder), *own) if os.path.lexists(path)]


def _files(folder: Path) -> Iterator[Path]:
    if folder.is_dir() and not folder.is_symlink():
        yield from (Path(entry.path) for entry in os.scandir(folder) if not entry.is_dir(follow_symlinks=False))


def _is_temporary(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(TEMPORARY)


@dataclass(frozen=True)
class Choices:
    """What may be removed besides leftovers.

    Attributes
    ----------
    older
        Checkpoints older than the newest, except the best; only where the newest is whole.
    weights
        All checkpoints of finished runs.
    failed, interrupted
        Whole runs.
    """

    older: bool = False
    weights: bool = False
    failed: bool = False
    interrupted: bool = False


@dataclass(frozen=True)
class Removal:
    """Files of one run that are to be removed together, why, and how many bytes they are."""

    run: str
    folder: Path
    status: str
    what: str
    files: tuple[Path, ...]
    bytes: int


def plan(base: Path, rows: Iterable[dict[str, Any]], choices: Choices) -> list[Removal]:
    """Return what is to be removed of the runs in `rows` (of the index). Nothing is touched."""
    found = [
        _removal(path, path.name, _ABANDONED, "a run that never came into being", _all(path)) for path in _begun(base)
    ]
    for row in rows:
        if row["status"] not in ("running", "newer", "damaged"):
            found += _of_run(base / row["id"], row["id"], row["status"], choices)
    return found


def execute(removal: Removal) -> int:
    """Remove what a plan says, unless the run has changed since; return the number of bytes."""
    lock = Lock(removal.folder / LOCK)
    try:
        lock.acquire()
    except Held as held:
        raise UserError(f"run {removal.run} is in use by {held.owner}: nothing of it is removed") from None
    try:
        if removal.status not in (_ABANDONED, _status(removal.folder)):
            raise UserError(f"run {removal.run} has changed meanwhile: nothing of it is removed")
        freed = 0
        for path in removal.files:
            freed += size(path)
            remove(path)
        if removal.what == _WEIGHTS:
            write_status(removal.folder, replace(read_status(removal.folder), checkpoint=None))
        for folder in (removal.folder / CHECKPOINTS, removal.folder):
            with contextlib.suppress(OSError):  # whatever else is in there stays
                folder.rmdir()
    finally:
        lock.release()
    return freed


_WEIGHTS = "all checkpoints"
_ABANDONED = "abandoned"


def _begun(base: Path) -> list[Path]:
    """Return the folders that processes left which were killed while they began a run."""
    found = sorted(base.glob(f".*{TEMPORARY}")) if base.is_dir() else []
    return [path for path in found if path.is_dir() and not path.is_symlink() and holder(path / LOCK) is None]


def _all(folder: Path) -> list[Path]:
    return [*_files(folder / CHECKPOINTS), *_files(folder)]


def _of_run(folder: Path, run: str, status: str, choices: Choices) -> Iterator[Removal]:
    if (status == "failed" and choices.failed) or (status == "interrupted" and choices.interrupted):
        yield _removal(folder, run, status, "the whole run", known_files(folder))
        return
    old = leftovers(folder)
    if old:
        yield _removal(folder, run, status, "leftovers", old)
    if choices.weights and status == "finished":
        what, files = _WEIGHTS, checkpoint_files(folder)
    elif choices.older:
        what, files = "older checkpoints", _older(folder)
    else:
        return
    if files:
        yield _removal(folder, run, status, what, itertools.chain(*files.values()))


def _removal(folder: Path, run: str, status: str, what: str, files: Iterable[Path]) -> Removal:
    listed = tuple(files)
    return Removal(run, folder, status, what, listed, sum(map(size, listed)))


def _older(folder: Path) -> dict[int, list[Path]]:
    files = checkpoint_files(folder)
    try:
        _, key = read_document(folder / CONFIG)
        marks = {step: checked_files(folder / CHECKPOINTS, step, key)[0]["best"] for step in files}
    except Damaged:
        return {}  # where something is damaged, the older one is needed
    kept = {max(files, default=None), max((step for step, best in marks.items() if best), default=None)}
    return {step: paths for step, paths in files.items() if step not in kept}


def _status(folder: Path) -> str:
    """Return the state of a run whose lock we hold."""
    try:
        state = read_status(folder).state
    except UserError:
        return "interrupted"
    return "interrupted" if state == "running" else state
