"""Questions to the index: filters, and SQL that can only read."""

from __future__ import annotations

import contextlib
import datetime
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError, choice, expected
from mnemoscope.runs.documents import canonical
from mnemoscope.runs.folders import scan
from mnemoscope.runs.indexing import COLUMNS, current
from mnemoscope.runs.opening import KINDS
from mnemoscope.runs.record import read_record
from mnemoscope.runs.status import STATES

__all__ = ["LISTED", "select", "since", "sql"]

LISTED = (*STATES, "damaged", "newer")
"""What the index says of a run: its state, or that it cannot be read."""

_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_OPERATIONS = 100_000


def select(
    base: Path,
    *,
    task: str | None = None,
    network: str | None = None,
    status: str | None = None,
    kind: str | None = None,
    after: str | None = None,
    before: str | None = None,
    where: str | None = None,
    nested: bool = True,
) -> list[dict[str, Any]]:
    """Return the rows of the runs that pass all filters, the oldest first.

    Parameters
    ----------
    base
        The folder that holds the runs.
    task, network, status, kind
        Equal to these.
    after, before
        Begun then: a duration back from now (``90m``, ``12h``, ``7d``, ``2w``), or a date (``2026-01-31``).
    where
        An expression of SQL over the columns of the index: ``"score > 0.9 AND json_extract(spec, '$.lr') < 0.01"``.
    nested
        Whether runs that are part of another one are given too.
    """
    exact = {"task": task, "network": network, "status": status, "kind": kind}
    if status is not None:
        choice("status", status, LISTED)
    if kind is not None:
        choice("kind", kind, KINDS)
    conditions = [f"{name} = ?" for name, value in exact.items() if value is not None]
    values: list[Any] = [value for value in exact.values() if value is not None]
    for text, sign in ((after, ">="), (before, "<")):
        if text is not None:
            conditions.append(f"created {sign} ?")
            values.append(since(text))
    if not nested:
        conditions.append("parent IS NULL")
    if where is not None:
        conditions.append(f"({where}\n)")
    query = f"SELECT {', '.join(COLUMNS)} FROM runs WHERE {' AND '.join(conditions) or '1'} ORDER BY created, id"
    _, rows = _ask(base, query, values)
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def sql(base: Path, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the names of the columns and the rows that a SELECT gives. Nothing can be written by it.

    The table ``runs`` is the index. The table ``metrics`` (run, line, step, name, value) has every number of every run;
    it is filled from the folders when the query names it.
    """
    return _ask(base, query, [], metrics=re.search(r"\bmetrics\b", query, re.IGNORECASE) is not None)


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


def _ask(
    base: Path, query: str, values: list[Any], *, metrics: bool = False
) -> tuple[list[str], list[tuple[Any, ...]]]:
    with contextlib.closing(current(base)) as connection:
        if metrics:
            _fill_metrics(connection, base)
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
