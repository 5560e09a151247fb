"""Comparison of networks: one line per measure, one number per network, the best and the clear differences marked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mnemoscope.core.intervals import difference, student
from mnemoscope.core.numbers import number
from mnemoscope.profiles.drawing import spoken
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import Estimate, Row
from mnemoscope.profiles.section import ProfileSection, judged_quantities
from mnemoscope.profiles.verdict.contest import Contest, Standing, number_of
from mnemoscope.profiles.verdict.statements import listed
from mnemoscope.report import Cell, Column, Curves, Figure, Section, Series, Table

__all__ = ["MARKS", "Comparison", "Line"]

MARKS = {"better": "+", "worse": "\u2212"}
"""Beside a number that is clearly better or worse than the first network's."""

_SHORT = 24
"""Letters of a note that stands in the place of a number that there is not: "below 5", "unfinished"."""

_MANY = 3
"""Networks beside the first of which a sentence names every axis."""


@dataclass(frozen=True)
class Line:
    """One measure: the number of every network, the best ones, and how each stands against the first.

    Attributes
    ----------
    quantity
        What the numbers are.
    numbers
        In the order of the networks; None where there is none.
    best
        Places of the best, several where they are equal or known from below.
    standings
        Of each network against the first; None for the first itself, and where nothing can be said.
    """

    quantity: Quantity
    numbers: tuple[Estimate | None, ...]
    best: frozenset[int]
    standings: tuple[Standing | None, ...]

    @property
    def title(self) -> str:
        """What it is called: as on the scorecard, or by its own title."""
        axis = self.quantity.axis
        name = self.quantity.title if axis is None else axis.name
        return f"{name} ({self.quantity.unit})" if self.quantity.unit not in ("", "soft") else name

    def cell(self, place: int, *, short: bool = False) -> str:
        """Return a number with its interval, or alone, and its mark."""
        found = self.numbers[place]
        mark = MARKS.get(self.standings[place] or "", "")
        if short and found is not None and found.value is not None:
            text = f">= {number(found.value, 3)}" if found.at_least else number(found.value, 3)
        elif found is not None and found.value is None:
            text = found.note
        else:
            text = spoken(found)
        return f"{text} {mark}" if mark else text


