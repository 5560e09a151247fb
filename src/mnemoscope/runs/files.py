"""Reading of regular files in a record; no link in their place is followed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from mnemoscope.core.files import NO_FOLLOW
from mnemoscope.runs.errors import read_failure

__all__ = ["read_bytes"]

_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a pipe that somebody put there must not hang


def read_bytes(path: Path) -> bytes:
    """Return what a regular file holds."""
    try:
        descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW | _NO_WAIT)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(0, "it is not a regular file")
            return stream.read()
    except OSError as error:
        raise read_failure(path, error) from error
