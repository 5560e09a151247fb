"""Lock of one process on a run. The system holds it, so that a killed process leaves none behind."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from filelock import FileLock, Timeout, lock_descriptor

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import NO_FOLLOW, write_all, write_failure
from mnemoscope.runs.errors import warn

__all__ = ["Held", "Lock", "holder", "patience", "patient"]

_POLL = 0.02
_MOMENT = 0.2
_LEASE = 150.0
"""Seconds for which the lock of a machine that is gone may outlive it on a network file system: 90 on NFS."""

_PATIENCE: ContextVar[float] = ContextVar("patience", default=_MOMENT)
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


def patience() -> float:
    """Return how many seconds to wait for a run that another process has: a moment, unless told otherwise."""
    return _PATIENCE.get()


@contextlib.contextmanager
def patient(seconds: float = _LEASE) -> Iterator[None]:
    """Wait for runs that another process has, since it may be one that has just died, on a machine that is gone."""
    before = _PATIENCE.set(seconds)
    try:
        yield
    finally:
        _PATIENCE.reset(before)


class Held(UserError):
    """Another process has the lock."""

    def __init__(self, owner: str) -> None:
        super().__init__(f"held by {owner}")
        self.owner = owner


class Lock:
    """A lock on a file, in which its owner is named.

    A child made by fork does not keep it when its parent is killed, and two holders within one process are kept apart.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: FileLock | None = None

    def acquire(self, patience: float = _MOMENT) -> None:
        """Take the lock, or raise `Held` when somebody else still has it after `patience` seconds.

        A moment of patience is always needed, since `holder` takes the lock for an instant to see whether it can.
        """
        lock = FileLock(self.path, thread_local=False, fallback_to_soft=False, poll_interval=_POLL)
        try:
            lock.acquire(timeout=patience)
        except Timeout:
            raise Held(_owner(self.path)) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise write_failure(self.path, error) from error
            warn("the file system has no locks: that two processes write one run would not be noticed")
            return
        self._lock = lock
        with contextlib.suppress(OSError):  # the name of the owner is a courtesy; a full disk is told of elsewhere
            descriptor = os.open(self.path, os.O_WRONLY | os.O_TRUNC | NO_FOLLOW)
            try:
                write_all(descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode())
            finally:
                os.close(descriptor)

    def release(self) -> None:
        """Give the lock back. The file stays: removing it would let two in."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None  # not at the end of the interpreter, when half of it is gone


def holder(path: Path) -> str | None:
    """Return who has the lock on a file (``"process 1234"``), or None."""
    try:
        descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        # Closing the descriptor gives back what this takes.
        return None if not regular or lock_descriptor(descriptor, blocking=False) else _owner(path)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _owner(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW)
        try:
            words = os.read(descriptor, 300).decode("ascii", "replace").split()
        finally:
            os.close(descriptor)
    except OSError:
        words = []
    if len(words) != 2 or not words[0].isdigit():
        return "another process"
    process, host = int(words[0]), "" if words[1] == socket.gethostname() else words[1]
    own = " (this one)" if process == os.getpid() and not host else ""
    return f"process {process}{own}" + (f" on {host}" if host else "")
