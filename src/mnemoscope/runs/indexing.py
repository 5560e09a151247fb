"""Index of runs: one SQLite file beside them, which can always be made again from their folders.

The folders are the truth. Before it is read, the index is brought up to date with them; a damaged or missing one is
made anew, and where no file can be had (a network file system, a folder that may not be written) one in memory serves.

There are two ways to bring it up to date. The thorough one looks at every file of every run, and at every row. The
quick one takes one look at each folder among the runs: a run whose folder has the time that its row names, and which
nobody was writing, is as it was, since every document of a run is renamed into its place. What only the thorough one
sees, a file that was altered in place, is seen by the quick one for the rows that are shown (`look_again`).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.runs.documents import Newer, canonical, digest
from mnemoscope.runs.errors import warn
from mnemoscope.runs.files import network_file_system
from mnemoscope.runs.folders import Found, identity, label, parent_of, root, scan, spec_hash, stamp_of
from mnemoscope.runs.lock import Held, Lock
from mnemoscope.runs.record import Record, read_record

__all__ = ["COLUMNS", "FILE", "checksum", "current", "index", "left_to_driver", "look_again", "note", "rebuild", "row"]

FILE = "index.sqlite"
_LOCK = ".index.lock"
_VERSION = 2
_BUSY = 10.0


def index(where: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """Return the rows of all runs in a folder (see `root`), the newest last."""
    with contextlib.closing(current(root(where))) as connection:
        cursor = connection.execute("SELECT * FROM runs ORDER BY created, id")
        return [dict(zip(COLUMNS, values, strict=True)) for values in cursor]


def rebuild(where: str | os.PathLike[str] | None = None) -> int:
    """Throw the index away and make it again from the folders; return the number of runs."""
    base = root(where)
    if base.is_dir():
        with _writing(base):
            _remove(base)
    return len(index(base))


_LEFT: ContextVar[bool] = ContextVar("index", default=False)


@contextlib.contextmanager
def left_to_driver() -> Iterator[None]:
    """Write no row: many machines work on runs of one folder, and the one that drives them alone writes the index."""
    before = _LEFT.set(True)
    try:
        yield
    finally:
        _LEFT.reset(before)


def note(base: Path, folder: Path) -> None:
    """Write one run's row, if that is possible at once: whoever reads the index brings it up to date anyway."""
    if _LEFT.get() or network_file_system(base):
        return
    with contextlib.suppress(sqlite3.Error, UserError, OSError), _writing(base, patience=1.0):
        connection = _connect(base / FILE)
        with contextlib.closing(connection), connection:
            _put(connection, Found(identity(folder, base), folder, parent_of(folder, base)))


