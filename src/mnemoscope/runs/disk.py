"""What takes how much space in a run's folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mnemoscope.core.files import TEMPORARY
from mnemoscope.runs.checkpoint import document_path, steps
from mnemoscope.runs.layout import CHECKPOINTS, CONFIG, ENVIRONMENT, LOCK, METRICS, STATUS
from mnemoscope.runs.store import all_files

__all__ = ["Usage", "checkpoint_files", "known_files", "leftovers", "size", "usage"]

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


def size(path: Path) -> int:
    """Return the bytes of a file, 0 when it is gone."""
    try:
        return path.lstat().st_size
    except OSError:
        return 0


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
