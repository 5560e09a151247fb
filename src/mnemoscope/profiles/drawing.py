"""Drawing of a section: curves, rankings, headlines and notes of several networks side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mnemoscope.core.numbers import DASH, interval, number
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import Estimate, Row, SectionRow
from mnemoscope.profiles.section import ProfileSection
from mnemoscope.report import Drawing, Figure, Headline, Ranked, Series, Value

__all__ = ["SectionView", "lag_grid", "slug", "spoken"]


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


def slug(kind: str, place: int, key: str) -> str:
    """Return the name of a network's own table: by its place as well, since two names may leave the same letters.

    Examples
    --------
    >>> slug("theory", 1, "My__Net_")
    'theory-1-my-net'
    """
    return re.sub(r"[^a-z0-9]+", "-", f"{kind}-{place}-{key}".lower()).strip("-")


def spoken(found: Estimate | None) -> str:
    """Return a number with its interval, ``1.91 (1.88 to 1.94)``; a censored one as ``>= 209 (window 512)``."""
    if found is not None and found.at_least and found.value is not None:
        return f">= {number(found.value)} ({found.at_least})"
    return DASH if found is None else interval(found.value, found.lower, found.upper)


class SectionView:
    """View of one section on a page: the rows that have results of it, and how they are drawn.

    Parameters
    ----------
    section
        The section.
    rows
        All rows of the page.
    subjects
        The keys of those that the page is about.

    Attributes
    ----------
    rows
        Those that have results.
    subjects
        Those of them that the page is about.
    """

    def __init__(self, section: ProfileSection, rows: Sequence[Row], subjects: Sequence[str]) -> None:
        self.section = section
        self.rows = [row for row in rows if row.section(section.name).done]
        self.subjects = [row for row in self.rows if row.key in subjects]

    def of(self, row: Row) -> SectionRow:
        """Return what became of the section in a row."""
        return row.section(self.section.name)

    def data(self, row: Row) -> Mapping[str, Any]:
        """Return what the figures need of a row."""
        return self.of(row).data

    def headline(self, quantity: Quantity) -> Headline | None:
        """Return the number of the subject; of several subjects the largest, with its owner."""
        own = [(row, found) for row in self.subjects if (found := row.scalar(quantity)) is not None]
        there = [(row, found, found.value) for row, found in own if found.value is not None]
        if not there:
            return None
        row, found, value = max(there, key=lambda each: each[2])
        owner = "" if len(own) == 1 else f"{row.label}, the largest of {len(own)}: "
        return Headline(value=number(value), unit=found.unit, meaning=f"{owner}{quantity.meaning or quantity.title}")

    def curve(self, x: str, y: str, *, shift: int = 0) -> list[Series]:
        """Return one curve per network, with its band where several seeds gave one.

        A logarithmic axis has no place for lag 0: with ``shift=1`` the present stands at 1.
        """
        return [
            Series(
                entry=row.key,
                x=[place + shift for place in found[x][: len(found[y])]],
                y=found[y],
                lower=found.get(f"{y}_lower"),
                upper=found.get(f"{y}_upper"),
            )
            for row in self.rows
            if (found := self.data(row)).get(x) and found.get(y)
        ]

    def ranked(self, quantity: Quantity) -> Ranked:
        """Return one number of every network, with its interval."""
        found = [(row, each) for row in self.rows if (each := row.scalar(quantity)) is not None]
        values = [Value(entry=row.key, value=each.value, lower=each.lower, upper=each.upper) for row, each in found]
        unit = next((each.unit for _, each in found), quantity.unit)
        better = None if quantity.better == "zero" else quantity.better
        return Ranked(values=values, title=quantity.title, unit=unit, log=quantity.log, better=better)

    def ranking(self, quantity: Quantity, name: str | None = None, title: str | None = None, **more: Any) -> Figure:
        """Return the figure that ranks all networks by a quantity; `more` as in `figure`."""
        plain = quantity.title[:1].upper() + quantity.title[1:]
        called = name or f"{self.section.name}-{quantity.name.replace('_', '-')}"
        return self.figure(called, title or plain, self.ranked(quantity), quantity.how, **more)

    def figure(
        self,
        name: str,
        title: str,
        drawing: Drawing,
        how: str,
        measure: str | None = None,
        references: tuple[str, ...] | None = None,
    ) -> Figure:
        """Return a figure of the section.

        Parameters
        ----------
        measure
            Whose command stands beside it; by default that of the section's first measure.
        references
            Who defined what it shows; by default the section's.
        """
        return Figure(
            name=name,
            title=title,
            drawing=drawing,
            alt=f"{title}: the profiled network beside the references.",
            how=how,
            command=self.command(measure),
            references=self.section.references if references is None else references,
        )

    def command(self, measure: str | None = None) -> str:
        """Return the commands that compute a measure's numbers for the subjects again, one line each."""
        found = [self.of(row) for row in self.subjects]
        lines = [each.command if measure is None else each.commands.get(measure, "") for each in found]
        return "\n".join(line for line in lines if line)

    def notes(self) -> tuple[str, ...]:
        """Return what the subjects' results say of themselves: their own notes, and those of single numbers."""
        found = []
        for row in self.subjects:
            before = f"{row.label}: " if len(self.subjects) > 1 else ""
            entry = self.of(row)
            found += [before + note for note in entry.notes]
            said: dict[str, list[str]] = {}
            for name, each in entry.scalars.items():
                if each.note:
                    said.setdefault(each.note, []).append(name.replace("_", " "))
            found += [f"{before}{', '.join(names)}: {note}" for note, names in said.items()]
        return tuple(dict.fromkeys(found))
