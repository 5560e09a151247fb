"""Fisher memory: how much the noisy state still tells of an input k steps ago."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.core.errors import UserError
from mnemoscope.measures import NetworkFisherMemory
from mnemoscope.measures.fisher.finding import NOTHING
from mnemoscope.profiles.drawing import SectionView, lag_grid
from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Curves, Figure

__all__ = ["Fisher"]

_HOW = (
    "Noise on every unit after every step, of the unit's own variance along the driven trajectory, so that the scale "
    "of a unit does not matter; the signal enters along the unit input direction with the largest total; averaged over "
    "trajectories under standard normal inputs, then over seeds."
)
_ABSOLUTE = (
    "The same with noise of variance 1 on every unit, which is what theorems speak of; it depends on their scale."
)
_MIXED = (
    "The same with noise that is nine tenths of the covariance of all units, which redundant units do not average out."
)

_LARGE = 96
"""Numbers in a state from which on the seeds must do with fewer trajectories each: the time grows with their cube."""

_DENSE = 512
"""Numbers in a state beyond which there is relative noise alone, and no covariance of the whole state."""

_WINDOWS = {64: 4096, 128: 2048, 256: 1024, 512: 512, 1024: 256}
"""Lags that a curve may take to settle, by the largest state that can afford them; 128 beyond."""

_REDUNDANT = 3.0
"""Totals under independent and under shared noise, the ratio of which says that units do the same."""

_SEEN = 1e-3
"""Share of a total that may be missing without a word of it."""

_SHARE = 0.01
"""Of J(0), below which a lag is out of reach."""


@section("fisher", title="Fisher memory", order=30)
class Fisher(ProfileSection):
    """J(k) along driven trajectories, its total, half-life and reach."""

    needs_causal = True
    averaged = ("relative_curve",)
    leading = "relative_total"
    references = NetworkFisherMemory.references
    text = (
        "J(k) says how well the state, with noise on every unit, tells the input of k steps ago: the inverse of the "
        "smallest variance with which it can be estimated. The noise of a unit has the variance of the unit itself. "
        "The curve of a network that forgets falls; the total is what is left of all past inputs together."
    )
    quantities = (
        Quantity(
            name="relative_total",
            title="total Fisher memory",
            better="higher",
            least=0.0,
            floor=1e-3,
            how=_HOW,
            meaning="Fisher information about all past inputs together, for noise as large as the units' own activity",
            log=True,
            top=True,
            compared=True,
            axis=Axis(
                name="remembering under noise",
                remedy="inputs that move the state more: noise is measured against its own activity",
                says="with noise as large as each unit's own activity its state holds a Fisher information of {value} "
                "about the past",
                column="Fisher total",
                place=2,
                about="memory",
                asks="how well a noisy state tells single inputs of the past, which few strong traces answer best",
            ),
        ),
        Quantity(
            name="relative_half_life",
            title="Fisher half-life",
            unit="steps",
            better="higher",
            least=0.0,
            floor=1.0,
            how=_HOW,
            top=True,
            compared=True,
            axis=Axis(
                name="remembering long",
                remedy="eigenvalues nearer to the unit circle, forget gates that start open, an orthogonal transition",
                says="half of its Fisher information is about inputs at most {value} steps old",
                column="half-life",
                place=1,
                about="memory",
                asks="how old the inputs are that the state tells of, however faintly",
            ),
        ),
        Quantity(
            name="relative_reach", title="reach of Fisher memory", unit="steps", better="higher", least=0.0, how=_HOW
        ),
        Quantity(
            name="mixture_total", title="total Fisher memory under shared noise", better="higher", least=0.0, how=_MIXED
        ),
        Quantity(name="total", title="total under noise of variance 1", better="higher", least=0.0, how=_ABSOLUTE),
        Quantity(name="half_life", title="half-life under noise of variance 1", unit="steps", least=0.0, how=_ABSOLUTE),
        Quantity(name="reach", title="reach under noise of variance 1", unit="steps", least=0.0, how=_ABSOLUTE),
    )

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure of Fisher memory of any network, under noise of three shapes."""
        size = context.state_size
        window = next((lags for largest, lags in _WINDOWS.items() if size <= largest), 128)
        few: dict[str, Any] = {"longest": window, "trajectories": 4 if size > _LARGE else 8}
        if context.quick:
            few = {"longest": min(window, 256), "trajectories": 2 if size > _LARGE else 4, "washout": 50}
        if size > _DENSE:
            few = {**few, "trajectories": 1 if context.quick else 2, "krylov": 6 if context.quick else 12}
        relative = Call("network-fisher", {"noise": "relative", **few})
        if size > _DENSE:
            return (relative,)
        mixture = Call("network-fisher", {"noise": "mixture", **few, "trajectories": min(2, few["trajectories"])})
        return relative, mixture, Call("network-fisher", few)

    def run(self, network: Any, context: Context) -> Measurement:
        """Measure the curve of one network."""
        relative, *others = self.calls(context)
        scalars: dict[str, Scalar] = {}
        data: dict[str, Any] = {}
        notes: list[str] = []
        try:
            found: NetworkFisherMemory = relative(network, context)
            shared: NetworkFisherMemory | None = others[0](network, context) if others else None
            scalars |= {f"relative_{name}": each for name, each in _scalars(found).items()}
            data |= _curve(found, int(relative.options["longest"]))
            notes += _notes(found)
            if shared is not None:
                scalars["mixture_total"] = _total(shared)
                notes += _redundant(found, shared)
        except UserError as error:
            if len(others) < 2:
                raise
            nothing = Scalar(value=None, note=" ".join(str(error).split()))
            scalars |= dict.fromkeys(("relative_total", "relative_half_life", "relative_reach"), nothing)
        if len(others) > 1:
            absolute: NetworkFisherMemory = others[1](network, context)
            scalars |= _scalars(absolute)
            data |= {"units": absolute.size, "settled": absolute.settled}
            notes = notes or _notes(absolute)
        return Measurement(scalars=scalars, data=data, notes=tuple(notes))

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the curves, the totals and the half-lives."""
        drawn = Curves(
            series=view.curve("lags", "relative_curve", shift=1),
            x_title="lag k + 1 (steps; the present is 1)",
            y_title="Fisher information J(k)",
            log_x=True,
            log_y=True,
            decades=8,
        )
        return [
            view.figure("fisher-curve", "What is left of an input after k steps", drawn, _HOW),
            view.ranking(self.quantity("relative_total"), title="Information about the whole past"),
            view.ranking(self.quantity("relative_half_life"), title="How long half of it takes"),
        ]


def _curve(found: NetworkFisherMemory, longest: int) -> dict[str, Any]:
    """Return the curve on the grid of lags, zero beyond what was needed."""
    curve, lags = np.zeros(longest), lag_grid(longest - 1)
    curve[: len(found.curve)] = found.curve[:longest]
    return {
        "lags": lags,
        "relative_curve": curve[lags],
        "relative_units": found.size,
        "relative_settled": found.settled,
    }


def _scalars(found: NetworkFisherMemory) -> dict[str, Scalar]:
    return {"total": _total(found), "half_life": _half_life(found), "reach": _reach(found)}


def _total(found: NetworkFisherMemory) -> Scalar:
    """Return the total: what was met in a subspace may be larger by what its last blocks gained."""
    said = [f"of a window of {found.horizon} lags, which the curve outlives"] if not found.settled else []
    said += [f"a lower bound, by at most {found.missing:.1%}"] if found.missing > _SEEN else []
    error = float(np.hypot(np.nan_to_num(found.stderr), found.missing * found.total / 2))
    return Scalar(value=found.total, stderr=error, note="; ".join(said))


def _notes(found: NetworkFisherMemory) -> list[str]:
    return [f"Assumed: {each}." for each in found.assumptions]


def _redundant(found: NetworkFisherMemory, shared: NetworkFisherMemory) -> list[str]:
    """Say that units do the same where independent noise on them averages out and shared noise does not."""
    if not shared.total > NOTHING or found.total / shared.total < _REDUNDANT:
        return []
    ratio = found.total / shared.total
    return [f"Units are redundant: with noise that they share, the total is smaller by a factor of {ratio:.1f}."]


def _half_life(found: NetworkFisherMemory) -> Scalar:
    """Return the lag by which half of the total is reached."""
    if found.half_life is None:
        return Scalar(value=None, note="there is no information to halve")
    return Scalar(value=float(found.half_life), at_least=_window(found))


def _reach(found: NetworkFisherMemory) -> Scalar:
    """Return the last lag of which at least a hundredth of the present information is left."""
    if not (found.total > NOTHING and found.curve[0] > 0):
        return Scalar(value=None, note="the state tells nothing of the present input")
    last = int(np.flatnonzero(found.curve >= _SHARE * found.curve[0])[-1])
    return Scalar(value=float(last), at_least=_window(found) if last >= 0.9 * (len(found.curve) - 1) else "")


def _window(found: NetworkFisherMemory) -> str:
    """Name the window where it, and not the network, ended the curve."""
    return "" if found.settled else f"window {found.horizon}"
