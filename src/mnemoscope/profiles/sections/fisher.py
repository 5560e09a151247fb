"""Fisher memory: how much the noisy state still tells of an input k steps ago."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.measures import NetworkFisherMemory
from mnemoscope.profiles.drawing import SectionView, lag_grid
from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Curves, Figure

__all__ = ["Fisher"]

_HOW = (
    "Noise of variance 1 on every unit after every step; the signal enters along the unit input direction with "
    "the largest total; averaged over trajectories under standard normal inputs, then over seeds."
)

_NOTHING = 1e-12
"""Information below which nothing can be said of how it is spread: the states are zero but for rounding."""

_LARGE = 96
"""Numbers in a state from which on the seeds must do with fewer trajectories each: the time grows with their cube."""

_SHARE = 0.01
"""Of J(0), below which a lag is out of reach."""


@section("fisher", title="Fisher memory", order=30)
class Fisher(ProfileSection):
    """J(k) along driven trajectories, its total, half-life and reach."""

    needs_causal = True
    averaged = ("curve",)
    references = NetworkFisherMemory.references
    text = (
        "J(k) says how well the state, with noise on every unit, tells the input of k steps ago: the inverse of the "
        "smallest variance with which it can be estimated. The curve of a network that forgets falls; the total is what"
        " is left of all past inputs together."
    )
    quantities = (
        Quantity(
            name="total",
            title="total Fisher memory",
            better="higher",
            least=0.0,
            how=_HOW,
            meaning="Fisher information about all past inputs together",
            log=True,
            top=True,
            compared=True,
            axis=Axis(
                name="remembering under noise",
                says="with noise of variance 1 on every unit its state holds a Fisher information of {value} about the "
                "past",
                column="Fisher total",
            ),
        ),
        Quantity(
            name="half_life",
            title="Fisher half-life",
            unit="steps",
            better="higher",
            least=0.0,
            how=_HOW,
            top=True,
            compared=True,
            axis=Axis(
                name="remembering for long",
                says="half of its Fisher information is about inputs at most {value} steps old",
                column="half-life",
            ),
        ),
        Quantity(name="reach", title="reach of Fisher memory", unit="steps", better="higher", least=0.0, how=_HOW),
    )

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure of Fisher memory of any network."""
        few = (context.facts.state_size or 0) > _LARGE
        if context.quick:
            return (Call("network-fisher", {"trajectories": 2 if few else 4, "longest": 256, "washout": 50}),)
        return (Call("network-fisher", {"trajectories": 4 if few else 8, "longest": 512}),)

    def run(self, network: Any, context: Context) -> Measurement:
        """Measure the curve of one network."""
        (call,) = self.calls(context)
        found: NetworkFisherMemory = call(network, context)
        longest = int(call.options["longest"])
        curve = np.zeros(longest)
        curve[: len(found.curve)] = found.curve[:longest]
        lags = lag_grid(longest - 1)
        unsettled = "" if found.settled else f"the curve was followed for {found.horizon} lags and goes on"
        return Measurement(
            scalars={
                "total": Scalar(value=found.total, stderr=found.stderr, note=unsettled),
                "half_life": _half_life(found),
                "reach": _reach(found, unsettled),
            },
            data={"lags": lags, "curve": curve[lags], "units": found.size, "settled": found.settled},
            notes=tuple(f"Assumed: {each}." for each in found.assumptions),
        )

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the curves, the totals and the half-lives."""
        drawn = Curves(
            series=view.curve("lags", "curve", shift=1),
            x_title="lag k + 1 (steps; the present is 1)",
            y_title="Fisher information J(k)",
            log_x=True,
            log_y=True,
            decades=8,
        )
        return [
            view.figure("fisher-curve", "What is left of an input after k steps", drawn, _HOW),
            view.ranking(self.quantity("total"), title="Information about the whole past"),
            view.ranking(self.quantity("half_life"), title="How long half of it takes"),
        ]


def _half_life(found: NetworkFisherMemory) -> Scalar:
    """Return the lag by which half of the total is reached."""
    if not found.total > _NOTHING:
        return Scalar(value=None, note="there is no information to halve")
    reached = np.flatnonzero(np.cumsum(found.curve) >= found.total / 2)
    return Scalar(value=float(reached[0]) if len(reached) else float(len(found.curve) - 1), at_least=_window(found))


def _reach(found: NetworkFisherMemory, unsettled: str) -> Scalar:
    """Return the last lag of which at least a hundredth of the present information is left."""
    if not (found.total > _NOTHING and found.curve[0] > 0):
        return Scalar(value=None, note="the state tells nothing of the present input")
    last = int(np.flatnonzero(found.curve >= _SHARE * found.curve[0])[-1])
    return Scalar(value=float(last), note=unsettled, at_least=_window(found))


def _window(found: NetworkFisherMemory) -> str:
    """Name the window where it, and not the network, ended the curve."""
    return "" if found.settled else f"window {found.horizon}"
