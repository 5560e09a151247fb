"""Effective remembrance: how far back the predictions of a network look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mnemoscope.measures import EffectiveRemembrance
from mnemoscope.profiles.drawing import SectionView
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Curves, Figure

__all__ = ["Remembrance"]

_HOW = (
    "Total variation between predictions from the whole past and from its last k steps, as a share of that between "
    "predictions of unrelated sequences. Gaussian inputs; each output is a class, standardised over sequences."
)


_LARGE = 2048
"""Numbers in a state beyond which there is time for a short past."""


@section("remembrance", title="How far back its predictions look", order=45)
class Remembrance(ProfileSection):
    """The curve of effective remembrance, and the steps after which nothing older matters."""

    kinds = ("recurrent", "sequence")
    needs_causal = True
    averaged = ("shares",)
    references = EffectiveRemembrance.references
    text = (
        "All but the last k steps of the past are taken away: how much does the prediction change? A network may hold "
        "old inputs in its state and still not let them speak."
    )
    quantities = (
        Quantity(
            name="steps",
            title="steps that predictions look back",
            unit="steps",
            better="higher",
            least=0.0,
            floor=0.5,
            how=_HOW,
            meaning="steps ago an input still changes predictions by 5% of what another sequence would",
            log=True,
        ),
    )

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure."""
        short = context.quick or context.state_size > _LARGE
        return (Call("remembrance", {"horizon": 64 if short else 256}),)

    def run(self, network: Any, context: Context) -> Measurement:
        """Measure one network."""
        (call,) = self.calls(context)
        found: EffectiveRemembrance = call(network, context)
        shares = found.curve / found.unrelated if found.unrelated > 0 else found.curve
        note = "" if found.unrelated > 0 else "its predictions do not depend on inputs at all"
        return Measurement(
            scalars={
                "steps": Scalar(
                    value=found.steps, note=note, at_least=f"window {found.horizon}" if found.beyond else ""
                )
            },
            data={"lengths": found.lengths, "shares": shares, "prediction": found.prediction},
            notes=(f"The prediction is {found.prediction}.",),
        )

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the curves, and the steps."""
        curves = Curves(
            series=view.curve("lengths", "shares"),
            x_title="steps k of the past that are left",
            y_title="total variation, share of unrelated",
            log_x=True,
        )
        return [
            view.figure("remembrance", "How much predictions change without the older past", curves, _HOW),
            view.ranking(self.quantity("steps"), "remembrance-steps", "How far back predictions look"),
        ]
