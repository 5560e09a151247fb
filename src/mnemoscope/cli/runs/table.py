"""Table of runs for the terminal."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from mnemoscope.cli.runs.options import printable
from mnemoscope.cli.terminal import console
from mnemoscope.core.numbers import number

if TYPE_CHECKING:
    from mnemoscope.runs.query import Page

__all__ = ["document", "print_table", "short_ids", "when"]

_JSON = ("spec", "summary", "last", "environment")
_INTERNAL = ("signature", "stamp", "checksum")
_SHORTEST = 8
_COLUMNS = {
    "run": 0,
    "kind": 90,
    "task": 0,
    "network": 0,
    "seed": 95,
    "status": 0,
    "step": 90,
    "score": 0,
    "loss": 88,
    "begun": 60,
}
"""The columns, and how wide a terminal must be for each."""


def document(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the index for JSON, with what is JSON in it unfolded."""
    found = {name: value for name, value in row.items() if name not in _INTERNAL}
    return found | {name: None if found[name] is None else json.loads(found[name]) for name in _JSON}


def print_table(base: Path, page: Page, *, filtered: bool) -> None:
    """Print runs for a person."""
    out = console(wide=True)
    rows, hidden = page.rows, page.hidden
    if not rows and not hidden:
        out.print(f"No runs {'like that ' if filtered else ''}in {base}.", soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    titles = [title for title, least in _COLUMNS.items() if out.width >= least]
    for title in titles:
        right = title in ("seed", "step", "score", "loss")
        table.add_column(title, justify="right" if right else "left", no_wrap=True, overflow="ellipsis")
    table.columns[0].overflow = "fold"
    table.columns[0].no_wrap = out.width < _COLUMNS["loss"]  # an id may be folded, where there is room, but never cut
    short = short_ids([row["id"] for row in rows], page.ids)
    for row, parts in _folded(rows, fold=not filtered):
        cells = {name: printable(row[name]) for name in ("kind", "task", "network", "seed", "status", "step")}
        cells |= {"score": number(row["score"]), "loss": number(row["loss"]), "begun": when(row["created"])}
        name = printable(short[row["id"]])
        cells["run"] = name if parts == 1 else f"{name} + {parts - 1}"
        table.add_row(*(cells[title] for title in titles))
    out.print(table)
    out.print()
    more = f" and {hidden} within others (--nested)" if hidden else ""
    shown = f"{len(rows)} of {page.total:,}" if len(rows) < page.total else f"{page.total}"
    all_of_them = " All of them: --all." if len(rows) < page.total else ""
    out.print(f"{shown} run{'' if page.total == 1 else 's'}{more} in {base}.{all_of_them}", soft_wrap=True)
    _print_problems(rows, short)
    out.print("More on one of them: mnemoscope runs show RUN")


def _folded(rows: Sequence[dict[str, Any]], *, fold: bool) -> list[tuple[dict[str, Any], int]]:
    """Return the newest of the parts of studies on one task and network for all of them, with their number."""
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        part = fold and row["kind"] == "study"
        found.setdefault((row["task"], row["network"], row["status"]) if part else row["id"], []).append(row)
    return [(each[-1], len(each)) for each in found.values()]


def _print_problems(rows: Sequence[dict[str, Any]], short: dict[str, str]) -> None:
    out = console()
    for row in rows:
        reason = row["problems"] or (row["reason"] if row["status"] in ("failed", "damaged", "newer") else None)
        if reason:
            out.print(f"{printable(short[row['id']])} {row['status']}: {printable(reason)}", soft_wrap=True)


def short_ids(ids: Sequence[str], everyone: Iterable[str]) -> dict[str, str]:
    """Return the shortest beginnings, of at least 8 letters, that tell runs from all others in a folder."""
    known = sorted({one.partition("/")[0] for one in (*ids, *everyone)})
    heads = {one: _distinct(one, known[max(place - 1, 0) : place + 2]) for place, one in enumerate(known)}
    return {one: heads[one.partition("/")[0]] + "".join(one.partition("/")[1:]) for one in ids}


def _distinct(name: str, neighbours: Sequence[str]) -> str:
    """Return the shortest beginning that the neighbours in alphabetical order do not have.

    Examples
    --------
    >>> _distinct("0123456789-fit-copy", ["01234567ff-fit-copy", "0123456789-fit-copy", "mine"])
    '012345678'
    """
    shared = max((_shared(name, other) for other in neighbours if other != name), default=0)
    return name[: max(shared + 1, _SHORTEST)]


def _shared(one: str, other: str) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def when(created: str | None) -> str:
    """Return a time of the index in local time, to the minute."""
    if not created:
        return ""
    try:
        return datetime.datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return printable(created)
