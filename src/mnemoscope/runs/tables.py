"""Runs side by side, and as flat tables for other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.core.numbers import defused
from mnemoscope.core.result import plain
from mnemoscope.runs.documents import canonical, decode
from mnemoscope.runs.record import Record, load

__all__ = [
    "MISSING",
    "compared",
    "curves",
    "flat",
    "flat_differences",
    "metrics_table",
    "runs_table",
    "to_csv",
    "to_json",
]

MISSING = "-"


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one, with dotted names; lists stay whole.

    Examples
    --------
    >>> flat({"lr": 0.1, "task": {"name": "copy", "delay": 9}})
    {'lr': 0.1, 'task.name': 'copy', 'task.delay': 9}
    """
    if not isinstance(value, Mapping) or not value:
        return {prefix: value} if prefix else {}
    found: dict[str, Any] = {}
    for key, entry in value.items():
        found |= flat(entry, f"{prefix}.{key}" if prefix else str(key))
    return found


def flat_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what differs as (name, value in the first, value in the second), as JSON; ``-`` where there is none."""
    columns = [flat(first), flat(second)]
    texts = {name: _texts(columns, name) for name in _differing(columns)}
    return [(name, one, other) for name, (one, other) in texts.items()]


def compared(records: Sequence[Record]) -> dict[str, Any]:
    """Return runs side by side: what differs in their configurations and environments, summaries, last metrics.

    Every entry has one value per run; None where a run has none.
    """
    last = [{name: _last(record, name) for name in record.metrics.names()} for record in records]
    return {
        "runs": [record.id for record in records],
        "status": [record.status for record in records],
        "lines": [len(record.metrics) for record in records],
        "configuration": _differing([{"kind": record.kind, **flat(record.spec)} for record in records]),
        "environment": _differing([flat(_numerical(record.environment)) for record in records]),
        "summary": _side_by_side([flat(record.summary) if record.summary else {} for record in records]),
        "metrics": _side_by_side(last),
    }


def curves(records: Sequence[Record], metric: str) -> dict[int, list[Any]]:
    """Return one metric of several runs by step: a value per run, None where a run has none."""
    found: dict[int, list[Any]] = {}
    for place, record in enumerate(records):
        for line, one in enumerate(record.metrics, start=1):
            step = one.get("step", line)
            if metric in one and isinstance(step, int):
                found.setdefault(step, [None] * len(records))[place] = one[metric]
    if not found:
        known = ", ".join(dict.fromkeys(name for record in records for name in record.metrics.names()))
        raise UserError(f"a metric must be one of {known or '(none recorded)'}, got {metric!r}")
    return dict(sorted(found.items()))


def _last(record: Record, name: str) -> Any:
    return next(one[name] for one in reversed(record.metrics) if name in one)


def _numerical(environment: dict[str, Any]) -> dict[str, Any]:
    return {part: environment[part] for part in ("versions", "threads", "machine", "commit") if part in environment}


def _differing(columns: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    table = _side_by_side(columns)
    return {name: values for name, values in table.items() if len(set(_texts(columns, name))) > 1}


def _side_by_side(columns: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for column in columns for name in column)
    return {name: [plain(one.get(name)) for one in columns] for name in names}


def _texts(columns: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    return [canonical(one[name]) if name in one else MISSING for one in columns]


_FIRST = ("id", "parent", "kind", "task", "network", "seed", "status", "reason", "step", "score", "loss", "lines")
_TIMES = ("created", "updated", "hash")


def runs_table(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one flat row per run: what the index says, then ``spec.*`` and ``summary.*``."""
    table = []
    for row in rows:
        entry = {name: row[name] for name in (*_FIRST, *_TIMES)}
        for part in ("spec", "summary"):
            if row[part] is not None:
                entry |= flat(decode(row[part]), part)
        table.append(entry)
    return table


def metrics_table(base: Path, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per line of metrics, with the run that it belongs to."""
    readable = [row["id"] for row in rows if row["status"] not in ("damaged", "newer")]
    return [{"run": one, **record} for one in readable for record in load(base / one, base).metrics]


def to_csv(table: Sequence[dict[str, Any]]) -> str:
    """Return a table as CSV with one line of titles; an empty cell where a row has no value."""
    names = list(dict.fromkeys(defused(name) for row in table for name in row))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({defused(name): _cell(value) for name, value in row.items()} for row in table)
    return stream.getvalue() if names else ""


def to_json(table: Sequence[dict[str, Any]]) -> str:
    """Return a table as one JSON document, a list of objects."""
    return json.dumps(plain(list(table)), indent=2, allow_nan=False) + "\n"


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return defused(value)
    return json.dumps(plain(value)) if isinstance(value, list | dict | bool) else value
