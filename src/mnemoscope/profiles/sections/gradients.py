"""Gradients through time, and the Lyapunov exponents behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.measures import GradientNorms, LyapunovExponents
from mnemoscope.profiles.drawing import SectionView, lag_grid
from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Curves, Figure, Mark

__all__ = ["Gradients"]

_BACKWARD = (
    "The gradient of a random unit readout of the last state, rescaled on its way back so that none is lost; "
    "geometric mean over trajectories under standard normal inputs, then over seeds."
)
_THROUGH = (
    "The gradient of the last output's squared distance from its mean, each unit in its own standard deviations, at "
    "the input k steps before: neither scale nor order of units matters. Geometric mean over trajectories under "
    "standard normal inputs, then over seeds."
)
_FORWARD = (
    "A QR decomposition of the state's Jacobian at every step, along trajectories under normal inputs; of states of "
    "more than 64 numbers the leading 16 exponents."
)

_HORIZON = 200
"""Steps that gradients go back."""

_BACK = 100
"""Steps back of `at_100`."""

_APART = 0.05
"""Nats per step by which gradients from outputs to inputs may fade faster than those between states without a word."""

_NEAR = -0.05
"""An exponent above this keeps a disturbance for twenty steps and more."""

_LEADING = 16
_WHOLE = 64
"""Numbers in a state up to which all exponents are found, beyond it the leading ones."""

_LARGEST = 2048
"""Numbers in a state beyond which fewer trajectories are followed: means over thousands of units scatter less."""

_SHOWN = 64
"""Exponents in the chart: larger spectra are thinned."""


@section("gradients", title="Gradients and Lyapunov exponents", order=50)
class Gradients(ProfileSection):
    """Growth of the gradient backward in time, and rates at which disturbances grow or fade forward."""

    needs_causal = True
    version = 2
    averaged = ("input_norms", "log_norms", "exponents")
    references = (*GradientNorms.references, *LyapunovExponents.references)
    text = (
        "A rate below zero means that gradients vanish, above zero that they explode; -0.1 leaves a millionth after "
        "138 steps. The Lyapunov exponents say at which rates disturbances of the state grow or fade forward in time, "
        "one for each direction."
    )
    quantities = (
        Quantity(
            name="input_rate",
            title="gradient rate",
            unit="nats per step",
            better="zero",
            floor=0.005,
            how=_THROUGH,
            meaning="change of the logarithm of the gradient at an input for every step back in time",
            top=True,
            compared=True,
            axis=Axis(
                name="gradients",
                remedy="below zero an orthogonal or identity start, open forget gates; above it a smaller radius",
                says="the gradient from the last output to an input changes by {value} nats per step back",
                column="gradient rate",
                place=5,
                about="memory",
                asks="what training can reach back to, whatever the state keeps",
            ),
        ),
        Quantity(name="rate", title="gradient rate between states", unit="nats per step", how=_BACKWARD),
        Quantity(name="at_100", title="logarithm of the gradient 100 steps back", unit="nats", how=_BACKWARD),
        Quantity(
            name="lyapunov_max", title="largest Lyapunov exponent", unit="nats per step", how=_FORWARD, compared=True
        ),
        Quantity(name="lyapunov_dimension", title="Lyapunov dimension", unit="directions", least=0.0, how=_FORWARD),
        Quantity(name="near_zero", title="exponents near zero", unit="share", least=0.0, most=1.0, how=_FORWARD),
    )

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return gradients from outputs to inputs, those between states, and the exponents."""
        few = {"horizon": 120, "transient": 30, "trajectories": 1, "washout": 50}
        more = {"horizon": 300, "transient": 60, "trajectories": 2}
        if context.state_size > _WHOLE:
            leading = min(_LEADING, context.facts.hidden_size or _LEADING)
            runs = 1 if context.state_size > _LARGEST else 2
            few = {**few, "count": leading}
            more = {**more, "transient": 100, "trajectories": runs, "count": leading}
        fewer = context.quick or context.state_size > _LARGEST
        back = {"horizon": _HORIZON, "trajectories": 8 if fewer else 16}
        return (
            Call("gradients", {**back, "at": "inputs"}),
            Call("gradients", back),
            Call("lyapunov", few if context.quick else more),
        )

    def run(self, network: Any, context: Context) -> Measurement:
        """Measure one network."""
        through, back, forward = self.calls(context)
        ends: GradientNorms = through(network, context)
        norms: GradientNorms = back(network, context)
        spectrum: LyapunovExponents = forward(network, context)
        lags = lag_grid(_HORIZON - 1)
        logs = _from_first(norms.log_norms)
        share, known = spectrum.above(_NEAR)
        cut = f"{len(spectrum.exponents)} of {spectrum.size} exponents"
        said = (*ends.assumptions, *norms.assumptions, *spectrum.assumptions)
        gone = "" if np.isfinite(logs[_BACK]) else "the gradient is exactly zero there"
        return Measurement(
            scalars={
                "input_rate": Scalar(value=ends.rate),
                "rate": Scalar(value=norms.rate),
                "at_100": Scalar(value=float(logs[_BACK]), note=gone),
                "lyapunov_max": Scalar(value=float(spectrum.exponents[0]), stderr=float(spectrum.stderr[0])),
                "lyapunov_dimension": Scalar(
                    value=spectrum.dimension, at_least="" if spectrum.dimension_known else cut
                ),
                "near_zero": Scalar(value=share, at_least="" if known else cut),
            },
            data={
                "lags": lags,
                "input_norms": _from_first(ends.log_norms)[lags],
                "log_norms": logs[lags],
                "law": ends.law,
                **_thinned(spectrum),
            },
            notes=(*_apart(ends, norms), *(f"Assumed: {each}." for each in dict.fromkeys(said))),
        )

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the norms by lag, the rate, and the Lyapunov spectrum."""
        norms = Curves(
            series=view.curve("lags", "input_norms"),
            x_title="steps back k",
            y_title="ln of |dy(T)/dx(T-k)| / |dy(T)/dx(T)|",
            marks=(Mark(kind="y", label="neither grows nor fades", value=0.0),),
        )
        spectrum = Curves(
            series=view.curve("share", "exponents"),
            x_title="share of the state's directions",
            y_title="Lyapunov exponent (nats per step)",
            marks=(Mark(kind="y", label="zero", value=0.0),),
        )
        cite, own = GradientNorms.references, LyapunovExponents.references
        return [
            view.figure("gradient-norms", "The gradient on its way back", norms, _THROUGH, references=cite),
            view.ranking(self.quantity("input_rate"), "gradient-rate", "How fast gradients change", references=cite),
            view.figure(
                "lyapunov-spectrum", "How many directions remember", spectrum, _FORWARD, "lyapunov", references=own
            ),
        ]


def _from_first(logs: np.ndarray) -> np.ndarray:
    """Return logarithms over the first; what is zero from the start on has no ratio to it."""
    with np.errstate(invalid="ignore"):
        found: np.ndarray = logs - logs[0]
    return found


def _apart(ends: GradientNorms, states: GradientNorms) -> tuple[str, ...]:
    """Say that the state keeps gradients which do not lead from an output to an input."""
    if not ends.rate < states.rate - _APART:
        return ()
    said = f"Between states gradients change by {states.rate:.3g} nats per step, from outputs to inputs by "
    return (f"{said}{ends.rate:.3g}: part of the state is reached by no input, or read by no output.",)


def _thinned(spectrum: LyapunovExponents) -> dict[str, Any]:
    """Return at most `_SHOWN` exponents, each with the share of directions that are above it."""
    count = len(spectrum.exponents)
    chosen = np.unique(np.linspace(0, count - 1, min(count, _SHOWN)).round().astype(int))
    return {"share": (chosen + 1) / spectrum.size, "exponents": spectrum.exponents[chosen]}