class Comparison:
    """Several networks side by side; the references of each are the others, and no other network is in it.

    Parameters
    ----------
    sections
        What was measured.
    rows
        Of the networks, keyed; "the first" is the one that the others are set against.
    """

    def __init__(self, sections: Sequence[ProfileSection], rows: Sequence[Row]) -> None:
        self.rows = tuple(rows)
        self.judged = judged_quantities(sections)
        others = [each for one in sections for each in one.quantities if each.compared and each.axis is None]
        pairs = list(itertools.combinations(rows, 2))
        self._contest = Contest(pairs, self.judged)
        numbers = [each for each in (*self.judged, *others) if any(_said(row, each) for row in rows)]
        self.lines = tuple(self._line(each) for each in numbers)

    def _line(self, quantity: Quantity) -> Line:
        numbers = tuple(_said(row, quantity) for row in self.rows)
        first = self.rows[0]
        standings = [self._contest.standing(row, first, quantity) for row in self.rows[1:]]
        return Line(quantity, numbers, _best(quantity, numbers), (None, *standings))

    def standing(self, one: Row, other: Row, quantity: Quantity) -> Standing | None:
        """Return how a network stands against another."""
        return self._contest.standing(one, other, quantity)

    @property
    def sentence(self) -> str:
        """What the first network is clearly ahead and behind in, against each of the others."""
        first, *others = self.rows
        names = [listed([row.label for row in others])] if len(others) <= _MANY else [f"{len(others)} networks"]
        said = [self._against(row, len(others) <= _MANY) for row in others]
        return f"{first.label} against {names[0]}: {'; '.join(said)}."

    def _against(self, other: Row, named: bool) -> str:
        first = self.rows[0]
        found = {
            word: [each.axis.name for each in self.judged if each.axis and self.standing(first, other, each) == word]
            for word in ("better", "worse")
        }
        if not named:
            return f"{other.label} {len(found['better'])} ahead, {len(found['worse'])} behind"
        parts = [f"ahead of {other.label} in {listed(found['better'])}"] if found["better"] else []
        behind = "behind in" if parts else f"behind {other.label} in"
        parts += [f"{behind} {listed(found['worse'])}"] if found["worse"] else []
        return "clearly " + ", ".join(parts) if parts else f"nothing tells it apart from {other.label}"

    @property
    def training(self) -> str:
        """How long the networks were trained, and what unfinished means; empty where none was."""
        done = [row.section("trained").data for row in self.rows if row.section("trained").done]
        if not done:
            return ""
        return (
            f"trained: at most {done[0]['iterations']:,} iterations in every training, of all networks alike; "
            "unfinished: the time was over before the search"
        )

    @property
    def disagreements(self) -> tuple[str, ...]:
        """Where two measures of one thing say opposite things of the first network and another, and why they can."""
        said = []
        first = self.rows[0]
        for other in self.rows[1:]:
            told = {each: self.standing(first, other, each) for each in self.judged}
            for one, two in itertools.combinations(self.judged, 2):
                if {told[one], told[two]} == {"better", "worse"} and (text := _opposed(one, two)):
                    ahead, behind = (one, two) if told[one] == "better" else (two, one)
                    assert ahead.axis is not None
                    assert behind.axis is not None
                    said.append(
                        f"{first.label} is clearly ahead of {other.label} in {ahead.axis.name} and behind in "
                        f"{behind.axis.name}. Both are about {one.axis.about if one.axis else ''}, and can disagree: "
                        f"{text}."
                    )
        return tuple(said)

    def table(self) -> Table:
        """Return the table: one row per measure, one column per network."""
        columns = [Column(title="measure", numeric=False)]
        columns += [Column(title=row.label, numeric=True) for row in self.rows]
        cells: list[list[Cell]] = [["parameters", *(f"{row.network.parameters:,}" for row in self.rows)]]
        cells += [[line.title, *(line.cell(place) for place in range(len(self.rows)))] for line in self.lines]
        bold = {(1 + row, 1 + place) for row, line in enumerate(self.lines) for place in line.best}
        return Table(
            name="comparison",
            title="Side by side",
            columns=columns,
            rows=cells,
            bold=frozenset(bold),
            note=(
                f"Best in bold. {MARKS['better']} and {MARKS['worse']}: clearly better and worse than "
                f"{self.rows[0].label}, among all comparisons of the table (Benjamini-Hochberg, 5%). "
                "Means over seeds with 95% intervals."
            ),
            machine=self._machine(),
        )

    def _machine(self) -> tuple[tuple[Cell, ...], ...]:
        """Return the same numbers with all digits: value, lower and upper end, and the standing, of every network."""
        fields = ("", " lower", " upper", " at least", " against the first")
        head: list[Cell] = ["measure", "unit", *(f"{row.label}{each}" for row in self.rows for each in fields)]
        found: list[tuple[Cell, ...]] = [tuple(head)]
        for line in self.lines:
            cells: list[Cell] = [line.quantity.title, line.quantity.unit]
            for each, standing in zip(line.numbers, line.standings, strict=True):
                known = each or Estimate()
                cells += [known.value, known.lower, known.upper, known.at_least or None, standing]
            found.append(tuple(cells))
        return tuple(found)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return, as JSON holds them, the differences of every network to the first."""
        found = []
        for place, row in enumerate(self.rows[1:], 1):
            paired = _same_weights(row, self.rows[0])
            for line in self.lines:
                own, other = line.numbers[place], line.numbers[0]
                if own is not None and other is not None and own.known and other.known:
                    gap = difference(own.known, other.known, paired=paired)
                    names = {"part": line.quantity.section, "scalar": line.quantity.name, "title": line.quantity.title}
                    sides = {"of": row.key, "against": self.rows[0].key}
                    found.append({**names, **sides, **gap._asdict(), "standing": line.standings[place]})
        return found

    def growth(self) -> Section | None:
        """Return how the numbers of one network grow with its size; None where the networks are not of one kind."""
        sizes = [row.network.hidden_size for row in self.rows]
        kinds = {(row.network.name, str(dict(row.network.options))) for row in self.rows}
        if len(kinds) > 1 or any(not isinstance(each, int) for each in sizes) or len(set(sizes)) < 3:
            return None
        cells, figures = [], []
        for line in self.lines:
            counts = [float(row.network.parameters) for row in self.rows]
            known = [(n, each) for n, each in zip(counts, line.numbers, strict=True) if each and each.value is not None]
            if line.quantity.axis is None or len(known) < 3:
                continue
            cells.append([line.title, _slope([n for n, _ in known], [each.value or 0.0 for _, each in known])])
            figures.append(_grown(line, self.rows))
        columns = [
            Column(title="measure", numeric=False),
            Column(title="power of the parameters", numeric=True),
        ]
        table = Table(name="growth", title="Growth with size", columns=columns, rows=cells)
        text = "How each number changes with more units: the slope of its logarithm against that of the parameters."
        return Section(name="growth", title="Growth with size", text=(text,), figures=figures, tables=[table])


def _said(row: Row, quantity: Quantity) -> Estimate | None:
    """Return a network's number, or what stands in its place: a few words, as in "below 5"; None for neither."""
    found = number_of(row, quantity)
    if found is not None or not row.section(quantity.section).done:
        return found
    note = row.scalar(quantity)
    return note if note is not None and 0 < len(note.note) <= _SHORT else None


