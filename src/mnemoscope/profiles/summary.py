"""A profile in a few lines: one for every part, with the number beside what the references have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mnemoscope.core.numbers import number
from mnemoscope.profiles.drawing import spoken
from mnemoscope.profiles.rows import Row, label, part, scalar, value
from mnemoscope.profiles.section import parts
from mnemoscope.report import Statement

__all__ = ["Line", "identity", "lines", "table"]

HEADLINES = {
    "card": ("multiply_adds", "multiply-adds per step"),
    "fisher": ("total", "total Fisher memory"),
    "capacity": ("linear", "linear memory capacity"),
    "gradients": ("rate", "gradient rate, nats per step back"),
    "spectrum": ("radius", "spectral radius"),
    "separation": ("soft_8", "soft separation rank, T = 8"),
}
"""The number that stands for a part; of others the first."""


class Line(NamedTuple):
    """A part in one line: what the number is, the number, and the references' range and median."""

    title: str
    found: str
    beside: str


def identity(row: Row) -> str:
    """Return what the network is, in one line."""
    network = row["network"]
    sizes = {"hidden_size": "n", "input_size": "d", "num_layers": "L", "state_size": "state"}
    said = [f"{short} = {network[name]}" for name, short in sizes.items() if network.get(name) is not None]
    said.append(f"{network['parameters']:,} parameters")
    weights = "its own weights" if network["weights"] == "trained" else _seeds(row)
    return f"{network['class']} ({network['kind']}): {', '.join(said)}; {weights}"


def table(row: Row, references: Sequence[Row]) -> list[Line]:
    """Return one line for every part."""
    found = []
    for each in parts():
        entry = part(row, each.name)
        if entry["status"] != "done":
            found.append(Line(each.title, f"{entry['status']}: {entry['reason']}", ""))
            continue
        scalars = entry["scalars"]
        name, title = HEADLINES.get(each.name, (next(iter(scalars), ""), each.title))
        if name in scalars:
            found.append(Line(title, spoken(scalar(row, each.name, name)), _range(references, each.name, name)))
    return found


def lines(rows: Sequence[Row], references: Sequence[Row], verdict: Sequence[Statement]) -> Iterator[str]:
    """Give the profile line by line, as plain text."""
    for row in rows:
        yield f"{label(row)}: {identity(row)}"
        yield from (f"  note: {said}" for said in row.get("notices", ()))
        for line in table(row, references):
            beside = f"   references {line.beside}" if line.beside else ""
            yield f"  {line.title:<36} {line.found}{beside}"
    yield from (f"{statement.text} ({statement.confidence})" for statement in verdict)


def _seeds(row: Row) -> str:
    count = len(row["settings"]["seeds"])
    return f"freshly initialised, {count} seed{'s' if count > 1 else ''}"


def _range(references: Sequence[Row], name: str, entry: str) -> str:
    values = sorted(found for row in references if (found := value(row, name, entry)) is not None)
    if not values:
        return ""
    return f"{number(values[0])} to {number(values[-1])}, median {number(values[len(values) // 2])}"
