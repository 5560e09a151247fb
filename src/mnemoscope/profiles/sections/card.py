"""The identity card: what the network is, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mnemoscope.core.numbers import number
from mnemoscope.measures import Resources
from mnemoscope.nn.parameters import COUNTED
from mnemoscope.profiles.drawing import command, notes, ranked, shown, spoken, subject_rows
from mnemoscope.profiles.rows import Row, key, label, scalar, value
from mnemoscope.profiles.section import Call, Context, Part, PartResult, Scalar, part
from mnemoscope.report import Cell, Column, Figure, Headline, Section, Table

__all__ = ["IdentityCard"]

_COLUMNS = {
    "parameters": "parameters",
    "state_size": "state",
    "multiply_adds": "multiply-adds per step",
    "step_microseconds": "time per step",
    "growth_exponent": "memory of training ~ T^p",
    "work_exponent": "work per step ~ T^p",
}


@part("card", title="Identity card", order=10)
class IdentityCard(Part):
    """Parameters, state, multiply-adds and time of a step, growth with the length; the same at every seed."""

    kinds = ("recurrent", "sequence", "classifier", "relational")
    once = True

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure of resources."""
        if context.facts.get("kind") not in ("recurrent", "sequence"):
            return ()
        lengths, repeats = ((32, 64, 128), 3) if context.quick else ((128, 256, 512), 5)
        return (Call("resources", {"lengths": lengths, "repeats": repeats}),)

    def seconds(self, network: Any, context: Context) -> float:
        """Return what streaming takes: some 2000 steps."""
        return (0.2 if context.quick else 0.5) * _layers(context)

    def run(self, network: Any, context: Context) -> PartResult:
        """Measure what the network costs."""
        parameters = Scalar(value=float(context.facts["parameters"]), unit="parameters")
        calls = self.calls(context)
        if not calls:
            return PartResult(scalars={"parameters": parameters}, notes=("a classifier has no steps to be timed",))
        found: Resources = calls[0](network, context.seed)
        growing = "" if found.state_size is not None else "it has no state of fixed size"
        size = None if found.state_size is None else float(found.state_size)
        return PartResult(
            scalars={
                "parameters": parameters,
                "state_size": Scalar(value=size, unit="numbers", note=growing),
                "multiply_adds": Scalar(value=float(found.multiply_adds), unit=""),
                "step_microseconds": Scalar(value=1e6 * float(found.step_p50[-1]), unit="µs"),
                "growth_exponent": Scalar(value=found.exponent),
                "work_exponent": Scalar(value=found.work_exponent),
            },
            data={"lengths": found.lengths, "memory": found.memory, "work": found.work},
            notes=found.assumptions,
        )

    def section(self, rows: Sequence[Row], subjects: Sequence[str]) -> Section | None:
        """Draw the card as a table of all networks, and the work of a step as a ranking."""
        own = subject_rows(rows, subjects, self.name)
        if not own:
            return None
        figures = [] if scalar(own[0], self.name, "multiply_adds") is None else [self._work(rows, subjects)]
        return Section(
            name=self.name,
            title=self.title,
            headline=Headline(
                value=number(own[0]["network"]["parameters"], 6), unit="parameters", meaning=_identity(own[0])
            ),
            text=(*(_sentence(row, len(own) > 1) for row in own), f"What counts: {COUNTED}."),
            figures=figures,
            tables=[self._table(shown(rows, self.name), subjects)],
            notes=notes(rows, subjects, self.name),
        )

    def _work(self, rows: Sequence[Row], subjects: Sequence[str]) -> Figure:
        return Figure(
            name="work-of-a-step",
            title="What one step costs",
            drawing=ranked(rows, self.name, "multiply_adds", "multiply-adds per step", log=True, better="lower"),
            alt="Multiply-adds of one step of every network, in order.",
            how="Counted from every tensor operation while a step runs; sums and functions such as tanh do not count.",
            command=command(rows, subjects, self.name, "resources"),
        )

    def _table(self, rows: Sequence[Row], subjects: Sequence[str]) -> Table:
        columns = [Column(title="network", numeric=False), Column(title="n", numeric=True)]
        columns += [Column(title=title, numeric=True) for title in _COLUMNS.values()]
        chosen = next((index for index, row in enumerate(rows) if key(row) in subjects), None)
        cells = [_cells(row) for row in rows]
        times = "Times are of the machine on which each row was measured"
        return Table(name="card", title="Cost", columns=columns, rows=cells, note=f"{times}, in µs.", highlight=chosen)

    def references(self) -> tuple[str, ...]:
        """Return who compared memories of training so."""
        return Resources.references


def _layers(context: Context) -> int:
    return int(context.facts.get("num_layers") or 1)


def _cells(row: Row) -> list[Cell]:
    numbers: list[Cell] = []
    for entry in _COLUMNS:
        found = scalar(row, "card", entry)
        numbers.append(None if found is None else found["value"])
    return [label(row), row["network"]["hidden_size"], *numbers]


def _identity(row: Row) -> str:
    network = row["network"]
    sizes = {"hidden_size": "n", "input_size": "d", "num_layers": "layers"}
    said = ", ".join(f"{short} = {network[name]}" for name, short in sizes.items() if network.get(name))
    return f"{network['class']} ({network['kind']}), {said}" if said else f"{network['class']} ({network['kind']})"


def _sentence(row: Row, named: bool) -> str:
    owner = f"{label(row)}: " if named else ""
    state, time = scalar(row, "card", "state_size"), scalar(row, "card", "step_microseconds")
    if state is None or time is None:
        return f"{owner}{_identity(row)}."
    size = "No state of fixed size" if state["value"] is None else f"A state of {number(state['value'], 6)} numbers"
    work = number(value(row, "card", "multiply_adds"), 6)
    return f"{owner}{size}, {work} multiply-adds and {spoken(time)} µs per step."
