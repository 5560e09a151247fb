"""Contents of a page: plain data, without a word of how it is drawn.

All text is as its author wrote it, never escaped: that is the renderer's task. Numbers may be NaN, infinite or None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mnemoscope.report.figure import Figure

__all__ = ["Cell", "Column", "Entry", "Headline", "Page", "Section", "Statement", "Table"]

Cell = str | float | int | None
"""What stands in a table; None is shown as a dash."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A network on the page; its colour, dash and marker are the same in every chart.

    Attributes
    ----------
    key
        By which charts name it.
    label
        As a reader sees it.
    role
        A subject is what the page is about, and is drawn strongest; references stand beside it.
    detail
        One line more, such as its size.
    """

    key: str
    label: str
    role: Literal["subject", "reference"]
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The one clear number of a section: ``Headline(value="31", unit="steps", meaning="until half is forgotten")``."""

    value: str
    unit: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table; numeric ones are aligned at the right, in digits of one width."""

    title: str
    numeric: bool
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table, which the page also gives as CSV and as LaTeX.

    Attributes
    ----------
    name
        A slug, of which the files are named.
    highlight
        The row of the subject, counted from zero.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    highlight: int | None = None


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A sentence of the verdict.

    Attributes
    ----------
    text
        What was found, with its number.
    tone
        Whether that speaks for the network.
    confidence
        How sure it is, in words and numbers.
    evidence
        Names of the sections that show it.
    lead
        Whether it sums up the others, and stands above them in large type.
    """

    text: str
    tone: Literal["good", "bad", "neutral"]
    confidence: str
    evidence: tuple[str, ...] = ()
    lead: bool = False


@dataclass(frozen=True, kw_only=True)
class Section:
    """One thing that was measured: its headline number, a few sentences, its charts and tables.

    Attributes
    ----------
    name
        A slug, which links lead to.
    text
        Paragraphs beside the charts.
    notes
        Small print: assumptions, what was left out.
    """

    name: str
    title: str
    headline: Headline | None = None
    text: tuple[str, ...] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page.

    Attributes
    ----------
    summary
        The few numbers at the top.
    absent
        What was not measured, each with the reason.
    methods
        A paragraph that can be pasted into a paper.
    references
        Keys of `mnemoscope.core.references.REFERENCES`; those of the figures are added.
    command
        What makes this page again.
    facts
        Versions, seeds, date, machine.
    """

    title: str
    subtitle: str
    entries: Sequence[Entry]
    summary: tuple[Headline, ...] = ()
    verdict: tuple[Statement, ...] = ()
    sections: Sequence[Section] = ()
    absent: Sequence[tuple[str, str]] = ()
    methods: str = ""
    references: tuple[str, ...] = ()
    command: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
