"""Summary of a profile in a few lines: one for every section, with its number beside what the references have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mnemoscope.core.numbers import number
from mnemoscope.profiles.drawing import spoken
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.section import ProfileSection
from mnemoscope.report import Statement

__all__ = ["Line", "identity", "lines", "table"]


class Line(NamedTuple):
    """A section in one line: what the number is, the number, and the references' range and median."""

    title: str
    found: str
    beside: str


def identity(row: Row) -> str:
    """Return what the network is, in one line."""
    network = row.network
    sizes = {
        "n": network.hidden_size,
        "d": network.input_size,
        "L": network.num_layers,
        "state": network.state_size,
    }
    said = [f"{short} = {size}" for short, size in sizes.items() if size is not None]
    said.append(f"{network.parameters:,} parameters")
    weights = "its own weights" if network.trained else _seeds(row)
    return f"{network.class_name} ({network.kind}): {', '.join(said)}; {weights}"


def table(sections: Sequence[ProfileSection], row: Row, references: Sequence[Row]) -> list[Line]:
    """Return one line for every section."""
    found = []
    for each in sections:
        if not each.concerns(row.network):
            continue
        entry = row.section(each.name)
        if not entry.done:
            found.append(Line(each.title, f"{entry.status}: {entry.reason}", ""))
        elif each.lead is not None and each.lead.name in entry.scalars:
            unit = each.lead.unit if each.lead.unit not in each.lead.title else ""
            words = ", ".join(word for word in (each.lead.title, unit) if word)
            found.append(Line(words, spoken(entry.scalars[each.lead.name]), _range(references, each.lead)))
    return found


def lines(
    sections: Sequence[ProfileSection],
    rows: Sequence[Row],
    references: Sequence[Row],
    verdict: Sequence[Statement],
) -> Iterator[str]:
    """Give the profile line by line, as plain text."""
    for row in rows:
        yield f"{row.label}: {identity(row)}"
        yield from (f"  note: {said}" for said in row.notices)
        for line in table(sections, row, references):
            beside = f"   references {line.beside}" if line.beside else ""
            yield f"  {line.title:<36} {line.found}{beside}"
    yield from (f"{statement.text} ({statement.confidence})" for statement in verdict)


def _seeds(row: Row) -> str:
    count = len(row.settings.seeds)
    return f"freshly initialised, {count} seed{'s' if count > 1 else ''}"


def _range(references: Sequence[Row], quantity: Quantity) -> str:
    found = [each.value for row in references if (each := row.number(quantity)) is not None]
    values = sorted(value for value in found if value is not None)
    if not values:
        return ""
    return f"{number(values[0])} to {number(values[-1])}, median {number(values[len(values) // 2])}"
