"""Results beside the page: written after every piece of work, and taken up again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import write_atomic

__all__ = ["PROGRESS", "Store", "beside"]

PROGRESS = "mnemoscope.progress/1"
"""The version of the file."""

Unit = dict[str, Any]


def beside(page: str | os.PathLike[str]) -> Path:
    """Return where the results of a page are kept: ``out.html`` -> ``out.profile.json``."""
    path = Path(page)
    return path.with_name(f"{path.stem}.profile.json")


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
        document = {"schema": PROGRESS, "networks": self._now}
        write_atomic(self.path, json.dumps(document, allow_nan=False).encode(), durable=False)

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
