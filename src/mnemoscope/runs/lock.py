"""One process at a time. The system holds the lock, so that a killed process leaves none behind."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
import threading
import time
from pathlib import Path

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import NO_FOLLOW, write_all, write_failure
from mnemoscope.runs.errors import warn

if sys.platform == "win32":
    import msvcrt
else:
    import errno
    import fcntl

__all__ = ["Held", "Lock", "holder"]

_POLL = 0.02
_ours: dict[tuple[int, int], int] = {}
_guard = threading.Lock()


class Held(UserError):
    """Another process has the lock."""

    def __init__(self, owner: str) -> None:
        super().__init__(f"held by {owner}")
        self.owner = owner


class Lock:
    """A lock on a file.

    On POSIX it is a record lock, which belongs to the process: a child made by fork does not keep it when its parent
    is killed. Within one process a table keeps two holders apart, since the system would let both in.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._key: tuple[int, int] | None = None

    def acquire(self, patience: float = 0.2) -> None:
        """Take the lock, or raise `Held` when somebody else still has it after `patience` seconds.

        A moment of patience is always needed, since `holder` takes the lock for an instant to see whether it can.
        """
        end = time.monotonic() + patience
        while True:
            owner = self._attempt()
            if owner is None:
                return
            if time.monotonic() >= end:
                raise Held(owner)
            time.sleep(_POLL)

    def _attempt(self) -> str | None:
        """Try once; return who has the lock, or None when it is ours now."""
        with _guard:
            if _is_ours(self.path):
                return _named(os.getpid(), "")
            try:
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o666)
            except OSError as error:
                raise write_failure(self.path, error) from error
            if not _take(descriptor):
                owner = _owner(descriptor)
                os.close(descriptor)
                return owner
            key = _key(os.fstat(descriptor))
            if _key_of(self.path) != key:  # removed by a clean-up between opening and locking
                os.close(descriptor)
                return "a process that is cleaning up"
            self._descriptor, self._key = descriptor, key
            _ours[key] = os.getpid()
        with contextlib.suppress(OSError):  # the name of the owner is a courtesy; a full disk is told of elsewhere
            os.ftruncate(descriptor, 0)
            write_all(descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode())
        return None

    def release(self) -> None:
        """Give the lock back. The file stays: removing it would let two in."""
        with _guard:
            if self._descriptor is not None and self._key is not None:
                _ours.pop(self._key, None)
                os.close(self._descriptor)
                self._descriptor = None


def holder(path: Path) -> str | None:
    """Return who has the lock on a file (``"process 1234"``), or None."""
    with _guard:
        if _is_ours(path):
            return _named(os.getpid(), "")
        try:
            descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW | getattr(os, "O_NONBLOCK", 0))
        except OSError:
            return None
        try:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            return None if not regular or _take(descriptor, shared=True) else _owner(descriptor)
        finally:
            os.close(descriptor)


def _is_ours(path: Path) -> bool:
    # Closing any descriptor of the file would give up the process's lock: look at the table before opening it.
    key = _key_of(path)
    return key is not None and _ours.get(key) == os.getpid()


def _key_of(path: Path) -> tuple[int, int] | None:
    try:
        return _key(path.lstat())
    except OSError:
        return None


def _key(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _take(descriptor: int, *, shared: bool = False) -> bool:
    if sys.platform == "win32":
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # beyond the text: a locked byte cannot be read there
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True
    try:
        fcntl.lockf(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        if not shared:
            warn("the file system has no locks: that two processes write one run would not be noticed")
    return True


def _owner(descriptor: int) -> str:
    try:
        words = os.pread(descriptor, 300, 0).decode("ascii", "replace").split()
    except OSError:
        words = []
    if len(words) != 2 or not words[0].isdigit():
        return "another process"
    return _named(int(words[0]), "" if words[1] == socket.gethostname() else words[1])


def _named(process: int, host: str) -> str:
    own = " (this one)" if process == os.getpid() and not host else ""
    return f"process {process}{own}" + (f" on {host}" if host else "")
