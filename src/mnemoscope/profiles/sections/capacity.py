"""Memory capacity: how much of the past input a linear readout of the state recovers, and of products of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.measures import MemoryCapacity
from mnemoscope.profiles.drawing import SectionView, lag_grid
from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Curves, Figure

__all__ = ["Capacity"]

_DEGREE = 3
"""Tanh networks without biases are odd functions: their products have an odd degree."""

_READ = {False: 2048, True: 1024}
"""Numbers in a state up to which all are read, by `quick`; beyond, so many sums of them, which gives a lower bound:"""
_SUMS = {False: 1024, True: 512}

_ENDS = 256
"""The longest lag that is drawn."""

_HOW = (
    "A white input, uniform on [-1, 1], drives the network; ridge regressions on the state are fitted on three "
    "quarters of the sequences and scored on the fourth, in turn; what chance explains is set to zero. Linear "
    "networks are computed exactly."
)
_LIMIT = ("state_size", "the numbers in its state")


@section("capacity", title="Memory capacity", order=40)
class Capacity(ProfileSection):
    """Linear capacity by lag, and the capacity for products of two and three past inputs."""

    needs_causal = True
    averaged = ("linear", "degrees")
    shares = ("linear",)
    references = MemoryCapacity.references
    text = (
        "The share of the variance of the input k steps ago that the best linear readout of the state recovers. Summed "
        "over all lags and over all products of past inputs it cannot exceed the numbers in the state: what a network "
        "spends on products, it does not have for plain memory."
    )
    quantities = (
        Quantity(
            name="linear",
            title="linear memory capacity",
            unit="lags",
            better="higher",
            least=0.0,
            floor=0.1,
            how=_HOW,
            meaning="past inputs that a linear readout of the state recovers, in all",
            top=True,
            compared=True,
            axis=Axis(
                name="plain memory",
                remedy="a transition nearer to orthogonal, a smaller scale of the inputs, more units",
                says="a linear readout of its state recovers {value} past inputs in all",
                column="linear",
                place=3,
                about="memory",
                asks="how many past inputs a readout recovers from a state without noise, which many faint traces "
                "answer as well as strong ones",
                limit=_LIMIT,
            ),
        ),
        Quantity(
            name="nonlinear",
            title="capacity for products",
            unit="products",
            better="higher",
            least=0.0,
            floor=0.1,
            how=_HOW,
            compared=True,
            axis=Axis(
                name="products of inputs",
                remedy="a larger scale of the inputs, a stronger nonlinearity, or a network of products (rac, 2rnn)",
                says="a linear readout recovers {value} products of two or three past inputs",
                column="nonlinear",
                place=4,
                limit=_LIMIT,
            ),
        ),
        Quantity(name="linear_share", title="share of the state spent on plain memory", least=0.0, most=1.0, how=_HOW),
        Quantity(name="reach", title="reach of plain memory", unit="steps", better="higher", least=0.0, how=_HOW),
    )

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure of memory capacity, with chance taken out."""
        options: dict[str, Any] = {"degree": _DEGREE, "threshold": True}
        size, most = context.state_size, _READ[context.quick]
        summed = size > most
        if summed:
            options["sums"] = size = _SUMS[context.quick]
        if context.quick or summed:
            options["samples"] = max(2048, 16 * size if size <= 512 and not summed else 8 * (size + 2))
        return (Call("memory-capacity", options),)

    def run(self, network: Any, context: Context) -> Measurement:
        """Measure the capacities of one network."""
        (call,) = self.calls(context)
        found: MemoryCapacity = call(network, context)
        linear = float(found.by_degree[0])
        nonlinear = float(found.by_degree[1:].sum()) if len(found.by_degree) > 1 else None
        # Shares of inputs that are not white may sum to more than the units.
        lost, whole = "" if context.inputs is not None else _lost(found), max(found.size, found.state_size)
        lags = lag_grid(min(_ENDS, len(found.curve) - 1))
        return Measurement(
            scalars={
                "linear": _known(linear, lost, _cut(found), most=whole),
                "nonlinear": _known(nonlinear, lost, _cut(found), most=whole)
                if nonlinear is not None
                else Scalar(value=None, note="products of inputs that are not white tell of each other"),
                "linear_share": _known(linear / whole, lost, _cut(found)),
                "reach": _reach(found, lost),
            },
            data={
                "lags": lags,
                "linear": None if lost else found.curve[lags],
                "degrees": None if lost else found.by_degree,
                "size": whole,
                "ridge": found.regularisation,
                "exact": found.status == "exact",
                "stderr": found.stderr,
            },
            notes=tuple(f"Assumed: {each}." for each in found.assumptions),
        )

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the curve by lag, the linear total, and that of products."""
        drawn = Curves(
            series=view.curve("lags", "linear", shift=1),
            x_title="lag k + 1 (steps; the present is 1)",
            y_title="share of u(t-k) recovered",
            log_x=True,
        )
        return [
            view.figure("capacity-curve", "How far back the input can be read off", drawn, _HOW),
            view.ranking(self.quantity("linear"), title="Plain memory"),
            view.ranking(self.quantity("nonlinear"), title="Memory for products"),
        ]


def _lost(found: MemoryCapacity) -> str:
    """Say that an estimate is none: where states differ by orders of magnitude, single ones decide the fit."""
    if found.total > found.size + 3 * found.stderr or found.stderr > found.size / 2:
        return "it cannot be estimated, since the states differ too much in size for a fit"
    return ""


def _cut(found: MemoryCapacity) -> str:
    """Say what was read of the state where that was not all of it."""
    return f"{found.size:,} sums" if found.size < found.state_size else ""


def _known(value: float | None, lost: str, at_least: str = "", *, most: float | None = None) -> Scalar:
    return Scalar(value=None if lost else value, note=lost, most=most, at_least="" if lost else at_least)


def _reach(found: MemoryCapacity, lost: str) -> Scalar:
    """Return the largest lag of which at least half of the input's variance is recovered."""
    above = np.flatnonzero(found.curve >= 0.5)
    if not len(above):
        return Scalar(value=None, note=lost or "at no lag is half of the input recovered")
    last = int(above[-1])
    return _known(float(last), lost, f"window {len(found.curve)}" if last == len(found.curve) - 1 else "")
