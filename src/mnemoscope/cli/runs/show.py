"""Display of one run, and comparison of several."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from mnemoscope.cli.runs.options import printable, size_text
from mnemoscope.cli.runs.table import short_ids, when
from mnemoscope.cli.terminal import console
from mnemoscope.core.numbers import number

if TYPE_CHECKING:
    from mnemoscope.runs import Record

__all__ = ["facts", "print_comparison", "print_facts"]

_ROWS = 20


def facts(record: Record) -> dict[str, Any]:
    """Return everything that is recorded of a run, for JSON."""
    from mnemoscope.core.result import plain

    found: dict[str, Any] = plain(
        {
            "id": record.id,
            "folder": str(record.folder),
            "kind": record.kind,
            "status": record.status,
            "reason": record.reason,
            "owner": record.owner,
            "created": record.created,
            "updated": record.details.updated,
            "sessions": record.details.sessions,
            "spec": record.spec,
            "environment": record.environment,
            "summary": record.summary,
            "checkpoints": _checkpoints(record),
            "metrics": list(record.metrics),
            "problems": list(record.problems),
        }
    )
    return found


def _checkpoints(record: Record) -> list[dict[str, Any]]:
    """Return the checkpoints with their sizes and what is wrong with them."""
    from mnemoscope.core.errors import UserError
    from mnemoscope.runs.checkpoints import checked_files
    from mnemoscope.runs.cleaning import checkpoint_files, size
    from mnemoscope.runs.folders import CHECKPOINTS

    found = []
    for step, files in checkpoint_files(record.folder).items():
        best, problem = False, None
        try:
            best = checked_files(record.folder / CHECKPOINTS, step, record.key)[0]["best"]
        except UserError as error:
            problem = str(error)
        found.append({"step": step, "bytes": sum(map(size, files)), "best": best, "problem": problem})
    return found


def print_facts(record: Record) -> None:
    """Print one run for a person."""
    from mnemoscope.runs.tables import flat

    out = console()
    sessions = len(record.details.sessions)
    owner = f" ({record.owner})" if record.owner else ""
    _print_pairs(
        None,
        {
            "run": record.id,
            "folder": str(record.folder),
            "kind": record.kind,
            "status": record.status + owner,
            "reason": record.reason,
            "begun": when(record.created),
            "last written": when(record.details.updated),
            "sessions": sessions if sessions > 1 else None,
        },
    )
    _print_pairs("Configuration", {name: _json(value) for name, value in flat(record.spec).items()})
    _print_pairs("Environment", {name: _json(value) for name, value in flat(record.environment).items()})
    if record.summary is not None:
        summary = flat(record.summary) or {"value": record.summary}
        _print_pairs("Summary", {name: _json(value) for name, value in summary.items()})
    _print_metrics(record)
    checkpoints = {f"step {one['step']}": _checkpoint_text(one) for one in _checkpoints(record)}
    _print_pairs("Checkpoints", checkpoints)
    if record.problems:
        out.print("\nDamaged", style="bold")
        for problem in record.problems:
            out.print(f"  {printable(problem)}", soft_wrap=True)


def print_comparison(found: dict[str, Any], base: Path, metric: str | None, steps: dict[int, list[Any]] | None) -> None:
    """Print runs side by side for a person."""
    from mnemoscope.runs.folders import scan

    short = short_ids(found["runs"], (one.id for one in scan(base)))
    heads = [short[one] for one in found["runs"]]
    rows = {"status": found["status"], "lines of metrics": found["lines"]}
    _print_columns(None, heads, rows)
    for title, part in (
        ("Configuration, what differs", "configuration"),
        ("Environment, what differs", "environment"),
        ("Summary", "summary"),
        ("Metrics, the last of each", "metrics"),
    ):
        _print_columns(title, heads, found[part])
    if steps is not None:
        aligned = _aligned(steps)
        chosen = _spread(list(aligned), _ROWS)
        title = f"{metric} by step" + (f", {len(chosen)} of {len(steps)}" if len(chosen) < len(steps) else "")
        _print_columns(title, heads, {str(step): aligned[step] for step in chosen})


def _aligned(steps: dict[int, list[Any]]) -> dict[int, list[Any]]:
    """Return values of runs at steps that can be compared.

    Those are the steps at which every run has one that has not ended before, and the last of each. Where runs share
    fewer than two, each step has the last value until then, with its own step in brackets.
    """
    ends = [max((step for step, row in steps.items() if row[i] is not None), default=0) for i in range(_width(steps))]
    shared = {
        step: row
        for step, row in steps.items()
        if step in ends or all(value is not None for value, end in zip(row, ends, strict=True) if step <= end)
    }
    if sum(all(value is not None for value in row) for row in shared.values()) > 1:
        return shared
    found, last = {}, [(0, None)] * len(ends)
    for step, row in steps.items():
        last = [(step, value) if value is not None else old for value, old in zip(row, last, strict=True)]
        found[step] = [
            None if value is None or step > end else value if at == step else f"{number(value)} ({at})"
            for (at, value), end in zip(last, ends, strict=True)
        ]
    return found


def _width(steps: dict[int, list[Any]]) -> int:
    return len(next(iter(steps.values()), []))


def _spread(items: Sequence[int], count: int) -> list[int]:
    """Return at most `count` items, evenly spread, the first and the last among them."""
    if len(items) <= count:
        return list(items)
    return [items[round(place * (len(items) - 1) / (count - 1))] for place in range(count)]


def _print_metrics(record: Record) -> None:
    names = record.metrics.names()
    if not names:
        return
    out = console(wide=True)
    out.print(f"\nMetrics, {len(record.metrics)} lines", style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), header_style="bold")
    for title in ("", "first", "last", "least", "most"):
        table.add_column(title, justify="right" if title else "left", no_wrap=True)
    for name in names:
        values = [one[name] for one in record.metrics if name in one]
        numbers = [value for value in values if isinstance(value, int | float) and value == value]
        ends = (min(numbers), max(numbers)) if numbers else (None, None)
        table.add_row(printable(name), *map(_cell, (values[0], values[-1], *ends)))
    out.print(table)


def _print_pairs(title: str | None, pairs: dict[str, Any]) -> None:
    shown = {name: value for name, value in pairs.items() if value is not None}
    if not shown:
        return
    out = console()
    if title:
        out.print(f"\n{title}", style="bold")
    indent = "  " if title else ""
    width = max(len(printable(name)) for name in shown)
    for name, value in shown.items():
        out.print(f"{indent}{printable(name):<{width}}  {printable(value)}", soft_wrap=True)


def _print_columns(title: str | None, heads: Sequence[str], rows: dict[str, Sequence[Any]]) -> None:
    if not rows:
        return
    out = console(wide=True)
    if title:
        out.print(f"\n{title}", style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in itertools.chain([""], heads):
        table.add_column(printable(head), overflow="fold")
    for name, values in rows.items():
        table.add_row(printable(name), *map(_cell, values))
    out.print(table)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    return "-" if value is None else printable(_json(value))


def _checkpoint_text(one: dict[str, Any]) -> str:
    parts = [size_text(one["bytes"]), "best" if one["best"] else "", one["problem"] or "whole"]
    return ", ".join(filter(None, parts))


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
