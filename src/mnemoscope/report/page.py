"""Contents of a page: plain data, without a word of how it is drawn.

All text is as its author wrote it, never escaped: that is the renderer's task. Numbers may be NaN, infinite or None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mnemoscope.report.figure import Figure

__all__ = ["Cell", "Column", "Dot", "Entry", "Headline", "Page", "Score", "Section", "Statement", "Table"]

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
    bold
        Cells in bold type, as pairs of row and column, counted from zero.
    cards
        Whether each row is a card: what it is about, a sentence, a number, its status and its source.
    machine
        For CSV, other lines than those shown: a head, and the numbers with all digits.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    highlight: int | None = None
    bold: frozenset[tuple[int, int]] = frozenset()
    cards: bool = False
    machine: Sequence[Sequence[Cell]] | None = None


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
class Dot:
    """A network on a line of the scorecard: where, from 0 at the bad end to 1 at the good one, and its number."""

    entry: str
    place: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Score:
    """A line of the scorecard: the references as dots from bad to good, the subject among them, and one word.

    Attributes
    ----------
    word
        ``"strong"``, ``"average"``, ``"weak"`` or ``"uncertain"``; empty where there is nothing to compare with.
    value, between, unit
        The subject's number, the ends of its interval or what cut it off, and its unit, in words.
    sentence
        What it means, and how it stands.
    place, lower, upper
        Where the subject and the ends of its interval lie, from 0 to 1; None: it has no interval.
    open_ended
        Whether the true number is at least so good.
    evidence
        The section that shows it.
    """

    name: str
    word: str
    value: str
    sentence: str
    place: float
    between: str = ""
    unit: str = ""
    lower: float | None = None
    upper: float | None = None
    open_ended: bool = False
    dots: tuple[Dot, ...] = ()
    evidence: str = ""

    @property
    def text(self) -> str:
        """The number with its interval and its unit, in a line."""
        between = f"({self.between})" if self.between else ""
        return " ".join(part for part in (self.value, between, self.unit) if part)


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
    read_as
        What the page is about, as it was understood, in a line.
    sentence
        The verdict in a sentence.
    scores
        The scorecard.
    score_note
        What the scorecard rests on.
    table
        What stands in the place of a scorecard where several subjects are compared.
    first
        The name of the figure that stands beside the scorecard.
    advice
        What follows from the verdict, in sentences.
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
    read_as: str = ""
    sentence: str = ""
    scores: tuple[Score, ...] = ()
    score_note: str = ""
    table: Table | None = None
    first: str = ""
    advice: tuple[str, ...] = ()
    verdict: tuple[Statement, ...] = ()
    sections: Sequence[Section] = ()
    absent: Sequence[tuple[str, str]] = ()
    methods: str = ""
    references: tuple[str, ...] = ()
    command: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
