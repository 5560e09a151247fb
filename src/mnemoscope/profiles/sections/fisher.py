"""Fisher memory: how much the noisy state still tells of an input k steps ago."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.measures import NetworkFisherMemory
from mnemoscope.profiles.drawing import command, curve, headline, lag_grid, notes, ranked, subject_rows
from mnemoscope.profiles.rows import Row
from mnemoscope.profiles.section import Call, Context, Part, PartResult, Scalar, part
from mnemoscope.report import Curves, Figure, Section

__all__ = ["Fisher"]

_TEXT = (
    "J(k) says how well the state, with noise on every unit, tells the input of k steps ago: the inverse of the "
    "smallest variance with which it can be estimated. The curve of a network that forgets falls; the total is what"
    " is left of all past inputs together."
)

_NOTHING = 1e-12
"""Information below which nothing can be said of how it is spread: the states are zero but for rounding."""

_LARGE = 96
"""Numbers in a state from which on the seeds must do with fewer trajectories each: the time grows with their cube."""

_SHARE = 0.01
"""Of J(0), below which a lag is out of reach."""


@part("fisher", title="Fisher memory", order=30)
class Fisher(Part):
    """J(k) along driven trajectories, its total, half-life and reach."""

    needs_causal = True
    averaged = ("curve",)

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure of Fisher memory of any network."""
        few = (context.facts.get("state_size") or 0) > _LARGE
        if context.quick:
            return (Call("network-fisher", {"trajectories": 2 if few else 4, "longest": 256, "washout": 50}),)
        return (Call("network-fisher", {"trajectories": 4 if few else 8, "longest": 512}),)

    def seconds(self, network: Any, context: Context) -> float:
        """Return the time of trajectories x lags products of S x S matrices."""
        size = float(context.facts.get("state_size") or 64)
        return (0.25 if context.quick else 1.2) * max(0.5, math.pow(size / 64, 1.3))

    def run(self, network: Any, context: Context) -> PartResult:
        """Measure the curve of one network."""
        (call,) = self.calls(context)
        found: NetworkFisherMemory = call(network, context.seed)
        longest = int(call.options["longest"])
        curve = np.zeros(longest)
        curve[: len(found.curve)] = found.curve[:longest]
        lags = lag_grid(longest - 1)
        unsettled = "" if found.settled else f"the curve was followed for {found.horizon} lags and goes on"
        return PartResult(
            scalars={
                "total": Scalar(value=found.total, stderr=found.stderr, note=unsettled),
                "half_life": _half_life(found),
                "reach": _reach(found, unsettled),
            },
            data={"lags": lags, "curve": curve[lags], "units": found.size, "settled": found.settled},
            notes=tuple(f"Assumed: {each}." for each in found.assumptions),
        )

    def section(self, rows: Sequence[Row], subjects: Sequence[str]) -> Section | None:
        """Draw the curves and the totals."""
        if not subject_rows(rows, subjects, self.name):
            return None
        typed = command(rows, subjects, self.name, "network-fisher")
        how = (
            "Noise of variance 1 on every unit after every step; the signal enters along the unit input direction with "
            "the largest total; averaged over trajectories under standard normal inputs, then over seeds."
        )
        cite = NetworkFisherMemory.references
        drawn = Curves(
            series=curve(rows, self.name, "lags", "curve", shift=1),
            x_title="lag k + 1 (steps; the present is 1)",
            y_title="Fisher information J(k)",
            log_x=True,
            log_y=True,
            decades=8,
        )
        totals = ranked(rows, self.name, "total", "total Fisher memory", log=True, better="higher")
        halves = ranked(rows, self.name, "half_life", "lag by which half of the total is reached", better="higher")
        return Section(
            name=self.name,
            title=self.title,
            headline=headline(rows, subjects, self.name, "total", "Fisher information about all past inputs together"),
            text=(_TEXT,),
            figures=[
                _figure("fisher-curve", "What is left of an input after k steps", drawn, how, typed, cite),
                _figure("fisher-total", "Information about the whole past", totals, how, typed, cite),
                _figure("fisher-half-life", "How long half of it takes", halves, how, typed, cite),
            ],
            notes=notes(rows, subjects, self.name),
        )

    def references(self) -> tuple[str, ...]:
        """Return who defined it."""
        return NetworkFisherMemory.references


def _figure(name: str, title: str, drawing: Any, how: str, typed: str, cite: tuple[str, ...]) -> Figure:
    alt = f"{title}: the profiled network beside the references."
    return Figure(name=name, title=title, drawing=drawing, alt=alt, how=how, command=typed, references=cite)


def _half_life(found: NetworkFisherMemory) -> Scalar:
    if not found.total > _NOTHING:
        return Scalar(value=None, unit="steps", note="there is no information to halve")
    reached = np.flatnonzero(np.cumsum(found.curve) >= found.total / 2)
    return Scalar(value=float(reached[0]) if len(reached) else float(len(found.curve) - 1), unit="steps")


def _reach(found: NetworkFisherMemory, unsettled: str) -> Scalar:
    if not (found.total > _NOTHING and found.curve[0] > 0):
        return Scalar(value=None, unit="steps", note="the state tells nothing of the present input")
    last = int(np.flatnonzero(found.curve >= _SHARE * found.curve[0])[-1])
    beyond = unsettled if last == len(found.curve) - 1 else ""
    return Scalar(value=float(last), unit="steps", note=beyond)
