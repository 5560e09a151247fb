"""Finding the runs below a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mnemoscope.runs.errors import read_failure
from mnemoscope.runs.layout import CHECKPOINTS, CONFIG, LOCK, METRICS, STATUS, is_run
from mnemoscope.runs.lock import holder

__all__ = ["Found", "parent_of", "scan"]

_DEPTH = 4


@dataclass(frozen=True)
class Found:
    """A run's folder, its id (the path below the root), and the id of the run that it is part of."""

    id: str
    folder: Path
    parent: str | None

    def signature(self) -> str:
        """Return what changes when its row does: times and sizes of files, who writes it, what it is part of."""
        parts = [_stamp(self.folder / name) for name in (CONFIG, STATUS, METRICS)]
        return " ".join([*parts, "held" if holder(self.folder / LOCK) else "free", self.parent or ""])


def scan(base: Path) -> Iterator[Found]:
    """Give all runs below a folder, by name, those within others after them. Links are not followed."""
    if base.is_dir():
        yield from _below(base, "", None, _DEPTH)


def _below(folder: Path, prefix: str, parent: str | None, depth: int) -> Iterator[Found]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except PermissionError as error:
        if not prefix:
            raise read_failure(folder, error) from error
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name == CHECKPOINTS or not entry.is_dir(follow_symlinks=False):
            continue
        name, path = prefix + entry.name, Path(entry.path)
        found = is_run(path)
        if found:
            yield Found(name, path, parent)
        if depth > 1:
            yield from _below(path, f"{name}/", name if found else parent, depth - 1)


def parent_of(folder: Path, base: Path) -> str | None:
    """Return the id of the run that a run's folder is within, or None."""
    above = (one for one in folder.parents if one != base and one.is_relative_to(base) and is_run(one))
    nearest = next(above, None)
    return None if nearest is None else nearest.relative_to(base).as_posix()


def _stamp(path: Path) -> str:
    try:
        found = path.lstat()
    except OSError:
        return "-"
    return f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"
