"""Questions to the index: filters, and SQL that can only read."""

from __future__ import annotations

import contextlib
import datetime
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError, choice, expected
from mnemoscope.runs.documents import canonical
from mnemoscope.runs.folders import scan
from mnemoscope.runs.indexing import COLUMNS, checksum, current, look_again
from mnemoscope.runs.opening import KINDS
from mnemoscope.runs.record import read_record
from mnemoscope.runs.status import STATES

__all__ = ["LISTED", "Filters", "Page", "newest", "select", "since", "sql"]

LISTED = (*STATES, "damaged", "newer")
"""What the index says of a run: its state, or that it cannot be read."""

_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_OPERATIONS = 100_000
_ATTEMPTS = 3
_NAMES = ", ".join(COLUMNS)


@dataclass(frozen=True)
class Filters:
    """What runs are asked for.

    Attributes
    ----------
    task, network, status, kind
        Equal to these.
    after, before
        Begun then: a duration back from now (``90m``, ``12h``, ``7d``, ``2w``), or a date (``2026-01-31``).
    where
        An expression of SQL over the columns of the index: ``"score > 0.9 AND json_extract(spec, '$.lr') < 0.01"``.
    nested
        Whether runs that are part of another one are given too.
    """

    task: str | None = None
    network: str | None = None
    status: str | None = None
    kind: str | None = None
    after: str | None = None
    before: str | None = None
    where: str | None = None
    nested: bool = True

    def condition(self) -> tuple[str, list[Any]]:
        """Return it as a condition of SQL, with the values of its question marks."""
        if self.status is not None:
            choice("status", self.status, LISTED)
        if self.kind is not None:
            choice("kind", self.kind, KINDS)
        exact = {name: getattr(self, name) for name in ("task", "network", "status", "kind")}
        conditions = [f"{name} = ?" for name, value in exact.items() if value is not None]
        values: list[Any] = [value for value in exact.values() if value is not None]
        for text, sign in ((self.after, ">="), (self.before, "<")):
            if text is not None:
                conditions.append(f"created {sign} ?")
                values.append(since(text))
        if not self.nested:
            conditions.append("parent IS NULL")
        if self.where is not None:
            conditions.append(f"({self.where}\n)")
        return " AND ".join(conditions) or "1", values


@dataclass(frozen=True)
class Page:
    """The newest runs that pass filters, the oldest of them first.

    Attributes
    ----------
    rows
        Of the index.
    total, hidden
        How many pass in all, and how many more if those within others counted.
    ids
        Of all runs in the folder, by which short names are told apart.
    """

    rows: list[dict[str, Any]]
    total: int
    hidden: int
    ids: list[str]


def select(base: Path, filters: Filters | None = None) -> list[dict[str, Any]]:
    """Return the rows of the runs below a folder that pass all filters, the oldest first."""
    condition, values = (filters or Filters()).condition()
    with contextlib.closing(current(base)) as connection:
        _, rows = _answer(connection, f"SELECT {_NAMES} FROM runs WHERE {condition} ORDER BY created, id", values)
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def newest(base: Path, limit: int, filters: Filters) -> Page:
    """Return a page of the newest runs below a folder; of the others only what has changed is looked at."""
    page = None
    for attempt in range(_ATTEMPTS):
        # A damaged row, or rows that change faster than they are read: the last attempt is thorough.
        with contextlib.closing(current(base, thorough=attempt == _ATTEMPTS - 1)) as connection:
            page = _page(connection, limit, filters)
            if any(one["checksum"] != checksum(one) for one in page.rows):
                continue
            if look_again(connection, base, page.rows):
                break
    assert page is not None
    return page


def _page(connection: sqlite3.Connection, limit: int, filters: Filters) -> Page:
    condition, values = filters.condition()
    everyone, _ = replace(filters, nested=True).condition()
    newest_first = f"SELECT {_NAMES} FROM runs WHERE {condition} ORDER BY created DESC, id DESC LIMIT {limit}"
    _, rows = _answer(connection, newest_first, values)
    _, [(total,)] = _answer(connection, f"SELECT count(*) FROM runs WHERE {condition}", values)
    _, [(with_nested,)] = _answer(connection, f"SELECT count(*) FROM runs WHERE {everyone}", values)
    _, ids = _answer(connection, "SELECT id FROM runs INDEXED BY changes", [])
    found = [dict(zip(COLUMNS, row, strict=True)) for row in reversed(rows)]
    return Page(found, total, with_nested - total, [one for (one,) in ids])


def sql(base: Path, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the names of the columns and the rows that a SELECT gives. Nothing can be written by it.

    The table ``runs`` is the index. The table ``metrics`` (run, line, step, name, value) has every number of every run;
    it is filled from the folders when the query names it.
    """
    with contextlib.closing(current(base)) as connection:
        if re.search(r"\bmetrics\b", query, re.IGNORECASE):
            _fill_metrics(connection, base)
        return _answer(connection, query, [])


def since(text: str, now: datetime.datetime | None = None) -> str:
    """Return the time that a duration before now or a date means, as the index writes times (UTC)."""
    now = now or datetime.datetime.now(datetime.UTC)
    duration = re.fullmatch(r"(\d{1,6})\s*([mhdw])", text.strip())
    try:
        if duration:
            moment = now - datetime.timedelta(**{_UNITS[duration[2]]: int(duration[1])})
        else:
            moment = datetime.datetime.fromisoformat(text.strip())
            moment = moment.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise expected("a time", "like 90m, 12h, 7d, 2w or 2026-01-31", text) from None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _answer(connection: sqlite3.Connection, query: str, values: list[Any]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return columns and rows of a query that can only read, whatever a user wrote into it."""
    connection.execute("PRAGMA query_only = ON")
    connection.set_authorizer(_authorise)
    connection.set_progress_handler(lambda: 0, _OPERATIONS)  # lets Ctrl-C end a query that does not
    try:
        cursor = connection.execute(query, values)
        names = [column[0] for column in cursor.description or ()]
        return names, cursor.fetchall()
    except (sqlite3.Error, sqlite3.Warning, ValueError, UnicodeEncodeError) as error:
        denied = any(words in str(error) for words in ("not authorized", "authorization denied"))
        reason = "only SELECT is allowed" if denied else str(error)
        raise UserError(f"the query cannot be answered: {reason}") from None
    finally:
        connection.set_authorizer(None)
        connection.execute("PRAGMA query_only = OFF")


def _authorise(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _fill_metrics(connection: sqlite3.Connection, base: Path) -> None:
    connection.execute("PRAGMA temp_store = MEMORY")
    with connection:
        connection.execute("CREATE TEMP TABLE metrics (run TEXT, line INTEGER, step INTEGER, name TEXT, value)")
        connection.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?)", _numbers(base))


def _numbers(base: Path) -> Iterator[tuple[Any, ...]]:
    for found in scan(base):
        try:
            record = read_record(found.folder, found.id)
        except UserError:
            continue  # the index's row says what is wrong with it
        for line, one in enumerate(record.metrics, start=1):
            for name, value in one.items():
                yield found.id, line, _stored(one.get("step")), name, _stored(value)


def _stored(value: Any) -> Any:
    """Return a value as SQLite holds it: text, a number or NULL; the rest as JSON."""
    if isinstance(value, int) and abs(value) < 2**63:
        return int(value)
    return value if value is None or isinstance(value, float | str) else canonical(value)
