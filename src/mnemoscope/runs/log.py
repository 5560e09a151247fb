"""Appending to the metrics of a run; their format is that of `mnemoscope.runs.metrics`."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError, expected
from mnemoscope.core.files import NO_FOLLOW, write_all, write_atomic, write_failure
from mnemoscope.runs.canonical import normal
from mnemoscope.runs.errors import warn
from mnemoscope.runs.files import read_bytes
from mnemoscope.runs.metrics import Position, verified

__all__ = ["Log"]

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
