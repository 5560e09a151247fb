"""Results beside the page: written after every piece of work, and taken up again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError

__all__ = ["PROGRESS", "Store", "beside", "check_writable"]

PROGRESS = "mnemoscope.progress/1"
"""The version of the file."""

Unit = dict[str, Any]


def beside(page: str | os.PathLike[str]) -> Path:
    """Return where the results of a page are kept: ``out.html`` -> ``out.profile.json``."""
    path = Path(page)
    return path.with_name(f"{path.stem}.profile.json")


def check_writable(path: Path) -> None:
    """Raise unless a file can be written there; asked before the work, not after it."""
    if path.is_dir():
        raise UserError(f"{str(path)!r} cannot be written: it is a folder")
    if not path.parent.is_dir():
        raise UserError(f"{str(path)!r} cannot be written: there is no folder {str(path.parent)!r}")
    probe = path.with_name(f".{path.name}.{os.getpid()}.probe")
    try:
        probe.touch()
        probe.unlink()
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError("it is read-only")
    except OSError as error:
        raise UserError(f"{str(path)!r} cannot be written: {error.strerror or error}") from error


class Store:
    """What has been measured so far: for every network (by its fingerprint), part and seed.

    Parameters
    ----------
    path
        The file; None: nothing is kept.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.taken_up = 0
        self._known = {} if path is None else _read(path)
        self._now: dict[str, dict[str, dict[str, Unit]]] = {}

    @property
    def folder(self) -> Path | None:
        """Where parts that take long keep what they have so far; None: nowhere."""
        return None if self.path is None else self.path.with_suffix("").with_suffix(".training")

    def get(self, fingerprint: str, part: str, seed: int) -> Unit | None:
        """Return what is known of a part at a seed; it is then kept."""
        fresh = self._now.get(fingerprint, {}).get(part, {}).get(str(seed))
        if fresh is not None:
            return fresh
        found: Unit | None = self._known.get(fingerprint, {}).get(part, {}).get(str(seed))
        if found is not None:
            self.taken_up += 1
            self._file(fingerprint, part, seed, found)
        return found

    def put(self, fingerprint: str, part: str, seed: int, unit: Unit) -> None:
        """Keep one more result, on disk at once."""
        self._file(fingerprint, part, seed, unit)
        self.save()

    def save(self) -> None:
        """Write the file: whoever reads it sees the old one or the whole new one."""
        if self.path is None:
            return
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}.partial")
        try:
            partial.write_text(json.dumps({"schema": PROGRESS, "networks": self._now}, allow_nan=False))
            partial.replace(self.path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise UserError(f"{str(self.path)!r} cannot be written: {error.strerror or error}") from error

    def _file(self, fingerprint: str, part: str, seed: int, unit: Unit) -> None:
        self._now.setdefault(fingerprint, {}).setdefault(part, {})[str(seed)] = unit


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(
            f"{str(path)!r} is in the way of the results: {error}; move it, or name another page"
        ) from error
    if not isinstance(document, dict) or document.get("schema") != PROGRESS:
        raise UserError(f"{str(path)!r} is in the way of the results: it is not a file of them; move it")
    found: dict[str, Any] = document["networks"]
    return found
