"""Errors of a record, in one line each."""

from __future__ import annotations

import errno
import warnings
from pathlib import Path

from mnemoscope.core.errors import MnemoscopeError, RecordWarning, UserError

__all__ = ["Damaged", "InUse", "OutOfBudget", "RecordWarning", "read_failure", "warn"]


class Damaged(UserError):
    """A file of a run is cut, altered or missing. Nothing was deleted."""


class InUse(UserError):
    """Another process writes the run."""


class OutOfBudget(MnemoscopeError):
    """The time or the steps that a run was given are used up; opened again with more, it goes on."""


def warn(line: str) -> None:
    """Warn in one line."""
    warnings.warn(" ".join(line.split()), RecordWarning, stacklevel=3)


def read_failure(path: Path, error: OSError) -> Damaged:
    """Return the line for a read of `path` that failed."""
    reason = "it is missing" if error.errno == errno.ENOENT else str(error.strerror or error)
    if error.errno == errno.ELOOP:
        reason = "it is a symbolic link, which is not followed"
    return Damaged(f"{str(path)!r} cannot be read: {reason}")
