"""Files that are either the old or the new whole, whatever happens between; and that no link leads elsewhere."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from mnemoscope.core.errors import UserError
from mnemoscope.runs.errors import read_failure, write_failure

__all__ = ["NO_FOLLOW", "TEMPORARY", "make_folder", "read_bytes", "remove", "sync_folder", "write_all", "write_atomic"]

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
TEMPORARY = ".tmp"
"""How the names of half-written files end; one that a killed process left means nothing."""

_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a pipe that somebody put there must not hang


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


def write_atomic(path: Path, data: bytes, *, durable: bool = True, named_durably: bool = True) -> None:
    """Write a file whose name always means a whole: a temporary one beside it, fsync, rename, fsync of the folder.

    Parameters
    ----------
    path
        Where; what was there is replaced, also a link, which is not followed.
    data
        What it holds afterwards.
    durable
        Whether it has to survive the loss of power too, not only the end of the process.
    named_durably
        Whether its name has to as well; False when another file in the same folder follows at once.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o666)
        try:
            write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
        if durable and named_durably:
            sync_folder(path.parent)
    except OSError as error:
        remove(temporary)
        raise write_failure(path, error) from error
    except BaseException:
        remove(temporary)
        raise


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