def look_again(connection: sqlite3.Connection, base: Path, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether rows are as their runs are now; those that are not are written anew."""
    found = [Found(one["id"], base / one["id"], one["parent"]) for one in rows]
    changed = [one for one, old in zip(found, rows, strict=True) if one.signature() != old["signature"]]
    with connection:
        for one in changed:
            _put(connection, one)
    return not changed


def current(base: Path, *, thorough: bool = True) -> sqlite3.Connection:
    """Return a connection to an index that is up to date: that beside the runs, or one in memory."""
    if not base.is_dir():
        return _in_memory(base)
    kind = network_file_system(base)
    if kind:
        warn(f"the index of {str(base)!r} is in memory, since SQLite's WAL does not work on a file system of {kind}")
        return _in_memory(base)
    try:
        with _writing(base):
            return _on_disk(base, thorough)
    except (sqlite3.Error, UserError, OSError) as error:
        warn(f"the index of {str(base)!r} is in memory, since its file cannot be written: {error}")
        return _in_memory(base)


def _in_memory(base: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    _prepare(connection)
    _update(connection, base)
    return connection


def _on_disk(base: Path, thorough: bool) -> sqlite3.Connection:
    path = base / FILE
    if not _is_sound(path, thorough):
        if os.path.lexists(path):
            warn(f"{str(path)!r} was damaged or of another version, and is made again from the folders")
        _remove(base)
    connection = _connect(path)
    try:
        (_update if thorough else _update_quickly)(connection, base)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_sound(path: Path, thorough: bool) -> bool:
    """Say whether the index is there and of this version; thoroughly, whether it is consistent and every row whole."""
    if not path.is_file() or path.is_symlink():
        return False
    try:
        with contextlib.closing(_connect(path)) as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                return False
            if not thorough:
                return True
            if connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
                return False
            found = [dict(zip(COLUMNS, values, strict=True)) for values in connection.execute("SELECT * FROM runs")]
        return all(one["checksum"] == checksum(one) for one in found)
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise
        return False
    except (sqlite3.Error, UserError, ValueError, UnicodeDecodeError):
        return False


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY)
    try:
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise sqlite3.OperationalError(f"its journal is {mode!r} instead of WAL")
        connection.execute("PRAGMA synchronous = OFF")  # what the loss of power damages is made again
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        with connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS runs ({columns})")
            # So that neither question reads the rows themselves, most of which are configurations.
            connection.execute("CREATE INDEX IF NOT EXISTS changes ON runs (id, parent, stamp, status)")
            connection.execute("CREATE INDEX IF NOT EXISTS times ON runs (parent, created, id)")
            connection.execute(f"PRAGMA user_version = {_VERSION}")


def _update(connection: sqlite3.Connection, base: Path) -> None:
    """Bring the rows up to date with the folders."""
    known = dict(connection.execute("SELECT id, signature FROM runs"))
    found = {one.id: one for one in scan(base)}
    with connection:
        connection.executemany("DELETE FROM runs WHERE id = ?", [(gone,) for gone in known if gone not in found])
        for one in found.values():
            if known.get(one.id) != one.signature():
                _put(connection, one)


def _update_quickly(connection: sqlite3.Connection, base: Path) -> None:
    """Bring the rows up to date with those folders whose times say that something in them has changed."""
    rows = connection.execute("SELECT id, parent, stamp, status FROM runs INDEXED BY changes").fetchall()
    known = {name: (parent, stamp) for name, parent, stamp, status in rows if status != "running"}
    same: set[str] = set()

    def is_same(name: str, parent: str | None, entry: os.DirEntry[str]) -> bool:
        if name in known and known[name] == (parent, stamp_of(entry.stat(follow_symlinks=False))):
            same.add(name)
        return name in same

    changed = list(scan(base, is_same))
    there = same | {one.id for one in changed}
    # Nobody looked into the folders that are the same: what is within them stays.
    gone = [name for name, *_ in rows if name not in there and not any(above in same for above in _above(name))]
    with connection:
        connection.executemany("DELETE FROM runs WHERE id = ?", [(one,) for one in gone])
        for one in changed:
            _put(connection, one)


def _above(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _put(connection: sqlite3.Connection, found: Found) -> None:
    connection.execute(_UPSERT, tuple(row(found).values()))


def _remove(base: Path) -> None:
    # The log of a file that is gone must not be taken for that of the next.
    for ending in ("-wal", "-shm", ""):
        (base / f"{FILE}{ending}").unlink(missing_ok=True)


@contextlib.contextmanager
def _writing(base: Path, patience: float = _BUSY) -> Iterator[None]:
    lock = Lock(base / _LOCK)
    try:
        lock.acquire(patience)
    except Held as held:
        raise UserError(f"the index is {held}") from None
    try:
        yield
    finally:
        lock.release()


COLUMNS = {
    "id": "TEXT PRIMARY KEY",
    "parent": "TEXT",
    "kind": "TEXT",
    "task": "TEXT",
    "network": "TEXT",
    "seed": "INTEGER",
    "status": "TEXT",
    "reason": "TEXT",
    "step": "INTEGER",
    "score": "REAL",
    "loss": "REAL",
    "lines": "INTEGER",
    "created": "TEXT",
    "updated": "TEXT",
    "hash": "TEXT",
    "spec": "TEXT",
    "summary": "TEXT",
    "last": "TEXT",
    "environment": "TEXT",
    "problems": "TEXT",
    "signature": "TEXT",
    "stamp": "TEXT",
    "checksum": "TEXT",
}
"""The columns of the table ``runs``. ``spec``, ``summary``, ``last`` (the last record of metrics) and ``environment``
are JSON; ``score``, ``loss`` and ``step`` come from the summary, else from the last record that has them."""
_UPSERT = f"INSERT OR REPLACE INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
_LARGEST = 2**63 - 1


def row(found: Found) -> dict[str, Any]:
    """Return the row of a run. A damaged run, or one of a newer version, has a row that says so."""
    signature, stamp = found.signature(), found.stamp()  # before it is read, so that what changes then is seen later
    try:
        record = read_record(found.folder, found.id)
        values = _values(record)
    except (UserError, KeyError, TypeError) as error:
        status = "newer" if isinstance(error, Newer) else "damaged"
        values = {"status": status, "reason": str(error) or type(error).__name__}
    values |= {"id": found.id, "parent": found.parent, "signature": signature, "stamp": stamp}
    full = {name: values.get(name) for name in COLUMNS if name != "checksum"}
    return full | {"checksum": checksum(full)}


def checksum(values: Mapping[str, Any]) -> str:
    """Return the checksum of a row: an index on a failing disk must not show a wrong number."""
    return digest(canonical({name: value for name, value in values.items() if name != "checksum"}))[:16]


def _values(record: Record) -> dict[str, Any]:
    last = record.metrics[-1] if record.metrics else None
    problems = "; ".join(record.problems)
    return {
        "kind": record.kind,
        "task": label(record.spec, "task"),
        "network": label(record.spec, "network"),
        "seed": _whole(record.spec.get("seed")),
        "status": record.status,
        "reason": record.reason,
        "step": _whole(_latest(record, "step")),
        "score": _real(_latest(record, "score")),
        "loss": _real(_latest(record, "loss")),
        "lines": len(record.metrics),
        "created": record.created,
        "updated": record.details.updated,
        "hash": spec_hash(record.spec),
        "spec": canonical(record.spec),
        "summary": None if record.summary is None else canonical(record.summary),
        "last": None if last is None else canonical(last),
        "environment": canonical(record.environment),
        "problems": problems or None,
    }


def _latest(record: Record, name: str) -> Any:
    if isinstance(record.summary, Mapping) and name in record.summary:
        return record.summary[name]
    return next((one[name] for one in reversed(record.metrics) if name in one), None)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST else None


def _real(value: Any) -> float | None:
    """Return a number, or None: also for NaN, which SQLite has no value for."""
    real = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return float(value) if real else None
