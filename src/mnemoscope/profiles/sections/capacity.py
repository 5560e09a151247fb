"""Memory capacity: how much of the past input a linear readout of the state recovers, and of products of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.measures import MemoryCapacity
from mnemoscope.profiles.drawing import command, curve, headline, lag_grid, notes, ranked, subject_rows
from mnemoscope.profiles.rows import Row
from mnemoscope.profiles.section import Call, Context, Part, PartResult, Scalar, part
from mnemoscope.report import Curves, Figure, Section

__all__ = ["Capacity"]

_DEGREE = 3
"""Tanh networks without biases are odd functions: their products have an odd degree."""

_TEXT = (
    "The share of the variance of the input k steps ago that the best linear readout of the state recovers. Summed "
    "over all lags and over all products of past inputs it cannot exceed the numbers in the state: what a network "
    "spends on products, it does not have for plain memory."
)

_ENDS = 256
"""The longest lag that is drawn."""


@part("capacity", title="Memory capacity", order=40)
class Capacity(Part):
    """Linear capacity by lag, and the capacity for products of two and three past inputs."""

    needs_causal = True
    averaged = ("linear", "degrees")

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure of memory capacity, with chance taken out."""
        options: dict[str, Any] = {"degree": _DEGREE, "threshold": True}
        if context.quick:
            options["samples"] = max(2048, 16 * _size(context))
        return (Call("memory-capacity", options),)

    def seconds(self, network: Any, context: Context) -> float:
        """Return the time of some 8000 products of as many states."""
        return (0.4 if context.quick else 1.7) * max(0.5, math.pow(_size(context) / 64, 0.8))

    def run(self, network: Any, context: Context) -> PartResult:
        """Measure the capacities of one network."""
        (call,) = self.calls(context)
        found: MemoryCapacity = call(network, context.seed)
        linear, nonlinear = float(found.by_degree[0]), float(found.by_degree[1:].sum())
        lost = _lost(found)
        share = linear / found.size
        lags = lag_grid(min(_ENDS, len(found.curve) - 1))
        return PartResult(
            scalars={
                "linear": _known(linear, lost, "lags"),
                "nonlinear": _known(nonlinear, lost, "products"),
                "linear_share": _known(share, lost, ""),
                "reach": _reach(found, lost),
            },
            data={
                "lags": lags,
                "linear": None if lost else found.curve[lags],
                "degrees": None if lost else found.by_degree,
                "size": found.size,
                "exact": found.status == "exact",
                "stderr": found.stderr,
            },
            notes=tuple(f"Assumed: {each}." for each in found.assumptions),
        )

    def section(self, rows: Sequence[Row], subjects: Sequence[str]) -> Section | None:
        """Draw the curve by lag, the linear total, and that of products."""
        if not subject_rows(rows, subjects, self.name):
            return None
        typed = command(rows, subjects, self.name, "memory-capacity")
        how = (
            "A white input, uniform on [-1, 1], drives the network; ridge regressions on the state are fitted on three "
            "quarters of the sequences and scored on the fourth, in turn; what chance explains is set to zero. Linear "
            "networks are computed exactly."
        )
        drawn = Curves(
            series=curve(rows, self.name, "lags", "linear", shift=1),
            x_title="lag k + 1 (steps; the present is 1)",
            y_title="share of u(t-k) recovered",
            log_x=True,
        )
        return Section(
            name=self.name,
            title=self.title,
            headline=headline(
                rows, subjects, self.name, "linear", "past inputs that a linear readout of the state recovers, in all"
            ),
            text=(_TEXT,),
            figures=[
                _figure("capacity-curve", "How far back the input can be read off", drawn, how, typed),
                _figure("capacity-linear", "Plain memory", _ranked(rows, "linear", "linear capacity"), how, typed),
                _figure(
                    "capacity-nonlinear",
                    "Memory for products",
                    _ranked(rows, "nonlinear", f"capacity of degrees 2 to {_DEGREE}"),
                    how,
                    typed,
                ),
            ],
            notes=notes(rows, subjects, self.name),
        )

    def references(self) -> tuple[str, ...]:
        """Return who defined it."""
        return MemoryCapacity.references


def _size(context: Context) -> int:
    return int(context.facts.get("state_size") or 64)


def _lost(found: MemoryCapacity) -> str:
    """Say that an estimate is none: where states differ by orders of magnitude, single ones decide the fit."""
    if found.total > found.size + 3 * found.stderr or found.stderr > found.size / 2:
        return "it cannot be estimated, since the states differ too much in size for a fit"
    return ""


def _known(value: float | None, lost: str, unit: str, note: str = "") -> Scalar:
    return Scalar(value=None if lost else value, unit=unit, note=lost or note)


def _reach(found: MemoryCapacity, lost: str) -> Scalar:
    """Return the largest lag of which at least half of the input's variance is recovered."""
    above = np.flatnonzero(found.curve >= 0.5)
    if not len(above):
        return _known(None, lost, "steps", "at no lag is half of the input recovered")
    last = int(above[-1])
    return _known(
        float(last), lost, "steps", "it is the last lag that was tried" if last == len(found.curve) - 1 else ""
    )


def _ranked(rows: Sequence[Row], entry: str, title: str) -> Any:
    return ranked(rows, "capacity", entry, title, better="higher")


def _figure(name: str, title: str, drawing: Any, how: str, typed: str) -> Figure:
    alt = f"{title}: the profiled network beside the references."
    cite = MemoryCapacity.references
    return Figure(name=name, title=title, drawing=drawing, alt=alt, how=how, command=typed, references=cite)
