"""The spectrum of the recurrent matrix, how far it is from normal, and what its powers do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.measures import Spectrum
from mnemoscope.profiles.drawing import command, curve, headline, lag_grid, notes, ranked, shown, subject_rows
from mnemoscope.profiles.rows import Row, data, key
from mnemoscope.profiles.section import Call, Context, Part, PartResult, Scalar, part
from mnemoscope.report import Curves, Figure, Mark, Plane, Section

__all__ = ["SpectrumPart"]

_TEXT = (
    "Eigenvalues inside the unit circle forget, outside they explode. A matrix that is not normal can first amplify"
    " what it later forgets: its powers rise before they fall."
)

_SHOWN = 256
"""Eigenvalues in the chart: of larger matrices the largest."""


@part("spectrum", title="Spectrum and non-normality", order=60)
class SpectrumPart(Part):
    """Eigenvalues, Henrici's departure from normality, Kreiss constant, and the norms of the powers."""

    needs_causal = True
    averaged = ("powers",)

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure of the spectrum."""
        size = int(context.facts.get("state_size") or 64)
        tolerance = {"tolerance": 0.02} if context.quick or size > 128 else {}
        return (Call("spectrum", {"horizon": 60 if context.quick else 100, **tolerance}),)

    def seconds(self, network: Any, context: Context) -> float:
        """Return the time of some eigenvalue problems of twice the size."""
        size = float(context.facts.get("state_size") or 64)
        return 0.08 * max(0.5, (size / 64) ** 2)

    def run(self, network: Any, context: Context) -> PartResult:
        """Find the spectrum of one network."""
        (call,) = self.calls(context)
        found: Spectrum = call(network, context.seed)
        powers = lag_grid(int(call.options["horizon"]))
        grows = "" if found.stability != "unstable" else "it is infinite: the spectral radius is above 1"
        return PartResult(
            scalars={
                "radius": Scalar(value=found.radius),
                "henrici": Scalar(value=found.henrici),
                "henrici_relative": Scalar(value=float(np.sqrt(found.share))),
                "kreiss": Scalar(value=found.kreiss, note=grows),
                "amplification": Scalar(value=found.amplification, note=grows),
            },
            data={
                "eigenvalues": found.eigenvalues[:_SHOWN],
                "lags": powers,
                "powers": found.transient[np.minimum(powers, len(found.transient) - 1)],
                "matrix": found.matrix,
                "stability": found.stability,
            },
            notes=(f"The matrix is {found.matrix}.",),
        )

    def section(self, rows: Sequence[Row], subjects: Sequence[str]) -> Section | None:
        """Draw the eigenvalues, the norms of the powers, and the departure from normality."""
        if not subject_rows(rows, subjects, self.name):
            return None
        plane = Plane(
            points={key(row): _complex(data(row, self.name)["eigenvalues"]) for row in shown(rows, self.name)},
            title="eigenvalues, at the first seed",
            marks=(Mark(kind="circle", label="unit circle", value=1.0),),
        )
        powers = Curves(
            series=curve(rows, self.name, "lags", "powers"),
            x_title="power k (steps)",
            y_title="norm of the k-th power",
            log_y=True,
            decades=8,
        )
        departure = ranked(rows, self.name, "henrici_relative", "departure from normality, as a share of the norm")
        how = (
            "Of the recurrent matrix of a first-order network; of any other network the Jacobian of its state at rest. "
            "Eigenvalues from its Schur form, the Kreiss constant from a global search with a certificate."
        )
        return Section(
            name=self.name,
            title=self.title,
            headline=headline(rows, subjects, self.name, "radius", "spectral radius: the largest modulus"),
            text=(_TEXT,),
            figures=[
                self._figure("eigenvalues", "Where the eigenvalues lie", plane, how, rows, subjects),
                self._figure("powers", "Does it amplify before it forgets?", powers, how, rows, subjects),
                self._figure("henrici", "How far from normal", departure, how, rows, subjects),
            ],
            notes=notes(rows, subjects, self.name),
        )

    def _figure(
        self, name: str, title: str, drawing: Any, how: str, rows: Sequence[Row], subjects: Sequence[str]
    ) -> Figure:
        return Figure(
            name=name,
            title=title,
            drawing=drawing,
            alt=f"{title}: the profiled network beside the references.",
            how=how,
            command=command(rows, subjects, self.name, "spectrum"),
            references=Spectrum.references,
        )

    def references(self) -> tuple[str, ...]:
        """Return where the quantities come from."""
        return Spectrum.references


def _complex(pairs: Sequence[Sequence[float]]) -> list[complex]:
    return [complex(*pair) for pair in pairs]
