"""How far two networks are apart: differences of their numbers, with intervals over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mnemoscope.core.intervals import difference
from mnemoscope.core.numbers import number
from mnemoscope.profiles.drawing import slug, spoken
from mnemoscope.profiles.rows import Row, is_done, key, label, scalar
from mnemoscope.report import Cell, Column, Headline, Section, Statement, Table

__all__ = ["COMPARED", "comparative_statements", "differences", "differences_section"]

COMPARED = (
    ("fisher", "total", "total Fisher memory"),
    ("fisher", "half_life", "Fisher half-life"),
    ("capacity", "linear", "linear memory capacity"),
    ("capacity", "nonlinear", "capacity for products"),
    ("gradients", "rate", "gradient rate"),
    ("gradients", "lyapunov_max", "largest Lyapunov exponent"),
    ("spectrum", "radius", "spectral radius"),
    ("spectrum", "henrici_relative", "departure from normality"),
    ("separation", "soft_8", "soft separation rank at T = 8"),
)
"""What is compared: part, scalar, and what it is called."""


def differences(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return, for every network after the first, by how much each of its numbers exceeds the first's."""
    base = rows[0]
    found = []
    for row in rows[1:]:
        paired = _same_weights(row, base)
        for part, entry, title in COMPARED:
            own, other = _seeds(row, part, entry), _seeds(base, part, entry)
            if own and other:
                gap = difference(own, other, paired=paired)
                what = {"part": part, "scalar": entry, "title": title, "of": key(row), "against": key(base)}
                found.append({**what, **gap._asdict(), "clear": gap.clear})
    return found


def differences_section(rows: Sequence[Row]) -> Section:
    """Draw the differences as a table for every network after the first."""
    found = differences(rows)
    names = {key(row): row for row in rows}
    tables = []
    for place, row in enumerate(rows[1:], 1):
        own = [each for each in found if each["of"] == key(row)]
        if own:
            tables.append(_table(place, row, names[own[0]["against"]], own))
    meaning = "are clear: their 95% interval leaves zero out"
    clear = Headline(
        value=f"{sum(each['clear'] for each in found)} of {len(found)}", unit="differences", meaning=meaning
    )
    return Section(
        name="differences",
        title="Differences",
        headline=clear,
        text=("To the first network. No correction for looking at many numbers is made.",),
        tables=tables,
        notes=tuple(dict.fromkeys(each["how"].partition(",")[0] for each in found)),
    )


def comparative_statements(rows: Sequence[Row]) -> tuple[Statement, ...]:
    """Say which differences are clear."""
    said = []
    names = {key(row): label(row) for row in rows}
    for each in differences(rows):
        if each["clear"]:
            more = "more" if each["value"] > 0 else "less"
            gap = f"{number(abs(each['value']))} {more}"
            between = f"95% interval {number(each['lower'])} to {number(each['upper'])}; {each['how']}"
            title = each["title"][0].upper() + each["title"][1:]
            text = f"{title}: {names[each['of']]} has {gap} than {names[each['against']]}."
            said.append(Statement(text=text, tone="neutral", confidence=between, evidence=(each["part"],)))
    return tuple(said)


def _seeds(row: Row, part: str, entry: str) -> list[float]:
    found = scalar(row, part, entry) if is_done(row, part) else None
    return [] if found is None else [value for value in found["seeds"] if value is not None]


def _same_weights(a: Row, b: Row) -> bool:
    """Whether every seed draws the same weights for both: they then differ in the rest only, and pairs are fair."""
    return bool(a["settings"].get("digests")) and a["settings"]["digests"] == b["settings"].get("digests")


def _table(place: int, row: Row, base: Row, found: Sequence[dict[str, Any]]) -> Table:
    columns = [Column(title="quantity", numeric=False)]
    columns += [Column(title=label(each), numeric=True) for each in (base, row)]
    columns += [Column(title="difference", numeric=True), Column(title="95% interval", numeric=True)]
    columns += [Column(title="how", numeric=False)]
    cells: list[list[Cell]] = []
    for each in found:
        between = "none" if each["lower"] is None else f"{number(each['lower'])} to {number(each['upper'])}"
        values = [spoken(scalar(one, each["part"], each["scalar"])) for one in (base, row)]
        cells.append([each["title"], *values, number(each["value"]), between, each["how"]])
    title = f"{label(row)} less {label(base)}"
    return Table(name=slug("differences", place, row), title=title, columns=columns, rows=cells)
