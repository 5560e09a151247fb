"""JSON documents in one form: strict, exact for every float, each with its format and its own checksum."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import NO_FOLLOW, Unwritable, write_all, write_atomic
from mnemoscope.runs.errors import Damaged
from mnemoscope.runs.files import read_bytes

__all__ = [
    "FORMAT",
    "Newer",
    "canonical",
    "checksum",
    "decode",
    "digest",
    "normal",
    "read_document",
    "returned",
    "write_document",
]

MARK = "$float"
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DEPTH = 100
_compact = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True).encode


def canonical(value: Any, name: str = "value") -> str:
    """Return the canonical JSON of a value: sorted keys, no spaces, ASCII; see `normal` for what it may hold."""
    return _compact(normal(value, name))


def digest(text: str | bytes) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def normal(value: Any, name: str = "value", depth: int = 0) -> Any:
    """Return a value as strict JSON holds it, or raise the one line that says which part is not JSON.

    Text, whole numbers, floats, truth values, None, lists, tuples (which become lists) and mappings from text.
    Floats that JSON has no word for become ``{"$float": "nan"}``, ``"inf"`` or ``"-inf"``; `decode` undoes it.
    """
    if value is None or isinstance(value, bool | str):
        return _text(value, name) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        number = float(value)
        return number if math.isfinite(number) else {MARK: str(number)}
    if depth > _DEPTH:
        raise UserError(f"{name[:60]}... must be JSON of at most {_DEPTH} levels")
    if isinstance(value, list | tuple):
        return [normal(entry, f"{name}[{number}]", depth + 1) for number, entry in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, name): normal(entry, f"{name}.{key}", depth + 1) for key, entry in value.items()}
    raise UserError(f"{_short(name)} must be JSON (text, numbers, lists, mappings), got a {type(value).__name__}")


def returned(value: Any, name: str = "value") -> Any:
    """Return a value as it comes back when it was written and read."""
    return _restore(normal(value, name))


def decode(text: str | bytes) -> Any:
    """Return the value of JSON that `canonical` or a metrics line wrote. Raises ValueError on anything else."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    mark = MARK if isinstance(text, str) else MARK.encode()
    return _restore(value) if mark in text else value  # type: ignore[operator]


def _restore(value: Any) -> Any:
    if isinstance(value, list):
        return [_restore(entry) for entry in value]
    if isinstance(value, dict):
        if len(value) == 1 and value.get(MARK).__class__ is str and value[MARK] in _SPECIAL:
            return _SPECIAL[value[MARK]]
        return {key: _restore(entry) for key, entry in value.items()}
    return value


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _key(key: Any, name: str) -> str:
    if not isinstance(key, str):
        raise UserError(f"the keys of {_short(name)} must be text, got {key!r}")
    return _text(key, name)


def _text(value: str, name: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UserError(f"{_short(name)} must be text in Unicode, got a lone surrogate") from None
    return str(value)


def _short(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= 80 else line[:77] + "..."


FORMAT = 1
"""The version of everything in a run's folder."""
_CHECKSUM = "sha256"


class Newer(UserError):
    """A run was written by a newer version, whose format this one does not know."""


def write_document(
    path: Path, body: dict[str, Any], *, durable: bool = True, named_durably: bool = True, size: int = 0
) -> str:
    """Write a document atomically and return its checksum, the SHA-256 of its canonical JSON.

    Parameters
    ----------
    path
        Where.
    body
        What: JSON.
    durable, named_durably
        See `write_atomic`.
    size
        Fill up with spaces to this many bytes. A document that fits into the place of the one before it can be
        written over it when the disk is too full for a second one; that is tried then, and only then.
    """
    found = checksum(body, path.name)
    body = {"format": FORMAT, **normal(body, path.name), _CHECKSUM: found}
    data = (json.dumps(body, indent=1, allow_nan=False)).encode().ljust(size - 1) + b"\n"
    try:
        write_atomic(path, data, durable=durable, named_durably=named_durably)
    except Unwritable:
        if not size or not _overwrite(path, data):
            raise
    return found


def checksum(body: dict[str, Any], name: str = "document") -> str:
    """Return the checksum of a document: the SHA-256 of its canonical JSON, with the format."""
    return digest(canonical({"format": FORMAT, **normal(body, name)}))


def _overwrite(path: Path, data: bytes) -> bool:
    """Write over a file that is at least as large: this asks for no space. Say whether it was possible."""
    try:
        descriptor = os.open(path, os.O_WRONLY | NO_FOLLOW)
    except OSError:
        return False
    try:
        room = os.fstat(descriptor).st_size
        if room < len(data):
            return False
        write_all(descriptor, data.ljust(room))
        os.fsync(descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def read_document(path: Path) -> tuple[dict[str, Any], str]:
    """Return a document and its checksum, or raise the one line that says what is wrong with it."""
    try:
        body = decode(read_bytes(path))
    except (ValueError, UnicodeDecodeError) as error:
        if isinstance(error, UserError):
            raise
        raise Damaged(f"{str(path)!r} is damaged: it is not JSON") from None
    version = body.get("format") if isinstance(body, dict) else None
    if not isinstance(body, dict) or type(version) is not int:
        raise Damaged(f"{str(path)!r} is damaged: it has no format")
    if version > FORMAT:
        raise Newer(
            f"{str(path)!r} was written by a newer Mnemoscope: its format is {version}, this version reads up to "
            f"{FORMAT}; upgrade to open it"
        )
    recorded = body.pop(_CHECKSUM, None)
    if recorded != digest(canonical(body)):
        raise Damaged(f"{str(path)!r} is damaged: it does not match its checksum")
    del body["format"]
    return body, recorded
