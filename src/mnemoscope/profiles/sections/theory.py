"""Theorems that apply to a network, with its numbers in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mnemoscope.profiles.drawing import SectionView, slug
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.section import Context, Measurement, ProfileSection, section
from mnemoscope.report import Cell, Column, Headline, Table
from mnemoscope.theory.theorems import TOPICS, statements

__all__ = ["Theory"]

STATUS = {"exact": "exact", "bound": "bound", "conjecture": "conjecture", "none": "no theorem"}

_COLUMNS = (
    Column(title="About", numeric=False),
    Column(title="What is known", numeric=False),
    Column(title="Value", numeric=True),
    Column(title="Status", numeric=False),
    Column(title="Source", numeric=False),
)


@section("theory", title="What theory says", order=20)
class Theory(ProfileSection):
    """Every theorem that applies, evaluated at this network's sizes and weights."""

    kinds = ("recurrent", "sequence", "classifier", "relational")
    once = True
    text = (
        "What is proved or conjectured before anything is measured. A bound cannot be passed, an exact value is met by "
        "every measurement, and a conjecture has held in every case that was tried."
    )

    def seconds(self, network: Any, context: Context) -> float:
        """Return about how long it takes: most theorems are formulas of sizes, those on linear networks look at W."""
        linear = context.pace is not None and context.pace.linear
        return (0.05 + (2e-6 * min(context.state_size, 512) ** 2 if linear else 0.0)) * context.load

    def run(self, network: Any, context: Context) -> Measurement:
        """Evaluate all theorems."""
        return Measurement(data={"statements": statements(network)})

    def headline(self, view: SectionView) -> Headline:
        """Return how many theorems say something of each network."""
        counted = " / ".join(str(len(_known(row))) for row in view.subjects)
        names = " / ".join(row.label for row in view.subjects)
        return Headline(value=counted, unit="theorems", meaning=f"say something about {names} at its size")

    def tables(self, view: SectionView) -> Sequence[Table]:
        """Return the statements of the networks that the page is about, a table each."""
        return [_table(place, row) for place, row in enumerate(view.subjects, 1)]

    def notes(self, view: SectionView) -> tuple[str, ...]:
        """Return about what no theorem is known."""
        several = len(view.subjects) > 1
        return tuple(_silence(row, several) for row in view.subjects if _silent(row))

    def cited(self, rows: Sequence[Row]) -> tuple[str, ...]:
        """Return the sources of the theorems that say something of these networks."""
        return tuple(dict.fromkeys(s["reference"] for row in rows for s in _known(row) if s["reference"]))


def _statements(row: Row) -> list[dict[str, Any]]:
    return list(row.section("theory").data.get("statements") or [])


def _known(row: Row) -> list[dict[str, Any]]:
    return [statement for statement in _statements(row) if statement["status"] != "none"]


def _silent(row: Row) -> list[str]:
    return [TOPICS.get(s["topic"], s["topic"]).lower() for s in _statements(row) if s["status"] == "none"]


def _silence(row: Row, several: bool) -> str:
    of = f" of {row.label}" if several else ""
    return f"No theorem is known here about {', '.join(_silent(row))}{of}: these are measured only."


def _table(place: int, row: Row) -> Table:
    lines = [_line(statement) for statement in _statements(row)]
    note = "Weights as they were measured: statements that name them hold for these weights."
    title = f"Theorems about {row.label}"
    return Table(name=slug("theory", place, row.key), title=title, columns=_COLUMNS, rows=lines, note=note, cards=True)


def _line(statement: dict[str, Any]) -> list[Cell]:
    topic = TOPICS.get(statement["topic"], statement["topic"])
    return [topic, statement["text"], statement["value"], STATUS[statement["status"]], statement.get("source", "")]
