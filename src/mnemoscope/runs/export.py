"""Runs as flat tables, for other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mnemoscope.core.result import plain
from mnemoscope.runs.canonical import decode
from mnemoscope.runs.compare import flat
from mnemoscope.runs.record import load

__all__ = ["metrics_table", "runs_table", "to_csv", "to_json"]

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
    names = list(dict.fromkeys(name for row in table for name in row))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in table)
    return stream.getvalue() if names else ""


def to_json(table: Sequence[dict[str, Any]]) -> str:
    """Return a table as one JSON document, a list of objects."""
    return json.dumps(plain(list(table)), indent=2, allow_nan=False) + "\n"


def _cell(value: Any) -> Any:
    return json.dumps(plain(value)) if isinstance(value, list | dict | bool) else value
