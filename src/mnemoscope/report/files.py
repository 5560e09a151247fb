"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from mnemoscope.core.errors import UserError

__all__ = ["writable", "write_whole"]


def writable(path: str | os.PathLike[str]) -> Path:
    """Return a path that a file can be written to, or raise one line: asked before the work, not after it."""
    file = Path(path)
    if file.is_dir():
        raise UserError(f"{str(file)!r} cannot be written: it is a folder")
    if not file.parent.is_dir():
        raise UserError(f"{str(file)!r} cannot be written: there is no folder {str(file.parent)!r}")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise UserError(f"{str(file)!r} cannot be written: the folder {str(file.parent)!r} is read-only")
    return file


def write_whole(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file beside its place and move it there, so that nobody ever reads half of it."""
    file = writable(path)
    partial: Path | None = None
    try:
        # A name of its own: two that write the same page do not write into each other's file.
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as stream:
            partial = Path(stream.name)
            stream.write(content)
        partial.chmod(0o666 & ~_umask())  # a temporary file is private, a page is like any other file
        partial.replace(file)
    except OSError as error:
        if partial is not None:
            partial.unlink(missing_ok=True)
        raise UserError(f"{str(file)!r} cannot be written: {error.strerror or error}") from error
    return file


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
