"""State of a network: what is carried, what of it is read, and how much carries past inputs to future outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.core.errors import UserError
from mnemoscope.measures import EffectiveStateSize, HankelValues, StateInventory
from mnemoscope.profiles.drawing import SectionView, slug
from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Column, Curves, Figure, Table

__all__ = ["StateSection"]

_HOW = (
    "The rank, at a thousandth of the largest singular value, of the map from the inputs before a step to the outputs "
    "from it on, along trajectories under standard normal inputs; over the numbers in the state. Gates are held at "
    "their values where a network declares them, else the Jacobian is taken."
)
_READ = "By derivatives of later outputs at states that occur: zero means that nothing depends on a number."
_HANKEL = "Hankel singular values that hold this share of the sum of their squares; of linear networks."

_HORIZONS = {256: 448, 1024: 128}
_SHORT = 64
"""Most steps of the operator, by the numbers in a state."""

_TRAJECTORIES = {256: 2}

_TRANSFORMED = 512
"""Numbers in the state of a linear network up to which its Hankel values are found."""

_MANY = 1024
"""Numbers in a state beyond which a number counts as read where it is within 32 steps."""

_COLUMNS = (
    Column(title="tensor", numeric=False),
    Column(title="shape", numeric=False),
    Column(title="numbers", numeric=True),
    Column(title="bits", numeric=True),
    Column(title="grows as", numeric=False),
    Column(title="read next", numeric=True),
    Column(title="ever read", numeric=True),
)


def _up_to(size: int, table: dict[int, int], beyond: int) -> int:
    return next((value for most, value in table.items() if size <= most), beyond)


@section("state", title="The state, and how much of it is used", order=35)
class StateSection(ProfileSection):
    """Share of the state that is used, step by step; an inventory of its tensors; Hankel values of linear networks."""

    needs_causal = True
    averaged = ("share",)
    shares = ("share",)
    references = (*EffectiveStateSize.references, *HankelValues.references)
    text = (
        "A state may hold many numbers and use few: what counts is how many directions of it carry past inputs to "
        "future outputs. For a linear network these are its Hankel singular values, and the smallest network that does "
        "the same has as many units. Near the ends of a sequence the curve is limited by what is left of it."
    )
    quantities = (
        Quantity(
            name="used_share",
            title="share of the state used",
            better="higher",
            least=0.0,
            most=1.0,
            floor=0.01,
            how=_HOW,
            meaning="of the state carries past inputs to future outputs",
            compared=True,
            axis=Axis(
                name="share of the state used",
                says="{value} of the numbers in its state carry past inputs to future outputs",
                column="state used",
                place=9,
                about="memory",
                asks="how much of the state is in use at all, however long it lasts",
                remedy="orthogonal or diagonal transitions, a smaller state, or more inputs a step",
            ),
        ),
        Quantity(name="used", title="effective state-size", unit="directions", least=0.0, how=_HOW),
        Quantity(name="entropy_share", title="entropy rank over the state", least=0.0, most=1.0, how=_HOW),
        Quantity(
            name="ever_read", title="numbers of the state that are ever read", unit="numbers", least=0.0, how=_READ
        ),
        Quantity(name="droppable", title="numbers that can be dropped", unit="numbers", least=0.0, how=_READ),
        Quantity(name="bits", title="bits in the state", unit="bits", least=0.0, how="Counted."),
        Quantity(name="order_99", title="Hankel values for 99% of the energy", least=0.0, how=_HANKEL),
        Quantity(name="order_999", title="Hankel values for 99.9% of the energy", least=0.0, how=_HANKEL),
    )

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the effective state-size, of as many steps as there is time for, and the inventory."""
        size, inputs = context.state_size, context.facts.input_size or 1
        steps = int(np.clip(3.5 * size / inputs, 64, _up_to(size, _HORIZONS, _SHORT)))
        runs = 1 if context.quick else _up_to(size, _TRAJECTORIES, 1)
        return (
            Call("effective-state-size", {"horizon": steps, "trajectories": runs}),
            Call("state-inventory", {"horizon": 32} if size > _MANY else {}),
        )

    def seconds(self, network: Any, context: Context) -> float:
        """Return about how long it takes, Hankel values of a linear network included."""
        linear = context.pace is not None and context.pace.linear and context.state_size <= _TRANSFORMED
        return super().seconds(network, context) + (Call("hankel").seconds(context) if linear else 0.0)

    def run(self, network: Any, context: Context) -> Measurement:
        """Look at the state of one network."""
        use, stock = self.calls(context)
        used: EffectiveStateSize = use(network, context)
        carried: StateInventory = stock(network, context)
        size, cut = used.state_size or 1, f"window {use.options['horizon']}" if used.limited else ""
        linear = used.status == "exact"
        values = _hankel(network, context) if linear and size <= _TRANSFORMED else None
        left_out = f"Hankel values of more than {_TRANSFORMED} numbers take long: mnemoscope measure hankel."
        scalars = {
            "used_share": Scalar(value=used.total / size, stderr=used.stderr / size or None, at_least=cut),
            "used": Scalar(value=used.total, stderr=used.stderr or None, at_least=cut),
            "entropy_share": Scalar(value=used.entropy_total / size, at_least=cut),
            "ever_read": Scalar(value=float(carried.ever_read)),
            "droppable": Scalar(value=float(len(carried.droppable))),
            "bits": Scalar(value=float(carried.bits.sum())),
        }
        if values is not None:
            scalars["order_99"] = Scalar(value=float(values.order(0.99)))
            scalars["order_999"] = Scalar(value=float(values.order(0.999)))
        return Measurement(
            scalars=scalars,
            data={
                "place": used.steps / (use.options["horizon"]),
                "share": used.ranks / size,
                "tensors": _tensors(carried),
                "hankel": None if values is None else values.values[:64],
            },
            notes=(
                f"{carried}.",
                *(f"Assumed: {each}." for each in used.assumptions),
                *((left_out,) if linear and size > _TRANSFORMED else ()),
            ),
        )

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the share that is used, step by step, the ranking, and Hankel values where there are any."""
        over_time = Curves(
            series=view.curve("place", "share"),
            x_title="where past and future are cut (share of the sequence)",
            y_title="share of the state used",
        )
        return [
            view.figure("state-used", "How much of the state is used", over_time, _HOW),
            view.ranking(self.quantity("used_share"), "share-of-the-state-used", "Share of the state that is used"),
        ]

    def tables(self, view: SectionView) -> Sequence[Table]:
        """Return the inventory of every network that the page is about."""
        return [_table(place, row) for place, row in enumerate(view.subjects, 1)]


def _hankel(network: Any, context: Context) -> HankelValues | None:
    """Return the Hankel values of a linear network that forgets, else None."""
    try:
        found: HankelValues = Call("hankel")(network, context)
    except UserError:
        return None
    return found


def _tensors(carried: StateInventory) -> list[dict[str, Any]]:
    return [
        {
            "name": name + (" (written by forward)" if carried.outside[i] else ""),
            "shape": " x ".join(map(str, carried.shapes[i])) + f" {carried.dtypes[i]}",
            "numbers": int(carried.numbers[i]),
            "bits": int(carried.bits[i]),
            "growth": float(carried.growth[i]),
            "read": None if carried.read[i] < 0 else int(carried.read[i]),
            "used": None if carried.used[i] < 0 else int(carried.used[i]),
        }
        for i, name in enumerate(carried.names)
    ]


def _table(place: int, row: Row) -> Table:
    lines = [
        [
            each["name"],
            each["shape"],
            each["numbers"],
            each["bits"],
            "fixed" if not each["growth"] else f"T^{each['growth']:.2g}",
            each["read"],
            each["used"],
        ]
        for each in row.section("state").data.get("tensors") or ()
    ]
    title = f"What {row.label} carries from step to step"
    return Table(name=slug("inventory", place, row.key), title=title, columns=_COLUMNS, rows=lines)
