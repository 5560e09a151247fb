"""What the spectrum of one matrix says, and how it is drawn."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Complex, Float, Inexact, Int

from mnemoscope.core.result import Result, result
from mnemoscope.report.chart import PALETTE, Chart, beside, lines, styled

__all__ = ["Spectrum"]


@result
class Spectrum(Result):
    """Eigenvalues, non-normality and transient growth of one matrix.

    Attributes
    ----------
    eigenvalues
        Largest modulus first.
    radius
        Largest modulus.
    stability
        ``"stable"``, ``"marginal"`` (on the unit circle, powers bounded) or ``"unstable"``.
    henrici
        sqrt(||W||_F^2 - sum |lambda|^2), zero for a normal matrix.
    share
        Share of the energy that is not normal: henrici^2 / ||W||_F^2.
    kreiss
        sup over |z| > 1 of (|z| - 1) ||(z - W)^-1||; 1 at least.
    kreiss_bound
        What no z exceeds, by the certificate.
    kreiss_point
        The z that attains it; infinite when the constant is 1.
    amplification
        max over k >= 0 of ||W^k||_2; 1 at least.
    amplification_power
        The first k that attains it.
    amplification_exact
        False: a lower bound, see the assumptions.
    transient
        ||W^k||_2 for k = 0, 1, ..
    numerical_abscissa
        Largest eigenvalue of (W + W*)/2.
    numerical_radius
        Largest |x* W x| over unit vectors.
    schur, basis
        W = Q S Q*, S lower triangular but for the 2 x 2 blocks of conjugate pairs.
    subdiagonals
        Mean size of the entries on the k-th subdiagonal of S outside the blocks; at k = 0 the mean modulus of the
        eigenvalues. It depends on the order of the eigenvalues in S: that of the network itself for nnRNN, of W if W is
        triangular, else LAPACK's.
    angle_counts, angle_edges
        Histogram of the eigenvalues' angles, in degrees.
    matrix
        What the matrix is of the network.
    """

    measure: ClassVar[str] = "spectrum"
    references: ClassVar[tuple[str, ...]] = (
        "henrici1962",
        "spijker1991",
        "trefethen2005",
        "mitchell2020",
        "kerg2019",
    )

    eigenvalues: Complex[np.ndarray, " n"]
    radius: float
    stability: str
    henrici: float
    share: float
    kreiss: float
    kreiss_bound: float
    kreiss_point: complex
    amplification: float
    amplification_power: int
    amplification_exact: bool
    transient: Float[np.ndarray, " powers"]
    numerical_abscissa: float
    numerical_radius: float
    schur: Inexact[np.ndarray, "n n"]
    basis: Inexact[np.ndarray, "n n"]
    subdiagonals: Float[np.ndarray, " n"]
    angle_counts: Int[np.ndarray, " bins"]
    angle_edges: Float[np.ndarray, " edges"]
    matrix: str

    def __str__(self) -> str:
        at = f" at k = {self.amplification_power}" if self.amplification_power >= 0 else ""
        return (
            f"spectral radius {self.radius:.8g}, "
            f"Henrici departure {self.henrici:.8g} ({self.share:.0%} of the energy), "
            f"Kreiss constant {self.kreiss:.8g}, largest ||W^k|| {self.amplification:.8g}{at}"
        )

    def plot(self) -> Chart:
        """Draw the eigenvalues, the transient, the angles, and the subdiagonals of the Schur form."""
        return beside(self.plot_eigenvalues(), self.plot_transient(), self.plot_angles(), self.plot_subdiagonals())

    def plot_eigenvalues(self) -> Chart:
        """Draw the eigenvalues in the complex plane, with the unit circle."""
        import altair as alt

        make: Any = alt
        reach = 1.12 * max(1.0, float(np.abs(self.eigenvalues).max()))
        axis = alt.Scale(domain=[-reach, reach], nice=False)
        turn = np.linspace(0, 2 * math.pi, 181)
        place = {
            "x": alt.X("x:Q", title="real part", scale=axis),
            "y": alt.Y("y:Q", title="imaginary part", scale=axis),
        }
        rim = [{"x": math.cos(t), "y": math.sin(t), "order": t} for t in turn.tolist()]
        circle = make.Chart(make.Data(values=rim)).mark_line(color="#888", strokeDash=[4, 3], strokeWidth=1.2)
        dots = [{"x": float(z.real), "y": float(z.imag)} for z in self.eigenvalues]
        cloud = make.Chart(make.Data(values=dots)).mark_circle(size=32, opacity=0.75, color=PALETTE[0])
        drawn = make.layer(circle.encode(order="order:Q", **place), cloud.encode(**place))
        return styled(drawn, "Eigenvalues and the unit circle", width=_SIDE, height=_SIDE)

    def plot_transient(self) -> Chart:
        """Draw the norms of the powers against what the spectral radius and the Kreiss constant say."""
        powers = np.arange(len(self.transient))
        series = {"||W^k||": (powers, self.transient), "spectral radius^k": (powers, self.radius**powers)}
        if math.isfinite(self.kreiss):
            series["Kreiss constant"] = (powers, np.full(len(powers), self.kreiss))
        chart = lines(
            series,
            x="power k (steps)",
            y="norm",
            title="Transient: norm of the powers",
            log_y=True,
        )
        return chart.properties(height=_SIDE)

    def plot_angles(self) -> Chart:
        """Draw the histogram of the eigenvalues' angles."""
        import altair as alt

        make: Any = alt
        rows = [
            {"from": float(a), "to": float(b), "count": int(count)}
            for a, b, count in zip(self.angle_edges[:-1], self.angle_edges[1:], self.angle_counts, strict=True)
        ]
        bars = (
            make.Chart(make.Data(values=rows))
            .mark_bar(color=PALETTE[0], opacity=0.85, binSpacing=1)
            .encode(
                x=alt.X(
                    "from:Q",
                    title="angle of the eigenvalue (degrees)",
                    bin="binned",
                    scale=alt.Scale(domain=[-180, 180], nice=False),
                    axis=alt.Axis(values=list(range(-180, 181, 60))),
                ),
                x2="to:Q",
                y=alt.Y("count:Q", title="eigenvalues", axis=alt.Axis(tickMinStep=1)),
                tooltip=[alt.Tooltip("from:Q"), alt.Tooltip("to:Q"), alt.Tooltip("count:Q")],
            )
        )
        return styled(bars, "Angles of the eigenvalues", width=_SIDE)

    def plot_subdiagonals(self) -> Chart:
        """Draw the mean size of the k-th subdiagonals of the Schur form, from k = 1 on."""
        return lines(
            {"mean": (np.arange(1, len(self.subdiagonals)), self.subdiagonals[1:])},
            x="subdiagonal k of the Schur form",
            y="mean size of its entries",
            title="Where the non-normal part lies",
            marks=len(self.subdiagonals) <= 40,
        )


_SIDE = 300
