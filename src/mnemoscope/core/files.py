"""Files that are either the old or the new whole, whatever happens between; the one way this package writes them."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path
from typing import BinaryIO

from mnemoscope.core.errors import UserError
from mnemoscope.core.memory import allowance, human

__all__ = [
    "NO_FOLLOW",
    "TEMPORARY",
    "Unwritable",
    "is_ours",
    "make_folder",
    "read_regular",
    "remove",
    "sync_folder",
    "writable",
    "write_all",
    "write_atomic",
    "write_failure",
]

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
"""Flags of `os.open` for a file in whose place no link is followed and which no child process inherits."""

TEMPORARY = ".tmp"
"""Ending of the names of half-written files; one that a killed process left means nothing."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SIGNED = 2**16
"""Bytes at either end of a file in which the name of this package is looked for."""

_LARGE = 2**26
"""Bytes of a file below which nobody asks how much memory there is."""

_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class Unwritable(UserError):
    """A file cannot be written: the disk is full, or the folder does not allow it. What was there is whole."""


def write_failure(path: Path, error: OSError) -> Unwritable:
    """Build the error of a write to `path` that failed."""
    if error.errno in _FULL:
        full = "the disk is full" if error.errno == errno.ENOSPC else "the limit on its size is reached"
        reason = f"{full}; free some space and try again"
    elif error.errno in _FORBIDDEN:
        reason = "writing is not allowed there; allow it, or name another folder"
    else:
        reason = str(error.strerror or error)
    return Unwritable(f"{str(path)!r} cannot be written: {reason}")


def writable(path: str | os.PathLike[str]) -> Path:
    """Return a path that a file can be written to, or raise one line: asked before the work, not after it."""
    file = Path(path)
    if file.is_dir():
        raise Unwritable(f"{str(file)!r} cannot be written: it is a folder")
    if not file.parent.is_dir():
        raise Unwritable(f"{str(file)!r} cannot be written: there is no folder {str(file.parent)!r}")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise Unwritable(f"{str(file)!r} cannot be written: the folder {str(file.parent)!r} is read-only")
    if file.exists() and not os.access(file, os.W_OK):  # a rename would replace it all the same
        raise Unwritable(f"{str(file)!r} cannot be written: it is read-only")
    return file


def is_ours(path: str | os.PathLike[str]) -> bool:
    """Say whether this package wrote a file: its name stands near the beginning or the end of all that it writes."""
    try:
        with Path(path).open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            ends = [0, max(0, size - _SIGNED)]
            return any(b"mnemoscope" in _read_at(stream, place).lower() for place in ends)
    except OSError:
        return False


def _read_at(stream: BinaryIO, place: int) -> bytes:
    stream.seek(place)
    return stream.read(_SIGNED)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, unless it is there. A link in its place is refused."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UserError(f"{str(path)!r} must be a folder, and is a file") from None
    except OSError as error:
        raise write_failure(path, error) from error
    if path.is_symlink():
        raise UserError(f"{str(path)!r} must be a folder, and is a symbolic link, which is not followed")


def read_regular(path: str | os.PathLike[str], limit: int | None = None, *, follow: bool = True) -> bytes:
    """Return what a regular file holds, or raise OSError: nothing hangs on a pipe, nor is more read than there is room.

    Parameters
    ----------
    path
        Place of the file.
    limit
        Bytes that it may have; None: what the memory allows.
    follow
        Whether a link in its place is followed.
    """
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags if follow else flags | NO_FOLLOW)
    found = os.fstat(descriptor)
    if stat.S_ISDIR(found.st_mode):
        os.close(descriptor)
        raise OSError(errno.EISDIR, "it is a folder")
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        most = limit if limit is not None else _LARGE if found.st_size <= _LARGE else allowance()
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"it has {human(found.st_size)}, and at most {human(most)} are read")
        return stream.read(most)


def write_atomic(
    path: str | os.PathLike[str], data: bytes, *, durable: bool = True, named_durably: bool = True
) -> Path:
    """Write a file whose name always means a whole: a temporary one beside it, fsync, rename, fsync of the folder.

    Parameters
    ----------
    path
        Place of the file; what was there is replaced, also a link, which is not followed.
    data
        Content of the file afterwards.
    durable
        Whether it has to survive the loss of power too, not only the end of the process.
    named_durably
        Whether its name has to as well; False when another file in the same folder follows at once.
    """
    file = Path(path)
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o666)
        try:
            write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(file)
        if durable and named_durably:
            sync_folder(file.parent)
    except OSError as error:
        remove(temporary)
        raise write_failure(file, error) from error
    except BaseException:
        remove(temporary)
        raise
    return file


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes: one call may write fewer."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(path: Path) -> None:
    """Make the names in a folder survive the loss of power, where the system has a way to."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file or a link; that it is gone already is fine, and so is that it cannot be removed."""
    with contextlib.suppress(OSError):
        path.unlink()
