"""Calls of the record to the system, numbered, each of which can be made to fail.

In a process that is about to be thrown away, `Calls` stands in front of the functions by which files are changed: open
for writing, write, truncate, fsync, rename, link, unlink, mkdir, rmdir, flock, and each statement and commit of SQLite.
It counts those below one folder, and at one number does what a test asks for.
"""

import fcntl
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

Fault = Callable[[str, Callable[[], Any], tuple], Any]
"""Given the name of a call, what performs it, and its arguments; returns what the call returns."""

KILLED = 9
"""The exit code of a process that a fault ended."""

_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Calls:
    """Numbered calls below a folder.

    Parameters
    ----------
    root
        The folder.
    at
        The number at which `fault` is done, from 1; 0: never.
    fault
        What is done there, instead of the call.
    watch
        Told of every call before it is made: its name and its path.
    """

    def __init__(self, root: Path, at: int = 0, fault: Fault | None = None, watch: Callable | None = None) -> None:
        self.root, self.at, self.fault, self.watch = os.path.realpath(root), at, fault, watch
        self.names: list[str] = []
        self._open: dict[int, str] = {}

    def install(self) -> "Calls":
        """Take the place of the system's functions, for the rest of this process."""
        for name in ("rename", "replace", "link", "symlink", "unlink", "remove", "mkdir", "rmdir", "truncate"):
            setattr(os, name, self._with_path(name, getattr(os, name)))
        os.fsync = lambda descriptor: None  # which guards against the loss of power alone, and takes most of the time
        for name in ("write", "fsync", "ftruncate"):
            setattr(os, name, self._with_descriptor(name, getattr(os, name)))
        fcntl.flock = self._with_descriptor("flock", fcntl.flock)
        os.open = self._opening(os.open)
        os.close = self._closing(os.close)
        sqlite3.connect = self._connecting(sqlite3.connect)
        return self

    def _made(self, name: str, path: str, perform: Callable[[], Any], arguments: tuple) -> Any:
        self.names.append(name)
        if self.watch is not None:
            self.watch(name, path)
        if len(self.names) == self.at and self.fault is not None:
            return self.fault(name, perform, arguments)
        return perform()

    def _below(self, path: Any, folder: int | None = None) -> str | None:
        """Return the whole path if it is below the folder."""
        if isinstance(path, int):
            return self._open.get(path)
        text = os.fspath(path)
        text = text.decode() if isinstance(text, bytes) else text
        base = Path(self._open.get(folder, "/") if folder is not None else Path.cwd())
        whole = os.path.normpath(base / text)
        return whole if whole.startswith(self.root) else None

    def _with_path(self, name: str, original: Callable) -> Callable:
        def call(path: Any, *more: Any, **options: Any) -> Any:
            found = self._below(path, options.get("dir_fd"))
            if found is None:
                return original(path, *more, **options)
            return self._made(name, found, lambda: original(path, *more, **options), (path, *more))

        return call

    def _with_descriptor(self, name: str, original: Callable) -> Callable:
        def call(descriptor: Any, *more: Any) -> Any:
            number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
            if number not in self._open:
                return original(descriptor, *more)
            return self._made(name, self._open[number], lambda: original(descriptor, *more), (descriptor, *more))

        return call

    def _opening(self, original: Callable) -> Callable:
        def call(path: Any, flags: int, *more: Any, **options: Any) -> Any:
            found = self._below(path, options.get("dir_fd"))
            if found is None:
                return original(path, flags, *more, **options)
            perform = lambda: original(path, flags, *more, **options)  # noqa: E731 - as everywhere here
            descriptor = self._made("open", found, perform, (path,)) if flags & _CHANGES else perform()
            self._open[descriptor] = found
            return descriptor

        return call

    def _closing(self, original: Callable) -> Callable:
        def call(descriptor: int) -> None:
            self._open.pop(descriptor, None)
            original(descriptor)

        return call

    def _connecting(self, original: Callable) -> Callable:
        made = self._made

        class Connection(sqlite3.Connection):
            def execute(self, *arguments: Any) -> Any:
                return made("sql", "", lambda: sqlite3.Connection.execute(self, *arguments), arguments)

            def executemany(self, *arguments: Any) -> Any:
                return made("sql", "", lambda: sqlite3.Connection.executemany(self, *arguments), arguments)

            def __exit__(self, *arguments: Any) -> Any:
                return made("commit", "", lambda: sqlite3.Connection.__exit__(self, *arguments), arguments)

        def call(*arguments: Any, **options: Any) -> Any:
            return made("connect", "", lambda: original(*arguments, **options, factory=Connection), arguments)

        return call


def kill(name: str, perform: Callable[[], Any], arguments: tuple) -> Any:
    """End the process instead of making the call."""
    os._exit(KILLED)


def kill_halfway(name: str, perform: Callable[[], Any], arguments: tuple) -> Any:
    """End the process in the middle of a write; after any other call."""
    if name == "write":
        descriptor, data = arguments
        os.pwrite(descriptor, bytes(data)[: len(data) // 2], os.lseek(descriptor, 0, os.SEEK_CUR))
    else:
        perform()
    os._exit(KILLED)


def error(number: int) -> Fault:
    """Return a fault that makes the call fail with an error of the system."""

    def fail(name: str, perform: Callable[[], Any], arguments: tuple) -> Any:
        if name in ("sql", "commit", "connect"):
            raise sqlite3.OperationalError(f"disk I/O error ({os.strerror(number)})")
        raise OSError(number, os.strerror(number))

    return fail
