"""Folders of runs: the names in one, the name of one, and all below a root."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.runs.documents import canonical, digest
from mnemoscope.runs.errors import read_failure
from mnemoscope.runs.lock import holder

__all__ = [
    "CHECKPOINTS",
    "CONFIG",
    "ENVIRONMENT",
    "ENVIRONMENT_VARIABLE",
    "LOCK",
    "METRICS",
    "STATUS",
    "Found",
    "find",
    "folder_name",
    "identity",
    "is_run",
    "label",
    "parent_of",
    "root",
    "scan",
    "spec_hash",
    "stamp_of",
]

CONFIG = "config.json"
ENVIRONMENT = "environment.json"
STATUS = "status.json"
METRICS = "metrics.jsonl"
CHECKPOINTS = "checkpoints"
LOCK = "lock"


def is_run(folder: Path) -> bool:
    """Say whether a folder holds a run: its configuration is written last, when all else is there."""
    return os.path.lexists(folder / CONFIG)


ENVIRONMENT_VARIABLE = "MNEMOSCOPE_RUNS"
_HASH = 16
_WORD = 24


def root(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that holds the runs: the one given, else ``$MNEMOSCOPE_RUNS``, else ``./runs``."""
    chosen = given or os.environ.get(ENVIRONMENT_VARIABLE) or "runs"
    path = Path(chosen).expanduser()
    if "\0" in str(path):
        raise UserError("a folder's name must be without the character NUL")
    return path.absolute()


def spec_hash(spec: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that stand for a configuration.

    They are the first of the SHA-256 of its canonical JSON: keys sorted, no spaces, floats as Python's shortest
    form. Equal configurations have equal hashes on every machine, in whatever order they were written.

    Examples
    --------
    >>> spec_hash({"task": "copy", "lr": 0.1}) == spec_hash({"lr": 0.1, "task": "copy"})
    True
    """
    return digest(canonical(spec, "spec"))[:_HASH]


def label(spec: Mapping[str, Any], key: str) -> str | None:
    """Return the name that a configuration gives under `key`: itself if it is text, else its own ``name``."""
    value = spec.get(key)
    if isinstance(value, Mapping):
        value = value.get("name")
    return value if isinstance(value, str) else None


def folder_name(spec: Mapping[str, Any], kind: str) -> str:
    """Return the name of a run's folder: hash, kind, task, network.

    Only letters, digits and hyphens of ASCII get in, so that no name in a configuration leads out of the root.

    Examples
    --------
    >>> folder_name({"task": "../../etc", "network": "nnrnn"}, "fit")[16:]
    '-fit-etc-nnrnn'
    """
    words = (kind, label(spec, "task"), label(spec, "network"))
    return "-".join([spec_hash(spec), *filter(None, (_word(word or "") for word in words))])


def _word(text: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")[:_WORD].strip("-")


def identity(folder: Path, base: Path) -> str:
    """Return the id of a run: its folder's path below the root, else its folder's name."""
    try:
        return folder.relative_to(base).as_posix()
    except ValueError:
        return folder.name or str(folder)


def find(name: str | os.PathLike[str], where: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the run that `name` means.

    Parameters
    ----------
    name
        The run's id, a beginning of it that only one run has, or the path of its folder.
    where
        The folder that holds the runs; see `root`.
    """
    text = os.fspath(name)
    base = root(where)
    if not text or "\0" in text:
        raise UserError(f"a run must be named by its id, a beginning of it, or its folder, got {text!r}")
    parts = text.rstrip("/").split("/")
    matching = list(_beginning(base, parts, "")) if len(parts) <= _DEPTH else []
    if text in matching:
        return base / text
    if (os.sep in text or text in (".", "..")) and is_run(Path(text).absolute()):
        return Path(text).absolute()
    if len(matching) == 1:
        return base / matching[0]
    if is_run(Path(text).absolute()) and not matching:
        return Path(text).absolute()
    if not matching:
        raise UserError(f"no run in {str(base)!r} begins with {text!r}; `mnemoscope runs` lists those there")
    few = ", ".join(matching[:4]) + (", ..." if len(matching) > 4 else "")
    raise UserError(f"{text!r} is the beginning of {len(matching)} runs: {few}")


def _beginning(folder: Path, parts: Sequence[str], prefix: str) -> Iterator[str]:
    """Give the ids that begin so, part by part: ``3fa9/level`` is the beginning of ``3fa9c2d1/level-8``."""
    for name in sorted(entry.name for entry in _folders(folder) if entry.name.startswith(parts[0])):
        if len(parts) > 1:
            yield from _beginning(folder / name, parts[1:], f"{prefix}{name}/")
        elif is_run(folder / name):
            yield prefix + name


def _folders(folder: Path) -> list[os.DirEntry[str]]:
    """Return the folders in a folder that may be runs; links are not followed."""
    if not folder.is_dir():
        return []
    return [
        entry
        for entry in os.scandir(folder)
        if not entry.name.startswith(".") and entry.name != CHECKPOINTS and entry.is_dir(follow_symlinks=False)
    ]


_DEPTH = 4


@dataclass(frozen=True)
class Found:
    """A run's folder, its id (the path below the root), and the id of the run that it is part of."""

    id: str
    folder: Path
    parent: str | None

    def signature(self) -> str:
        """Return what changes when its row does: times and sizes of files, who writes it, what it is part of."""
        parts = [_file_stamp(self.folder / name) for name in (CONFIG, STATUS, METRICS)]
        return " ".join([*parts, "held" if holder(self.folder / LOCK) else "free", self.parent or ""])

    def stamp(self) -> str:
        """Return what changes when a name in its folder does: every document of a run is renamed into its place."""
        try:
            return stamp_of(self.folder.lstat())
        except OSError:
            return "-"


Skip = Callable[[str, str | None, os.DirEntry[str]], bool]
"""Given the id, the parent and the folder of what may be a run, says whether to pass over it and all within it."""


def scan(base: Path, skip: Skip | None = None) -> Iterator[Found]:
    """Give all runs below a folder, by name, those within others after them. Links are not followed."""
    if base.is_dir():
        yield from _below(base, "", None, _DEPTH, skip)


def _below(folder: Path, prefix: str, parent: str | None, depth: int, skip: Skip | None) -> Iterator[Found]:
    try:
        entries = sorted(_folders(folder), key=lambda entry: entry.name)
    except PermissionError as error:
        if not prefix:
            raise read_failure(folder, error) from error
        return
    for entry in entries:
        name = prefix + entry.name
        if skip is not None and skip(name, parent, entry):
            continue
        path = Path(entry.path)
        found = is_run(path)
        if found:
            yield Found(name, path, parent)
        if depth > 1:
            yield from _below(path, f"{name}/", name if found else parent, depth - 1, skip)


def parent_of(folder: Path, base: Path) -> str | None:
    """Return the id of the run that a run's folder is within, or None."""
    above = (one for one in folder.parents if one != base and one.is_relative_to(base) and is_run(one))
    nearest = next(above, None)
    return None if nearest is None else nearest.relative_to(base).as_posix()


def _file_stamp(path: Path) -> str:
    try:
        return stamp_of(path.lstat())
    except OSError:
        return "-"


def stamp_of(found: os.stat_result) -> str:
    """Return when a file or folder was changed, its size and its number."""
    return f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"
