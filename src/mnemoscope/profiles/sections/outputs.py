"""Memory of outputs: what the last output of a block without a state tells of earlier inputs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Self

import numpy as np

from mnemoscope.measures import OutputMemory
from mnemoscope.profiles.drawing import SectionView, lag_grid
from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.row import NetworkFacts
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Curves, Figure

__all__ = ["Outputs"]

_HOW = (
    "Derivatives of the last output by all inputs, along sequences of independent normal inputs, each output in units "
    "of its own standard deviation: noise on it is as large as its own activity. Only whole sequences are run."
)
_READ = (
    "Ridge regressions on the last output, fitted on three quarters of the sequences and scored on the fourth, in "
    "turn; what chance explains is set to zero. Inputs of all channels count."
)
_CUT = "The last output with only the last c inputs given, against the one with all: squared difference over variance."


@section("outputs", title="Memory of outputs", order=25)
class Outputs(ProfileSection):
    """Fisher memory, gradients, capacity, rank and parity of chunks, from whole-sequence passes alone.

    It is of blocks, and of networks that read the future. Of all others the state itself is asked, and outputs only in
    the company of a block.
    """

    kinds = ("sequence",)
    listed_for_others = False
    averaged = ("fisher", "gradients", "capacity", "lost")
    shares = ("capacity",)
    references = OutputMemory.references
    leading = "half_life"
    text = (
        "A block without a state shows nothing but its outputs. They are asked what they tell of the input k steps "
        "before, and what changes when earlier inputs are cut off."
    )
    quantities = (
        Quantity(
            name="total",
            title="Fisher memory of outputs",
            better="higher",
            least=0.0,
            floor=0.01,
            how=_HOW,
            meaning="Fisher information of the last output about all inputs, for noise as large as its own activity",
            log=True,
            compared=True,
            axis=Axis(
                name="outputs under noise",
                remedy="outputs that depend more strongly on the inputs",
                says="with noise as large as its own activity the last output holds a Fisher information of {value}",
                column="Fisher total",
                place=2,
            ),
        ),
        Quantity(
            name="half_life",
            title="half-life of outputs",
            unit="steps",
            better="higher",
            least=0.0,
            floor=1.0,
            how=_HOW,
            meaning="half of what the last output tells is about inputs at most so many steps old",
            top=True,
            compared=True,
            axis=Axis(
                name="long memory of outputs",
                remedy="longer filters, slower decays",
                says="half of what its last output tells is about inputs at most {value} steps old",
                column="half-life",
                place=1,
            ),
        ),
        Quantity(
            name="capacity",
            title="memory capacity of outputs",
            unit="inputs",
            better="higher",
            least=0.0,
            floor=0.1,
            how=_READ,
            meaning="past inputs, of all channels, that a linear readout of the last output recovers",
            top=True,
            compared=True,
            axis=Axis(
                name="plain memory of outputs",
                remedy="more channels, slower decays",
                says="a linear readout of its last output recovers {value} past inputs",
                column="capacity",
                place=3,
                limit=("output_size", "its outputs"),
            ),
        ),
        Quantity(
            name="rate",
            title="gradient rate from outputs to inputs",
            unit="nats per step",
            better="zero",
            floor=0.005,
            how=_HOW,
            compared=True,
            axis=Axis(
                name="gradients of outputs",
                remedy="residual paths, slower decays",
                says="the gradient from the last output to an input changes by {value} nats per step back",
                column="gradient rate",
                place=5,
            ),
        ),
        Quantity(
            name="rank",
            title="effective rank of outputs",
            unit="combinations",
            better="higher",
            least=0.0,
            floor=0.1,
            how=_HOW,
            meaning="different combinations of past inputs that the outputs tell",
            compared=True,
            axis=Axis(
                name="share of outputs used",
                remedy="channels that differ more",
                says="its outputs tell {value} different combinations of past inputs",
                column="rank",
                place=8,
                limit=("output_size", "its outputs"),
            ),
        ),
        Quantity(name="older", title="share of the output due to inputs 16 and more steps old", least=0.0, how=_CUT),
        Quantity(
            name="prefix_gap",
            title="difference between outputs by prefixes and at once",
            least=0.0,
            how="The output within a sequence against the one after the sequence up to there, by the largest output.",
        ),
    )

    def among(self, kinds: Collection[str | None]) -> Self:
        """Return the section for networks of these kinds: beside a block all are asked for their outputs."""
        found = type(self)()
        if "sequence" in kinds:
            vars(found)["kinds"] = ("sequence", "recurrent")
        return found

    def concerns(self, facts: NetworkFacts) -> bool:
        """Whether the profile of a network names the section."""
        return super().concerns(facts) or (facts.kind == "recurrent" and not facts.causal)

    def reason_against(self, network: Any, context: Context) -> str | None:
        """Say why it does not apply."""
        known = network.kind == "recurrent" and not network.causal
        return None if known else super().reason_against(network, context)

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure."""
        few = {"horizon": 64, "trajectories": 4, "samples": 1024}
        return (Call("output-memory", few if context.quick else {"horizon": 128, "trajectories": 8}),)

    def run(self, network: Any, context: Context) -> Measurement:
        """Measure one network."""
        (call,) = self.calls(context)
        found: OutputMemory = call(network, context)
        lags = lag_grid(found.horizon - 1)
        window = "" if found.settled else f"window {found.horizon}"
        read = not np.isnan(found.capacity_total)
        few = Scalar(value=None, note="too few sequences were given for a readout of so many outputs")
        gap = "it takes one number of steps only" if found.prefix_gap is None else ""
        half = found.half_life
        scalars = {
            "total": Scalar(value=found.total, stderr=found.stderr),
            "half_life": Scalar(value=None, note="there is nothing to halve")
            if half is None
            else Scalar(value=float(half), at_least=window),
            "capacity": Scalar(value=found.capacity_total, stderr=found.capacity_stderr, most=found.outputs)
            if read
            else few,
            "rate": _rate(found),
            "rank": Scalar(value=found.effective_rank, stderr=found.rank_stderr, most=found.size),
            "older": _older(found),
            "prefix_gap": Scalar(value=found.prefix_gap, note=gap),
        }
        return Measurement(
            scalars=scalars,
            data={
                "lags": lags,
                "fisher": found.fisher[lags],
                "gradients": found.gradients[lags],
                "capacity": found.capacity[lags] if read else None,
                "cuts": found.cuts,
                "lost": found.lost,
            },
            notes=tuple(f"Assumed: {each}." for each in found.assumptions),
        )

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the curves by lag, what a cut loses, and the rankings."""
        lag = "lag k + 1 (steps; the present is 1)"
        fisher = Curves(
            series=view.curve("lags", "fisher", shift=1),
            x_title=lag,
            y_title="Fisher information J(k)",
            log_x=True,
            log_y=True,
            decades=8,
        )
        slope = Curves(
            series=view.curve("lags", "gradients", shift=1),
            x_title=lag,
            y_title="norm of the derivative",
            log_x=True,
            log_y=True,
            decades=8,
        )
        read = Curves(
            series=view.curve("lags", "capacity", shift=1), x_title=lag, y_title="inputs recovered", log_x=True
        )
        cut = Curves(
            series=view.curve("cuts", "lost"),
            x_title="inputs that are given, c (steps)",
            y_title="share of the variance lost",
            log_x=True,
            points=True,
        )
        return [
            view.figure("output-fisher", "What the last output tells of an input k steps before", fisher, _HOW),
            view.figure("output-capacity", "How far back the input can be read off", read, _READ),
            view.figure("output-gradients", "Gradients from the last output to inputs", slope, _HOW),
            view.figure("output-cuts", "What is lost when earlier inputs are cut off", cut, _CUT),
            *(view.ranking(each) for each in self.quantities if each.better is not None),
        ]


_OLD = 16


def _older(found: OutputMemory) -> Scalar:
    places = np.flatnonzero(found.cuts == _OLD)
    if not len(places):
        return Scalar(value=None, note=f"it was not run on {_OLD} steps alone")
    return Scalar(value=float(found.lost[places[0]]))


def _rate(found: OutputMemory) -> Scalar:
    if not np.isfinite(found.rate):
        return Scalar(value=None, note="the gradient ends after a few steps, and has no rate")
    return Scalar(value=found.rate)
