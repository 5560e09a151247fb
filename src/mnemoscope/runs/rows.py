"""One run as one row of the index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.runs.canonical import canonical, digest
from mnemoscope.runs.document import Newer
from mnemoscope.runs.names import label, spec_hash
from mnemoscope.runs.record import Record, read_record
from mnemoscope.runs.scan import Found

__all__ = ["COLUMNS", "checksum", "row"]

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
    "checksum": "TEXT",
}
"""The columns of the table ``runs``. ``spec``, ``summary``, ``last`` (the last record of metrics) and ``environment``
are JSON; ``score``, ``loss`` and ``step`` come from the summary, else from the last record that has them."""

_LARGEST = 2**63 - 1


def row(found: Found) -> dict[str, Any]:
    """Return the row of a run. A damaged run, or one of a newer version, has a row that says so."""
    signature = found.signature()
    try:
        record = read_record(found.folder, found.id)
        values = _values(record)
    except (UserError, KeyError, TypeError) as error:
        status = "newer" if isinstance(error, Newer) else "damaged"
        values = {"status": status, "reason": str(error) or type(error).__name__}
    values |= {"id": found.id, "parent": found.parent, "signature": signature}
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
