"""Parity of a network's forms: whether step by step, whole sequences, parallel and chunked are one function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.measures import ModeParity
from mnemoscope.profiles.drawing import SectionView, slug
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Column, Figure, Table

__all__ = ["ParitySection"]

_HOW = (
    "The largest difference between whole sequences in every form and calling step for one input after the other, by "
    "the largest number that it is about: outputs, last states, and gradients at inputs and parameters."
)

_LARGE = 256
"""Numbers in a state beyond which short sequences have to do."""

_LARGEST = 2048
"""Numbers in a state beyond which forms are compared in one type of number, over short sequences."""

_COLUMNS = (
    Column(title="form", numeric=False),
    Column(title="type", numeric=False),
    Column(title="steps", numeric=True),
    Column(title="outputs", numeric=True),
    Column(title="last state", numeric=True),
    Column(title="gradients", numeric=True),
    Column(title="parts at step", numeric=True),
)


@section("parity", title="Are all its forms one function?", order=12)
class ParitySection(ProfileSection):
    """Differences between the forms of a network, by number type and length, and where its states overflow."""

    needs_causal = True
    once = True
    text = (
        "If the ways to run a network are not one function, nothing that is measured of it means what it says. "
        "Compared are outputs, last states and gradients; a state carried over a cut, later inputs, other examples and "
        "a second call must change nothing."
    )
    quantities = (
        Quantity(
            name="difference",
            title="largest difference between forms in its own number type",
            least=0.0,
            how=_HOW,
            meaning="is the largest difference between two ways to run it",
        ),
        Quantity(name="disagreements", title="ways in which forms disagree", least=0.0, how=_HOW),
    )

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return mode parity at lengths that a profile has time for."""
        short = context.quick or context.state_size > _LARGE
        lengths = (1, 8, 65) if short else (1, 8, 65, 512)
        types: tuple[str, ...] = ("float32", "float64") if short else ("float32", "float64", "bfloat16")
        if context.state_size > _LARGEST:
            lengths, types = (1, 8, 33), ("float32",)
        return (Call("mode-parity", {"lengths": lengths, "dtypes": types}),)

    def run(self, network: Any, context: Context) -> Measurement:
        """Compare the forms of one network."""
        (call,) = self.calls(context)
        found: ModeParity = call(network, context)
        own = found.dtypes.index("float32") if "float32" in found.dtypes else 0
        worst = float(max(found.outputs[own].max(), found.states[own].max()))
        # In bfloat16 each product is rounded to three digits: forms that round in another order part, and are no other
        # function. The table and the notes say so; what is told of the network is of its own type and of float64.
        told = [each for each in found.differences if "bfloat16" not in each]
        return Measurement(
            scalars={
                "difference": Scalar(value=worst if np.isfinite(worst) else None, note=_infinite(worst)),
                "disagreements": Scalar(value=float(len(told))),
            },
            data={
                "rows": _rows(found),
                "steps": int(found.lengths[-1]),
                "differences": told,
                "overflows": list(found.overflows),
            },
            notes=(
                *(f"{each[:1].upper()}{each[1:]}." for each in (*found.differences, *found.overflows)),
                *(f"{name} was not run: {said}" for name, said in found.refused.items()),
            ),
        )

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return none: the differences are numbers to be read."""
        return ()

    def tables(self, view: SectionView) -> Sequence[Table]:
        """Return the differences of every network that the page is about."""
        return [_table(place, row) for place, row in enumerate(view.subjects, 1)]


def _infinite(worst: float) -> str:
    return "" if np.isfinite(worst) else "one form is not finite where another is"


def _rows(found: ModeParity) -> list[list[Any]]:
    return [
        [
            form,
            dtype,
            int(length),
            *(float(each[i, j, k]) for each in (found.outputs, found.states, found.gradients)),
            int(found.parts[i, j, k]) or None,
        ]
        for j, form in enumerate(found.forms)
        for i, dtype in enumerate(found.dtypes)
        for k, length in enumerate(found.lengths)
    ]


def _table(place: int, row: Row) -> Table:
    lines = [
        [*line[:3], *(None if gap is None else float(f"{gap:.2g}") for gap in line[3:6]), line[6]]
        for line in row.section("parity").data.get("rows") or ()
    ]
    note = "Differences from calling step for one input after the other, by the largest number."
    return Table(
        name=slug("parity", place, row.key), title=f"Forms of {row.label}", columns=_COLUMNS, rows=lines, note=note
    )
