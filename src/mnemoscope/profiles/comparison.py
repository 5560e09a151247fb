"""Comparison of networks: differences of their numbers to the first, with intervals over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mnemoscope.core.intervals import difference
from mnemoscope.core.numbers import number
from mnemoscope.profiles.drawing import slug, spoken
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.section import ProfileSection
from mnemoscope.report import Cell, Column, Headline, Section, Statement, Table

__all__ = ["Gap", "comparative_statements", "differences", "differences_section"]


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Difference of one number between two networks, with its 95% interval.

    Attributes
    ----------
    quantity
        What the number is.
    of, against
        The rows: the number of the one exceeds that of the other by `value`.
    how
        How the interval was found.
    clear
        Whether the interval leaves zero out.
    """

    quantity: Quantity
    of: Row
    against: Row
    value: float
    lower: float | None
    upper: float | None
    how: str
    clear: bool

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "part": self.quantity.section,
            "scalar": self.quantity.name,
            "title": self.quantity.title,
            "of": self.of.key,
            "against": self.against.key,
            "value": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "how": self.how,
            "clear": self.clear,
        }


def differences(sections: Sequence[ProfileSection], rows: Sequence[Row]) -> list[Gap]:
    """Return, for every network after the first, by how much each of its numbers exceeds the first's."""
    compared = [each for one in sections for each in one.quantities if each.compared]
    base = rows[0]
    found = []
    for row in rows[1:]:
        paired = _same_weights(row, base)
        for each in compared:
            own, other = _seeds(row, each), _seeds(base, each)
            if own and other:
                gap = difference(own, other, paired=paired)
                found.append(Gap(quantity=each, of=row, against=base, **gap._asdict(), clear=gap.clear))
    return found


def differences_section(sections: Sequence[ProfileSection], rows: Sequence[Row]) -> Section:
    """Draw the differences as a table for every network after the first."""
    found = differences(sections, rows)
    tables = []
    for place, row in enumerate(rows[1:], 1):
        own = [each for each in found if each.of is row]
        if own:
            tables.append(_table(place, row, rows[0], own))
    meaning = "are clear: their 95% interval leaves zero out"
    clear = Headline(value=f"{sum(each.clear for each in found)} of {len(found)}", unit="differences", meaning=meaning)
    return Section(
        name="differences",
        title="Differences",
        headline=clear,
        text=("To the first network. No correction for looking at many numbers is made.",),
        tables=tables,
        notes=tuple(dict.fromkeys(each.how.partition(",")[0] for each in found)),
    )


def comparative_statements(sections: Sequence[ProfileSection], rows: Sequence[Row]) -> tuple[Statement, ...]:
    """Say which differences are clear."""
    said = []
    for each in differences(sections, rows):
        if each.clear:
            more = "more" if each.value > 0 else "less"
            gap = f"{number(abs(each.value))} {more}"
            between = f"95% interval {number(each.lower)} to {number(each.upper)}; {each.how}"
            title = each.quantity.title[0].upper() + each.quantity.title[1:]
            text = f"{title}: {each.of.label} has {gap} than {each.against.label}."
            said.append(Statement(text=text, tone="neutral", confidence=between, evidence=(each.quantity.section,)))
    return tuple(said)


def _seeds(row: Row, quantity: Quantity) -> list[float]:
    found = row.number(quantity) if row.section(quantity.section).done else None
    return [] if found is None else list(found.known)


def _same_weights(a: Row, b: Row) -> bool:
    """Whether every seed draws the same weights for both: they then differ in the rest only, and pairs are fair."""
    return bool(a.settings.digests) and a.settings.digests == b.settings.digests


def _table(place: int, row: Row, base: Row, found: Sequence[Gap]) -> Table:
    columns = [Column(title="quantity", numeric=False)]
    columns += [Column(title=each.label, numeric=True) for each in (base, row)]
    columns += [Column(title="difference", numeric=True), Column(title="95% interval", numeric=True)]
    columns += [Column(title="how", numeric=False)]
    cells: list[list[Cell]] = []
    for each in found:
        between = "none" if each.lower is None else f"{number(each.lower)} to {number(each.upper)}"
        values = [spoken(one.scalar(each.quantity)) for one in (base, row)]
        cells.append([each.quantity.title, *values, number(each.value), between, each.how])
    title = f"{row.label} less {base.label}"
    return Table(name=slug("differences", place, row.key), title=title, columns=columns, rows=cells)
