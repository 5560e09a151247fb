"""A JSON document that knows its format and its own checksum."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import NO_FOLLOW, Unwritable, write_all, write_atomic
from mnemoscope.runs.canonical import canonical, decode, digest, normal
from mnemoscope.runs.errors import Damaged
from mnemoscope.runs.files import read_bytes

__all__ = ["FORMAT", "Newer", "read_document", "write_document"]

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
    body = {"format": FORMAT, **normal(body, path.name)}
    checksum = digest(canonical(body))
    data = (json.dumps(body | {_CHECKSUM: checksum}, indent=1, allow_nan=False)).encode().ljust(size - 1) + b"\n"
    try:
        write_atomic(path, data, durable=durable, named_durably=named_durably)
    except Unwritable:
        if not size or not _overwrite(path, data):
            raise
    return checksum


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
    checksum = body.pop(_CHECKSUM, None)
    if checksum != digest(canonical(body)):
        raise Damaged(f"{str(path)!r} is damaged: it does not match its checksum")
    del body["format"]
    return body, checksum
