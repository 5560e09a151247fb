r"""Metrics as lines of JSON, each with a checksum over itself and everything before it.

A line is ``{"step":10,"loss":0.5,"crc":"1a2b3c4d"}``. With b_k the bytes of line k before ``,"crc"`` and c_0 a number
that belongs to the run,

.. math:: c_k = \operatorname{crc32}(b_k, c_{k-1}),

so that a line that was altered, lost, doubled, moved or taken from another run breaks the chain where it stands.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemoscope.core.errors import UserError, expected, nearest
from mnemoscope.core.files import NO_FOLLOW, write_all, write_atomic, write_failure
from mnemoscope.runs.documents import decode, normal
from mnemoscope.runs.errors import Damaged, warn
from mnemoscope.runs.files import read_bytes

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Log", "Metrics", "Position", "Verified", "chain_start", "read", "verified"]

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


class Metrics(list[dict[str, Any]]):
    """Records of metrics in the order in which they came."""

    def names(self) -> list[str]:
        """Return the names that occur, in the order in which they came."""
        return list(dict.fromkeys(name for record in self for name in record))

    def column(self, name: str) -> np.ndarray:
        """Return one metric of all records, NaN where a record does not have it."""
        import numpy as np  # not above: a list of runs needs none of it

        if not any(name in record for record in self):
            known = self.names()
            near = nearest(name, known)
            hint = f"; did you mean {near!r}?" if near else ""
            raise UserError(f"a metric must be one of {', '.join(known) or '(none recorded)'}, got {name!r}{hint}")
        values = [record.get(name, np.nan) for record in self]
        return np.array([np.nan if value is None else value for value in values])


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


_FLUSH_SECONDS = 1.0
_RESERVED = "crc"


class Log:
    """The file that metrics are appended to. Only the process that holds the run's lock may have one.

    Parameters
    ----------
    path
        The file; it need not exist.
    start
        The beginning of the run's chain.
    """

    def __init__(self, path: Path, start: Position) -> None:
        self.path, self.start = path, start
        self._data = read_bytes(path) if os.path.lexists(path) else b""
        self._found = verified(self._data, start)
        self._descriptor: int | None = None
        self._buffer: list[bytes] = []
        self._flushed = 0.0
        self.cut(self._found.position)

    @property
    def position(self) -> Position:
        """The place after the last line, those that are not yet written included."""
        return Position(self._lines, self._size, self._crc)

    @property
    def written(self) -> Position:
        """The place after the last line that is in the file."""
        return self._written

    def holds(self, position: Position) -> bool:
        """Say whether the lines before `position` are there and whole. Only before the first append."""
        return verified(self._data[: position.size], self.start).position == position

    def cut(self, position: Position) -> None:
        """Go back to an earlier place: what comes after it is written anew. Only before the first append."""
        self._lines, self._size, self._crc = position.lines, position.size, position.crc
        self._written = position

    def kept(self) -> list[dict[str, Any]]:
        """Return the records of the lines that are there and not cut off. Only before the first append."""
        return list(_records(self._data, self._written))

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record. It is written with others: after a second, at a checkpoint, and at the end."""
        if _RESERVED in record or not record:
            raise expected("a record of metrics", f"a mapping with entries, none of them named {_RESERVED!r}", record)
        try:
            body = _encode(record)[:-1].encode()
        except (TypeError, ValueError):
            body = _encode(normal({key: _plain(value) for key, value in record.items()}, "metrics"))[:-1].encode()
        self._crc = zlib.crc32(body, self._crc)
        line = b'%b,"crc":"%08x"}\n' % (body, self._crc)
        self._lines += 1
        self._size += len(line)
        self._buffer.append(line)
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def flush(self, *, durable: bool = False) -> None:
        """Write what was appended; `durable`: so that it survives the loss of power. What fails can be tried again."""
        try:
            descriptor = self._opened()
            try:
                write_all(descriptor, b"".join(self._buffer))
            except OSError:
                self._rewind(descriptor)  # half a line helps nobody, and its space may help
                raise
            self._buffer.clear()
            self._written, self._flushed = self.position, time.monotonic()
            if durable:
                os.fsync(descriptor)
        except OSError as error:
            raise write_failure(self.path, error) from error

    def close(self) -> None:
        """Close the file without writing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _opened(self) -> int:
        if self._descriptor is None:
            self._set_aside()
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | NO_FOLLOW, 0o666)
            self._rewind(self._descriptor)
            self._data = b""
        return self._descriptor

    def _rewind(self, descriptor: int) -> None:
        os.ftruncate(descriptor, self._written.size)
        os.lseek(descriptor, self._written.size, os.SEEK_SET)

    def _set_aside(self) -> None:
        """Keep a copy of a file that was altered, before the part that is not whole is cut off."""
        if not self._found.altered:
            return
        names = (self.path.with_name(f"metrics.damaged-{number}.jsonl") for number in range(1, 10**6))
        copy = next(name for name in names if not os.path.lexists(name))
        write_atomic(copy, self._data)
        line = self._found.position.lines + 1
        warn(f"{str(self.path)!r} is altered at line {line}: it goes on from before it, and {copy.name!r} is a copy")


def _plain(value: Any) -> Any:
    """Return a number of NumPy or torch as Python's."""
    item = getattr(value, "item", None)
    if item is None:
        return value
    try:
        return item()
    except (ValueError, RuntimeError):
        raise UserError(f"a metric must be a number, got an array of shape {tuple(value.shape)}") from None


def _default(value: Any) -> Any:
    plain = _plain(value)
    if plain is value:
        raise TypeError
    return plain


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_default).encode
