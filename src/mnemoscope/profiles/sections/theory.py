"""What theory says: every theorem that applies to the network, with its numbers in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mnemoscope.core.references import reference
from mnemoscope.profiles import rows as row_of
from mnemoscope.profiles.drawing import slug
from mnemoscope.profiles.rows import Row
from mnemoscope.profiles.section import Context, Part, PartResult, part
from mnemoscope.report.page import Cell, Column, Headline, Section, Table
from mnemoscope.theory.theorems import TOPICS, claims, statements

__all__ = ["Theory"]

STATUS = {"exact": "exact", "bound": "bound", "conjecture": "conjecture", "none": "no theorem"}

_LEAD = (
    "What is proved or conjectured before anything is measured. A bound cannot be passed, an exact value is met by "
    "every measurement, and a conjecture has held in every case that was tried."
)

_COLUMNS = (
    Column(title="About", numeric=False),
    Column(title="What is known", numeric=False),
    Column(title="Value", numeric=True),
    Column(title="Status", numeric=False),
    Column(title="Source", numeric=False),
)


@part("theory", title="What theory says", order=20)
class Theory(Part):
    """Every theorem that applies, evaluated at this network's sizes and weights."""

    kinds = ("recurrent", "sequence", "classifier", "relational")
    once = True

    def seconds(self, network: Any, context: Context) -> float:
        """Return about how long it takes: most theorems are formulas, a few take an eigenvalue problem."""
        size = int(getattr(network, "state_size", None) or 1)
        return 0.1 + 2e-7 * size**3

    def run(self, network: Any, context: Context) -> PartResult:
        """Evaluate all theorems."""
        return PartResult(data={"statements": statements(network)})

    def section(self, rows: Sequence[Row], subjects: Sequence[str]) -> Section | None:
        """Show the statements of the networks that the page is about, a table each."""
        about = [row for row in rows if row_of.key(row) in subjects and row_of.is_done(row, "theory")]
        if not about:
            return None
        known = [_known(row) for row in about]
        counted = " / ".join(str(len(statements)) for statements in known)
        names = " / ".join(row_of.label(row) for row in about)
        return Section(
            name="theory",
            title=self.title,
            headline=Headline(value=counted, unit="theorems", meaning=f"say something of {names}, at its size"),
            text=(_LEAD,),
            tables=[_table(place, row) for place, row in enumerate(about, 1)],
            notes=tuple(_silence(row, len(about) > 1) for row in about if _silent(row)),
        )

    def references(self) -> tuple[str, ...]:
        """Return the sources of all theorems."""
        return tuple(dict.fromkeys(each.reference for each in claims() if each.topic and each.reference))

    def cited(self, rows: Sequence[Row]) -> tuple[str, ...]:
        """Return the sources of the theorems that say something of these networks."""
        return tuple(dict.fromkeys(s["reference"] for row in rows for s in _known(row) if s["reference"]))


def _statements(row: Row) -> list[dict[str, Any]]:
    return list(row_of.data(row, "theory").get("statements") or [])


def _known(row: Row) -> list[dict[str, Any]]:
    return [statement for statement in _statements(row) if statement["status"] != "none"]


def _silent(row: Row) -> list[str]:
    return [TOPICS.get(s["topic"], s["topic"]).lower() for s in _statements(row) if s["status"] == "none"]


def _silence(row: Row, several: bool) -> str:
    of = f" of {row_of.label(row)}" if several else ""
    return f"No theorem is known here about {', '.join(_silent(row))}{of}: these are measured only."


def _table(place: int, row: Row) -> Table:
    lines = [_line(statement) for statement in _statements(row)]
    note = "Weights as they were measured: statements that name them hold for these weights."
    title = f"Theorems about {row_of.label(row)}"
    return Table(name=slug("theory", place, row), title=title, columns=_COLUMNS, rows=lines, note=note)


def _line(statement: dict[str, Any]) -> list[Cell]:
    source = reference(statement["reference"]).short if statement["reference"] else ""
    topic = TOPICS.get(statement["topic"], statement["topic"])
    return [topic, statement["text"], statement["value"], STATUS[statement["status"]], source]
