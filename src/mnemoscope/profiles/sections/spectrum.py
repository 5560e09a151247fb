"""Spectrum of the recurrent matrix, its distance from normality, and the norms of its powers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.measures import Spectrum
from mnemoscope.profiles.drawing import SectionView, lag_grid
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Curves, Figure, Mark, Plane

__all__ = ["SpectrumSection"]

_HOW = (
    "Of the recurrent matrix of a first-order network; of any other network the Jacobian of its state at rest, or "
    "after driven steps where that is zero or jumps. "
    "Eigenvalues from its Schur form, the Kreiss constant from a global search with a certificate."
)

_CERTIFIED = 256
"""Rows up to which the Kreiss constant is certified: beyond, that alone would take the time of a profile."""

_SHOWN = 256
"""Eigenvalues in the chart: of larger matrices the largest."""


@section("spectrum", title="Spectrum and non-normality", order=60)
class SpectrumSection(ProfileSection):
    """Eigenvalues, Henrici's departure from normality, Kreiss constant, and the norms of the powers."""

    needs_causal = True
    averaged = ("powers",)
    references = Spectrum.references
    text = (
        "Eigenvalues inside the unit circle forget, outside they explode. A matrix that is not normal can first amplify"
        " what it later forgets: its powers rise before they fall."
    )
    quantities = (
        Quantity(
            name="radius",
            title="spectral radius",
            least=0.0,
            how=_HOW,
            meaning="spectral radius: the largest modulus",
            compared=True,
        ),
        Quantity(name="henrici", title="Henrici's departure from normality", least=0.0, how=_HOW),
        Quantity(
            name="henrici_relative",
            title="departure from normality",
            least=0.0,
            how=_HOW,
            compared=True,
        ),
        Quantity(name="kreiss", title="Kreiss constant", least=1.0, how=_HOW),
        Quantity(name="amplification", title="largest norm of a power", least=1.0, how=_HOW),
    )

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure of the spectrum."""
        tolerance = {"tolerance": 0.02} if context.quick or context.state_size > 128 else {}
        certified = {"certified": _CERTIFIED} if context.state_size > _CERTIFIED else {}
        return (Call("spectrum", {"horizon": 60 if context.quick else 100, **tolerance, **certified}),)

    def run(self, network: Any, context: Context) -> Measurement:
        """Find the spectrum of one network."""
        (call,) = self.calls(context)
        found: Spectrum = call(network, context)
        powers = lag_grid(int(call.options["horizon"]))
        grows = "" if found.stability != "unstable" else "it is infinite: the spectral radius is above 1"
        bound = "from a subspace" if not len(found.schur) and found.stability != "unstable" else ""
        return Measurement(
            scalars={
                "radius": Scalar(value=found.radius),
                "henrici": Scalar(value=found.henrici),
                "henrici_relative": Scalar(value=float(np.sqrt(found.share))),
                "kreiss": Scalar(value=found.kreiss, note=grows, at_least=bound),
                "amplification": Scalar(value=found.amplification, note=grows, at_least=bound),
            },
            data={
                "eigenvalues": found.eigenvalues[:_SHOWN],
                "lags": powers,
                "powers": found.transient[np.minimum(powers, len(found.transient) - 1)],
                "matrix": found.matrix,
                "stability": found.stability,
            },
            notes=(f"The matrix is {found.matrix}.", *([f"Bounds: {found.assumptions[1]}."] if bound else [])),
        )

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the eigenvalues, the norms of the powers, and the departure from normality."""
        plane = Plane(
            points={
                row.key: [complex(*pair) for pair in found]
                for row in view.rows
                if (found := view.data(row).get("eigenvalues"))  # which no interpolation gives
            },
            title="eigenvalues, at the first seed",
            marks=(Mark(kind="circle", label="unit circle", value=1.0),),
        )
        powers = Curves(
            series=view.curve("lags", "powers"),
            x_title="power k (steps)",
            y_title="norm of the k-th power",
            log_y=True,
            decades=8,
        )
        return [
            view.figure("eigenvalues", "Where the eigenvalues lie", plane, _HOW),
            view.figure("powers", "Does it amplify before it forgets?", powers, _HOW),
            view.ranking(self.quantity("henrici_relative"), "henrici", "How far from normal"),
        ]