def _best(quantity: Quantity, numbers: Sequence[Estimate | None]) -> frozenset[int]:
    known = {place: each for place, each in enumerate(numbers) if each is not None and each.value is not None}
    if quantity.better is None or len(known) < 2:
        return frozenset()
    if quantity.better == "higher" and (cut := {place for place, each in known.items() if each.at_least}):
        open_ended = max(known[place].value or 0.0 for place in cut)
        if all((each.value or 0.0) <= open_ended for each in known.values()):
            return frozenset(cut)  # nobody knows which of them is the largest
    goods = {place: quantity.goodness(each.value or 0.0) for place, each in known.items()}
    return frozenset(place for place, good in goods.items() if good == max(goods.values()))


def _opposed(one: Quantity, two: Quantity) -> str:
    if one.axis is None or two.axis is None or not one.axis.about or one.axis.about != two.axis.about:
        return ""
    return f"{one.axis.name} asks {one.axis.asks}, {two.axis.name} {two.axis.asks}"


def _same_weights(a: Row, b: Row) -> bool:
    """Whether every seed draws the same weights for both: they then differ in the rest only, and pairs are fair."""
    return bool(a.settings.digests) and a.settings.digests == b.settings.digests


def _slope(parameters: Sequence[float], values: Sequence[float]) -> str:
    """Return the least-squares slope of ln |value| against ln parameters, with its 95% interval."""
    if any(value == 0 for value in values):
        return "\u2013"
    x, y = np.log(parameters), np.log(np.abs(values))
    x = x - x.mean()
    slope = float(x @ y / (x @ x))
    rest = y - y.mean() - slope * x
    error = math.sqrt(float(rest @ rest) / (len(x) - 2) / float(x @ x)) * student(len(x) - 2)
    return f"{number(slope, 2)} \u00b1 {number(error, 2)}"


def _grown(line: Line, rows: Sequence[Row]) -> Figure:
    counts = [float(row.network.parameters) for row in rows]
    found = [each or Estimate() for each in line.numbers]
    series = Series(
        entry=rows[0].key,
        x=counts,
        y=[each.value for each in found],
        lower=[each.value if each.lower is None else each.lower for each in found],
        upper=[each.value if each.upper is None else each.upper for each in found],
    )
    positive = all(each.value is not None and each.value > 0 for each in found)
    drawing = Curves(series=[series], x_title="parameters", y_title=line.title, log_x=True, log_y=positive, points=True)
    name = f"growth-{line.quantity.section}-{line.quantity.name.replace('_', '-')}"
    title = f"{line.title[:1].upper()}{line.title[1:]} as the network grows"
    return Figure(name=name, title=title, drawing=drawing, alt=f"{title}.", how=line.quantity.how)
