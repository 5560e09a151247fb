"""From rows to charts: what every part's section does alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from mnemoscope.core.numbers import DASH, interval, number
from mnemoscope.profiles.rows import Row, data, is_done, key, label, part, scalar
from mnemoscope.report.figure import Mark, Ranked, Series, Value
from mnemoscope.report.page import Headline

__all__ = [
    "command",
    "curve",
    "headline",
    "lag_grid",
    "notes",
    "ranked",
    "shown",
    "slug",
    "spoken",
    "subject_rows",
]


def lag_grid(longest: int) -> list[int]:
    """Return lags from 0 to `longest`: every one up to 16, then each a fifth longer than the last.

    Examples
    --------
    >>> lag_grid(40)
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19, 23, 28, 34, 40]
    """
    found = list(range(min(16, longest) + 1))
    while found[-1] < longest:
        found.append(min(longest, round(1.2 * found[-1])))
    return found


def slug(kind: str, place: int, row: Row) -> str:
    """Return the name of a network's own table: by its place as well, since two names may leave the same letters.

    Examples
    --------
    >>> slug("theory", 1, {"label": "My__Net_"})
    'theory-1-my-net'
    """
    return re.sub(r"[^a-z0-9]+", "-", f"{kind}-{place}-{key(row)}".lower()).strip("-")


def spoken(found: dict[str, Any] | None) -> str:
    """Return a scalar with its interval: ``1.91 (1.88 to 1.94)``."""
    return DASH if found is None else interval(found["value"], found["lower"], found["upper"])


def shown(rows: Sequence[Row], name: str) -> list[Row]:
    """Return the rows that have results of a part."""
    return [row for row in rows if is_done(row, name)]


def subject_rows(rows: Sequence[Row], subjects: Sequence[str], name: str) -> list[Row]:
    """Return the rows that the page is about, as far as they have results of a part."""
    return [row for row in shown(rows, name) if key(row) in subjects]


def headline(rows: Sequence[Row], subjects: Sequence[str], name: str, entry: str, meaning: str) -> Headline | None:
    """Return the number of the subject; of several subjects the largest, with its owner."""
    own = [(row, found) for row in subject_rows(rows, subjects, name) if (found := scalar(row, name, entry))]
    there = [(row, found) for row, found in own if found["value"] is not None]
    if not there:
        return None
    row, found = max(there, key=lambda each: each[1]["value"])
    owner = "" if len(own) == 1 else f"{label(row)}, the largest of {len(own)}: "
    return Headline(value=number(found["value"]), unit=found["unit"], meaning=f"{owner}{meaning}")


def curve(rows: Sequence[Row], name: str, x: str, y: str, *, shift: int = 0) -> list[Series]:
    """Return one curve per network, with its band where several seeds gave one.

    A logarithmic axis has no place for lag 0: with ``shift=1`` the present stands at 1.
    """
    return [
        Series(
            entry=key(row),
            x=[place + shift for place in found[x][: len(found[y])]],
            y=found[y],
            lower=found.get(f"{y}_lower"),
            upper=found.get(f"{y}_upper"),
        )
        for row in shown(rows, name)
        if (found := data(row, name)).get(x) and found.get(y)
    ]


def ranked(
    rows: Sequence[Row],
    name: str,
    entry: str,
    title: str,
    *,
    log: bool = False,
    better: Literal["higher", "lower"] | None = None,
    marks: tuple[Mark, ...] = (),
) -> Ranked:
    """Return one number of every network, with its interval."""
    found = [(row, scalar(row, name, entry)) for row in shown(rows, name)]
    values = [
        Value(entry=key(row), value=each["value"], lower=each["lower"], upper=each["upper"])
        for row, each in found
        if each is not None
    ]
    unit = next((each["unit"] for _, each in found if each is not None), "")
    return Ranked(values=values, title=title, unit=unit, log=log, better=better, marks=marks)


def command(rows: Sequence[Row], subjects: Sequence[str], name: str, measure: str) -> str:
    """Return the commands that compute a chart's numbers for the subjects again, one line each."""
    lines = [part(row, name).get("commands", {}).get(measure, "") for row in subject_rows(rows, subjects, name)]
    return "\n".join(line for line in lines if line)


def notes(rows: Sequence[Row], subjects: Sequence[str], name: str) -> tuple[str, ...]:
    """Return what the subjects' results say of themselves: their own notes, and those of single numbers."""
    found = []
    own = subject_rows(rows, subjects, name)
    for row in own:
        before = f"{label(row)}: " if len(own) > 1 else ""
        entry = part(row, name)
        found += [before + note for note in entry.get("notes", ())]
        said: dict[str, list[str]] = {}
        for title, each in entry.get("scalars", {}).items():
            if each.get("note"):
                said.setdefault(each["note"], []).append(title.replace("_", " "))
        found += [f"{before}{', '.join(titles)}: {note}" for note, titles in said.items()]
    return tuple(dict.fromkeys(found))
