"""Identity card of a network: its class and sizes, and its cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mnemoscope.core.numbers import number
from mnemoscope.measures import Resources
from mnemoscope.nn.parameters import COUNTED
from mnemoscope.nn.relational import Relational
from mnemoscope.profiles.drawing import SectionView, spoken
from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Cell, Column, Figure, Headline, Table

__all__ = ["IdentityCard"]

_COUNTED = "Counted from every tensor operation while a step runs; sums and functions such as tanh do not count."

_LARGE = 2048
"""Numbers in a state beyond which steps are timed over short sequences."""


@section("card", title="Identity card", order=10)
class IdentityCard(ProfileSection):
    """Parameters, state, multiply-adds and time of a step, growth with the length; the same at every seed."""

    kinds = ("recurrent", "sequence", "classifier", "relational")
    once = True
    references = Resources.references
    quantities = (
        Quantity(name="parameters", title="parameters", unit="parameters", least=0.0, how=COUNTED),
        Quantity(name="state_size", title="state", unit="numbers", least=0.0, how="Real numbers in the state."),
        Quantity(
            name="multiply_adds",
            title="multiply-adds per step",
            better="lower",
            least=0.0,
            how=_COUNTED,
            log=True,
            axis=Axis(
                name="cost per step",
                remedy="fewer units, a diagonal or low-rank transition, or a network with a parallel form",
                says="a step takes {value} multiply-adds",
                column="multiply-adds",
                place=7,
                margin=0.1,
                counted=True,
                weights=False,
            ),
        ),
        Quantity(
            name="step_microseconds",
            title="time per step",
            unit="µs",
            least=0.0,
            how="The median step of the longest sequence, on this machine.",
        ),
        Quantity(
            name="growth_exponent",
            title="memory of training ~ T^p",
            how="The slope of the logarithm of the memory that training takes against that of the length.",
        ),
        Quantity(
            name="work_exponent",
            title="work per step ~ T^p",
            how="The slope of the logarithm of a step's work against that of the length.",
        ),
    )
    leading = "multiply_adds"

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure of resources."""
        if context.facts.kind not in ("recurrent", "sequence"):
            return ()
        few = context.quick or context.state_size > _LARGE
        lengths, repeats = ((32, 64, 128), 3) if few else ((128, 256, 512), 5)
        return (Call("resources", {"lengths": lengths, "repeats": repeats}),)

    def run(self, network: Any, context: Context) -> Measurement:
        """Measure what the network costs."""
        parameters = Scalar(value=float(context.facts.parameters))
        calls = self.calls(context)
        if not calls:
            return Measurement(scalars={"parameters": parameters}, notes=_without_steps(network))
        found: Resources = calls[0](network, context)
        growing = "" if found.state_size is not None else "it has no state of fixed size"
        size = None if found.state_size is None else float(found.state_size)
        return Measurement(
            scalars={
                "parameters": parameters,
                "state_size": Scalar(value=size, note=growing),
                "multiply_adds": Scalar(value=float(found.multiply_adds)),
                "step_microseconds": _timed(1e6 * float(found.step_p50[-1]), "it cannot be streamed"),
                "growth_exponent": _timed(found.exponent),
                "work_exponent": _timed(found.work_exponent),
            },
            data={"lengths": found.lengths, "memory": found.memory, "work": found.work},
            notes=found.assumptions,
        )

    def headline(self, view: SectionView) -> Headline:
        """Return the number of parameters."""
        row = view.subjects[0]
        return Headline(value=number(row.network.parameters, 6), unit="parameters", meaning=_identity(row))

    def sentences(self, view: SectionView) -> tuple[str, ...]:
        """Return a sentence for each subject, and what counts as a parameter."""
        several = len(view.subjects) > 1
        return (*(self._sentence(row, several) for row in view.subjects), f"What counts: {COUNTED}.")

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the work of a step as a ranking."""
        work = self.quantity("multiply_adds")
        if view.subjects[0].scalar(work) is None:
            return ()
        return (view.ranking(work, "work-of-a-step", "What one step costs"),)

    def tables(self, view: SectionView) -> Sequence[Table]:
        """Return the card as a table of all networks."""
        columns = [Column(title="network", numeric=False), Column(title="n", numeric=True)]
        columns += [Column(title=each.title, numeric=True) for each in self.quantities]
        chosen = next((index for index, row in enumerate(view.rows) if row in view.subjects), None)
        note = "Times are of the machine on which each row was measured, in µs."
        cells = [self._cells(row) for row in view.rows]
        return (Table(name="card", title="Cost", columns=columns, rows=cells, note=note, highlight=chosen),)

    def _cells(self, row: Row) -> list[Cell]:
        found = [row.scalar(each) for each in self.quantities]
        return [row.label, row.network.hidden_size, *(None if each is None else each.value for each in found)]

    def _sentence(self, row: Row, named: bool) -> str:
        owner = f"{row.label}: " if named else ""
        state, time, work = (
            row.scalar(self.quantity(name)) for name in ("state_size", "step_microseconds", "multiply_adds")
        )
        if state is None or time is None or work is None:
            return f"{owner}{_identity(row)}."
        size = "No state of fixed size" if state.value is None else f"A state of {number(state.value, 6)} numbers"
        return f"{owner}{size}, {number(work.value, 6)} multiply-adds and {spoken(time)} µs per step."


def _timed(value: float, why: str = "it takes one number of steps only") -> Scalar:
    return Scalar(value=None, note=why) if math.isnan(value) else Scalar(value=value)


def _without_steps(network: Any) -> tuple[str, ...]:
    """Say why a network that answers once has no cost per step, and how large the encoder is that does not count."""
    if network.kind != "relational":
        return (f"a {network.kind} has no steps to be timed",)
    said = "A relational network answers once for all its images, and has no steps to be timed."
    if not isinstance(network, Relational):  # somebody's own, whose encoder is not known
        return (said,)
    left_out = number(sum(each.numel() for each in network.image_encoder.parameters()), 9)
    return (said, f"The count leaves out the encoder of images, which has {left_out} parameters.")


def _identity(row: Row) -> str:
    network = row.network
    sizes = {"n": network.hidden_size, "d": network.input_size, "layers": network.num_layers}
    said = ", ".join(f"{short} = {size}" for short, size in sizes.items() if size)
    return f"{network.class_name} ({network.kind}), {said}" if said else f"{network.class_name} ({network.kind})"
