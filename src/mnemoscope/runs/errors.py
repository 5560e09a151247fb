"""What can be wrong with a record, in one line each."""

from __future__ import annotations

import errno
import warnings
from pathlib import Path

from mnemoscope.core.errors import UserError

__all__ = ["Damaged", "RecordWarning", "Unwritable", "read_failure", "warn", "write_failure"]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class Damaged(UserError):
    """A file of a run is cut, altered or missing. Nothing was deleted."""


class Unwritable(UserError):
    """A run cannot be written: the disk is full, or the folder does not allow it. What was written before is whole."""


class RecordWarning(UserWarning):
    """Something in a record was damaged and could be made good without losing a number."""


def warn(line: str) -> None:
    """Warn in one line."""
    warnings.warn(" ".join(line.split()), RecordWarning, stacklevel=3)


def write_failure(path: Path, error: OSError) -> Unwritable:
    """Return the line for a write to `path` that failed."""
    if error.errno in _FULL:
        reason = "the disk is full" if error.errno == errno.ENOSPC else "the limit on its size is reached"
        advice = "free some space and resume"
    elif error.errno in _FORBIDDEN:
        reason, advice = "writing is not allowed there", "allow it, or name another folder"
    else:
        reason, advice = str(error.strerror or error), "nothing written before is lost"
    return Unwritable(f"{str(path)!r} cannot be written: {reason}; {advice}")


def read_failure(path: Path, error: OSError) -> Damaged:
    """Return the line for a read of `path` that failed."""
    reason = "it is missing" if error.errno == errno.ENOENT else str(error.strerror or error)
    if error.errno == errno.ELOOP:
        reason = "it is a symbolic link, which is not followed"
    return Damaged(f"{str(path)!r} cannot be read: {reason}")
