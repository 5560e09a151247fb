r"""Metrics as lines of JSON, each with a checksum over itself and everything before it.

A line is ``{"step":10,"loss":0.5,"crc":"1a2b3c4d"}``. With b_k the bytes of line k before ``,"crc"`` and c_0 a number
that belongs to the run,

.. math:: c_k = \operatorname{crc32}(b_k, c_{k-1}),

so that a line that was altered, lost, doubled, moved or taken from another run breaks the chain where it stands.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemoscope.runs.canonical import decode
from mnemoscope.runs.errors import Damaged
from mnemoscope.runs.files import read_bytes

__all__ = ["Position", "Verified", "chain_start", "read", "verified"]

_MARK = b',"crc":"'
_TAIL = len(_MARK) + 8 + len(b'"}')


@dataclass(frozen=True)
class Position:
    """A place between two lines: how many are before it, their bytes, and the checksum of them all."""

    lines: int
    size: int
    crc: int

    def to_dict(self) -> dict[str, int]:
        """Return it for a JSON document."""
        return {"lines": self.lines, "size": self.size, "crc": self.crc}


@dataclass(frozen=True)
class Verified:
    """How far a file's lines are whole, and what comes after: nothing, a torn last line, or something altered."""

    position: Position
    torn: bool
    altered: bool


def chain_start(key: str) -> Position:
    """Return the beginning of the chain of the run whose configuration has the checksum `key`."""
    return Position(0, 0, zlib.crc32(key.encode()))


def verified(data: bytes, start: Position) -> Verified:
    """Follow the chain through `data` and return how far it holds."""
    crc, begin, lines, good = start.crc, 0, 0, start.crc
    while (end := data.find(b"\n", begin)) >= 0:
        body, cut = data[begin:end], end - _TAIL
        crc = zlib.crc32(data[begin : max(cut, begin)], crc)
        if body[-_TAIL:] != b'%b%08x"}' % (_MARK, crc):
            break
        lines, begin, good = lines + 1, end + 1, crc
    position = Position(lines, begin, good)
    rest = data[begin:]
    # What is cut off in the middle of a line is the rest of a write; a whole bad line with others after it is not.
    torn = bool(rest) and b"\n" not in rest[:-1]
    return Verified(position, torn, bool(rest) and not torn)


def _records(data: bytes, position: Position) -> Iterator[dict[str, Any]]:
    """Give the records of the lines before `position`."""
    for line in data[: position.size].splitlines():
        yield decode(line[:-_TAIL] + b"}")


def read(path: Path, start: Position) -> tuple[list[dict[str, Any]], Verified]:
    """Return the records of a file as far as they are whole, and how far that is."""
    data = read_bytes(path) if os.path.lexists(path) else b""
    found = verified(data, start)
    try:
        return list(_records(data, found.position)), found
    except ValueError as error:
        raise Damaged(f"{str(path)!r} is damaged: {error}") from error
