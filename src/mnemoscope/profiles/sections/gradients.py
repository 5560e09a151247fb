"""Gradients through time, and the Lyapunov exponents behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.measures import GradientNorms, LyapunovExponents
from mnemoscope.profiles.drawing import command, curve, headline, lag_grid, notes, ranked, subject_rows
from mnemoscope.profiles.rows import Row
from mnemoscope.profiles.section import Call, Context, Part, PartResult, Scalar, part
from mnemoscope.report import Curves, Figure, Mark, Section

__all__ = ["Gradients"]

_TEXT = (
    "A rate below zero means that gradients vanish, above zero that they explode; -0.1 leaves a millionth after 138 "
    "steps. The Lyapunov exponents say at which rates disturbances of the state grow or fade forward in time, one for "
    "each direction."
)

_BACK = 100
"""Steps back of `at_100`."""

_NEAR = -0.05
"""An exponent above this keeps a disturbance for twenty steps and more."""

_SHOWN = 64
"""Exponents in the chart: larger spectra are thinned."""


@part("gradients", title="Gradients and Lyapunov exponents", order=50)
class Gradients(Part):
    """How the gradient grows or fades on its way back, and at which rates disturbances grow or fade forward."""

    needs_causal = True
    averaged = ("log_norms", "exponents")

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return both measures."""
        few = {"horizon": 120, "transient": 30, "trajectories": 1, "washout": 50}
        more = {"horizon": 300, "transient": 60, "trajectories": 2}
        return (
            Call("gradients", {"horizon": 200, "trajectories": 8 if context.quick else 16}),
            Call("lyapunov", few if context.quick else more),
        )

    def seconds(self, network: Any, context: Context) -> float:
        """Return the time of QR decompositions of S x S matrices."""
        size = float(context.facts.get("state_size") or 64)
        return (0.25 if context.quick else 0.6) * max(0.5, math.pow(size / 64, 1.4))

    def run(self, network: Any, context: Context) -> PartResult:
        """Measure one network."""
        back, forward = self.calls(context)
        norms: GradientNorms = back(network, context.seed)
        spectrum: LyapunovExponents = forward(network, context.seed)
        lags = lag_grid(int(back.options["horizon"]))
        top = float(spectrum.exponents[0])
        logs = norms.log_norms - norms.log_norms[0]
        gone = "the gradient is exactly zero there"
        near = float((spectrum.exponents > _NEAR).mean())
        return PartResult(
            scalars={
                "rate": Scalar(value=norms.rate, unit="nats per step"),
                "at_100": Scalar(value=float(logs[_BACK]), unit="nats", note="" if np.isfinite(logs[_BACK]) else gone),
                "lyapunov_max": Scalar(value=top, unit="nats per step", stderr=float(spectrum.stderr[0])),
                "lyapunov_dimension": Scalar(value=spectrum.dimension, unit="directions"),
                "near_zero": Scalar(value=near, unit="share"),
            },
            data={
                "lags": lags,
                "log_norms": logs[lags],
                "law": norms.law,
                **_thinned(spectrum.exponents),
            },
            notes=tuple(f"Assumed: {each}." for each in dict.fromkeys((*norms.assumptions, *spectrum.assumptions))),
        )

    def section(self, rows: Sequence[Row], subjects: Sequence[str]) -> Section | None:
        """Draw the norms by lag, the rate, and the Lyapunov spectrum."""
        if not subject_rows(rows, subjects, self.name):
            return None
        norms = Curves(
            series=curve(rows, self.name, "lags", "log_norms"),
            x_title="steps back k",
            y_title="ln of |dL/dh(T-k)| / |dL/dh(T)|",
            marks=(Mark(kind="y", label="neither grows nor fades", value=0.0),),
        )
        spectrum = Curves(
            series=curve(rows, self.name, "share", "exponents"),
            x_title="share of the state's directions",
            y_title="Lyapunov exponent (nats per step)",
            marks=(Mark(kind="y", label="zero", value=0.0),),
        )
        back = (
            "The gradient of a random unit readout of the last state, rescaled on its way back so that none is lost; "
            "geometric mean over trajectories under standard normal inputs, then over seeds."
        )
        forward = "A QR decomposition of the state's Jacobian at every step, along trajectories under normal inputs."
        typed = command(rows, subjects, self.name, "gradients")
        return Section(
            name=self.name,
            title=self.title,
            headline=headline(
                rows, subjects, self.name, "rate", "change of the gradient's logarithm for every step back in time"
            ),
            text=(_TEXT,),
            figures=[
                _figure("gradient-norms", "The gradient on its way back", norms, back, typed, GradientNorms.references),
                _figure(
                    "gradient-rate",
                    "How fast gradients change",
                    ranked(rows, self.name, "rate", "ln of the gradient norm per step back"),
                    back,
                    typed,
                    GradientNorms.references,
                ),
                _figure(
                    "lyapunov-spectrum",
                    "How many directions remember",
                    spectrum,
                    forward,
                    command(rows, subjects, self.name, "lyapunov"),
                    LyapunovExponents.references,
                ),
            ],
            notes=notes(rows, subjects, self.name),
        )

    def references(self) -> tuple[str, ...]:
        """Return who defined both."""
        return (*GradientNorms.references, *LyapunovExponents.references)


def _thinned(exponents: np.ndarray) -> dict[str, Any]:
    """Return at most `_SHOWN` exponents, each with the share of directions that are above it."""
    count = len(exponents)
    chosen = np.unique(np.linspace(0, count - 1, min(count, _SHOWN)).round().astype(int))
    return {"share": (chosen + 1) / count, "exponents": exponents[chosen]}


def _figure(name: str, title: str, drawing: Any, how: str, typed: str, cite: tuple[str, ...]) -> Figure:
    alt = f"{title}: the profiled network beside the references."
    return Figure(name=name, title=title, drawing=drawing, alt=alt, how=how, command=typed, references=cite)
