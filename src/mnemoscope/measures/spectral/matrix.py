"""Spectrum of a recurrent matrix: eigenvalues, departure from normality, and growth of its powers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Complex, Float, Inexact, Int

from mnemoscope.core import memory
from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import few_threads
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.spectral import large
from mnemoscope.measures.spectral.eigenvalues import frobenius
from mnemoscope.measures.spectral.kreiss import kreiss_constant, numerical_radius
from mnemoscope.measures.spectral.powers import Stability, amplification, power_norms, stability
from mnemoscope.measures.spectral.schur import SchurForm, normality, schur_form
from mnemoscope.measures.spectral.state_matrix import BYTES, StateMatrix, state_matrix

if TYPE_CHECKING:
    from mnemoscope.measures.pace import Pace
    from mnemoscope.report.chart import Chart

__all__ = ["Spectrum", "spectrum"]


@result
class Spectrum(Result):
    """Eigenvalues, non-normality and transient growth of one matrix.

    Attributes
    ----------
    eigenvalues
        Largest modulus first; beyond 2,048 rows the leading ones.
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
        W = Q S Q*, S lower triangular but for the 2 x 2 blocks of conjugate pairs; empty where the matrix is too large
        to be certified, and so are `subdiagonals`.
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
        from mnemoscope.report.chart import beside

        return beside(self.plot_eigenvalues(), self.plot_transient(), self.plot_angles(), self.plot_subdiagonals())

    def plot_eigenvalues(self) -> Chart:
        """Draw the eigenvalues in the complex plane, with the unit circle."""
        from mnemoscope.report.figure import Figure, Mark, Plane
        from mnemoscope.report.vega import chart

        rim = Mark(kind="circle", value=1.0, label="unit circle")
        drawing = Plane(points={"eigenvalues": self.eigenvalues.tolist()}, title="eigenvalues", marks=(rim,))
        return chart(Figure(title="Eigenvalues and the unit circle", drawing=drawing))

    def plot_transient(self) -> Chart:
        """Draw the norms of the powers against what the spectral radius and the Kreiss constant say."""
        from mnemoscope.report.chart import lines

        powers = np.arange(len(self.transient))
        series = {"||W^k||": (powers, self.transient), "spectral radius^k": (powers, self.radius**powers)}
        if math.isfinite(self.kreiss):
            series["Kreiss constant"] = (powers, np.full(len(powers), self.kreiss))
        return lines(
            series,
            x="power k (steps)",
            y="norm",
            title="Transient: norm of the powers",
            log_y=True,
        )

    def plot_angles(self) -> Chart:
        """Draw the histogram of the eigenvalues' angles."""
        from mnemoscope.report.figure import Bars, Figure, Series
        from mnemoscope.report.vega import chart

        middles = (self.angle_edges[:-1] + self.angle_edges[1:]) / 2
        bars = Bars(
            groups=[f"{angle:.0f}\N{DEGREE SIGN}" for angle in middles],
            series=[Series(entry="eigenvalues", x=range(len(middles)), y=self.angle_counts.tolist())],
            x_title="angle of the eigenvalue",
            y_title="eigenvalues",
        )
        return chart(Figure(title="Angles of the eigenvalues", drawing=bars))

    def plot_subdiagonals(self) -> Chart:
        """Draw the mean size of the k-th subdiagonals of the Schur form, from k = 1 on."""
        from mnemoscope.report.chart import lines

        return lines(
            {"mean": (np.arange(1, len(self.subdiagonals)), self.subdiagonals[1:])},
            x="subdiagonal k of the Schur form",
            y="mean size of its entries",
            title="Where the non-normal part lies",
            points=len(self.subdiagonals) <= 40,
        )


def _paced(n: Mapping[str, float], pace: Pace) -> float:
    """Return seconds: of two Jacobians, and of what LAPACK does with one."""
    size = n["S"]
    if BYTES * size**2 > memory.allowance():  # it is refused
        return 0.01
    certified, whole = size <= n["certified"], size <= large.ALL
    formed = 2 * size * pace.pull.each
    if certified:
        return formed + pace.arithmetic * (1.4e-7 * size**3) + 0.02
    return formed + pace.arithmetic * ((1e-9 * size**3 if whole else 0) + (3e-7 if whole else 7e-7) * size**2) + 1.0


_COST = Cost(
    time={"M^3": 1.4e-7, "E^3": 5e-10, "S^2": 6e-7, "N": 0.8},
    memory="S^2",
    sizes={
        "M": lambda given: given["S"] if given["S"] <= given["certified"] else 0,
        "N": lambda given: given["S"] > given["certified"],
        "E": lambda given: given["S"] if given["S"] <= large.ALL else 0,
    },
    letters={"M": "rows of a matrix that is certified", "E": "rows of one whose eigenvalues are all found"},
    paced=_paced,
)


@measure(
    "spectrum",
    kinds=("recurrent",),
    needs=("matrix",),
    matrices={"W": "matrix"},
    quick={"tolerance": 0.02, "horizon": 60},
    cost=_COST,
)
def spectrum(
    W: Any,
    tolerance: float | None = None,
    horizon: int = 100,
    settle: int = 0,
    angles: int = 36,
    certified: int = large.DENSE,
) -> Spectrum:
    r"""Find eigenvalues, departure from normality, and transient growth of a recurrent matrix.

    .. math::
        \mathrm{henrici} = \Big(\|W\|_F^2 - \sum_i |\lambda_i|^2\Big)^{1/2}, \quad
        K = \sup_{|z|>1} (|z| - 1) \|(z - W)^{-1}\|, \quad
        K \le \max_{k \ge 0} \|W^k\|_2 \le e N K

    The departure comes from the Schur form, so that it is zero to rounding for a normal matrix; the Kreiss constant K
    from a global search with a certificate; the amplification max_k \|\|W^k\|\| from the powers, with a proof that no
    later one is larger. Both are infinite when the spectral radius exceeds 1, or when an eigenvalue on the unit circle
    lacks eigenvectors.

    Beyond `certified` rows Kreiss constant, amplification and numerical radius are lower bounds: from the rectangular
    Hessenberg matrix of an Arnoldi process, and from subspaces turned towards what grows. Eigenvalues are all found up
    to 2,048 rows, the leading 64 beyond, where the departure from normality is an upper bound.

    Parameters
    ----------
    W
        A square matrix, real or complex, or a network. A first-order network of one layer stands for its weight_hh_l0,
        of several layers for the matrix of its linear part; any other network for the Jacobian of its state at rest
        (zero input, initial state).
    tolerance
        Relative gap that the certificate of the Kreiss constant may leave; the constant itself is found to rounding.
        None: 1e-6 up to 128 units, 0.01 beyond.
    horizon
        Powers in the transient curve.
    settle
        Steps at zero input before a network's Jacobian is taken.
    angles
        Bins of the histogram of eigenvalue angles.
    certified
        Largest matrix that is certified, in rows.

    Returns
    -------
    Spectrum

    References
    ----------
    Henrici (1962); Spijker (1991) on Kreiss's theorem; Trefethen and Embree (2005); Mitchell (2020); Kerg et al.
    (2019), sections 3.4, 3.6.

    Examples
    --------
    >>> found = spectrum([[0.5, 0.0], [2.0, 0.5]])
    >>> print(found)  # doctest: +ELLIPSIS
    spectral radius 0.5, Henrici departure 2 (89% of the energy), Kreiss constant 1.25, largest ||W^k|| 2.118034 at k...
    >>> round(found.numerical_radius, 12), found.subdiagonals.tolist()
    (1.5, [0.5, 2.0])
    """
    if isinstance(W, list | tuple) and W and not _is_rows(W):
        raise UserError("spectrum takes one matrix or network; a list of them goes to mnemoscope.measures.spectra")
    if isinstance(settle, bool) or not isinstance(settle, int) or settle < 0:
        raise expected("settle", "an integer of at least 0", settle)
    source = state_matrix(W, settle)
    with few_threads(len(source.matrix)):
        if len(source.matrix) > positive_int("certified", certified):
            return _large(source, positive_int("horizon", horizon), positive_int("angles", angles))
        return spectrum_of(source, tolerance, horizon, angles)


def _large(source: StateMatrix, steps: int, bins: int) -> Spectrum:
    """Return bounds of what a large matrix does."""
    W = source.matrix
    values = large.leading_eigenvalues(W)
    radius, size, whole = float(np.abs(values[0])), frobenius(W), len(values) == len(W)
    near = max(1e-6, 64 * source.rounding)
    kind = "stable" if radius < 1 - near else "unstable" if radius > 1 + near else "marginal"
    henrici = math.sqrt(max(size**2 - float((np.abs(values) ** 2).sum()), 0.0))
    norms, H = large.norms_of_powers(W, steps), large.arnoldi(W)
    kreiss, point = (math.inf, complex(math.inf)) if kind == "unstable" else large.kreiss_lower_bound(H, radius)
    abscissa, reach = large.numerical_range_ends(W, H)
    counts, edges = np.histogram(np.degrees(np.angle(values)), bins=bins, range=(-180.0, 180.0))
    empty = np.zeros((0, 0))
    bounds = "Kreiss constant, amplification, norms of powers and numerical radius are lower bounds from subspaces"
    leading = () if whole else (f"of {len(W)} eigenvalues the leading {len(values)}; the departure is an upper bound",)
    return Spectrum(
        status="bound",
        digits=None,
        assumptions=(*_assumptions(source, Stability(radius, kind, 0.0), True), bounds, *leading),
        cost=str(_COST),
        eigenvalues=values,
        radius=radius,
        stability=kind,
        henrici=henrici,
        share=0.0 if size == 0 else min(1.0, (henrici / size) ** 2),
        kreiss=kreiss,
        kreiss_bound=math.inf,
        kreiss_point=point,
        amplification=math.inf if kind == "unstable" else max(1.0, float(norms.max())),
        amplification_power=-1 if kind == "unstable" else int(norms.argmax()),
        amplification_exact=False,
        transient=norms,
        numerical_abscissa=abscissa,
        numerical_radius=max(reach, radius),
        schur=empty,
        basis=empty,
        subdiagonals=np.zeros(0),
        angle_counts=counts,
        angle_edges=edges,
        matrix=source.what,
    )


def spectrum_of(source: StateMatrix, tolerance: float | None, horizon: int, angles: int) -> Spectrum:
    """Return the spectrum of a matrix that has been checked."""
    n = len(source.matrix)
    _COST.require_end("spectrum", S=n, M=n, E=n, N=0)
    W, steps, bins = source.matrix, positive_int("horizon", horizon), positive_int("angles", angles)
    gap = (1e-6 if len(W) <= 128 else 1e-2) if tolerance is None else positive("tolerance", tolerance)
    form = schur_form(W)
    normal = normality(W, form, source.rounding)
    kind = stability(W, form, normal.eigenvalues, source.rounding)
    reach = numerical_radius(W)
    kreiss = kreiss_constant(W, form, kind, gap, reach=reach)
    growth = amplification(W, kind)
    size = frobenius(W)
    shown = form if source.theta is None else SchurForm(*source.theta, form.upper, False)
    symmetric = (W + W.conj().T) / 2
    counts, edges = np.histogram(np.degrees(np.angle(normal.eigenvalues)), bins=bins, range=(-180.0, 180.0))
    return Spectrum(
        status="exact" if growth.exact else "bound",
        digits=min(normal.digits, kreiss.digits, 13),
        assumptions=_assumptions(source, kind, growth.exact),
        cost=str(_COST),
        eigenvalues=normal.eigenvalues,
        radius=kind.radius,
        stability=kind.kind,
        henrici=normal.henrici,
        share=0.0 if size == 0 else min(1.0, (normal.henrici / size) ** 2),
        kreiss=kreiss.value,
        kreiss_bound=kreiss.bound,
        kreiss_point=kreiss.point,
        amplification=growth.value,
        amplification_power=growth.power,
        amplification_exact=growth.exact,
        transient=power_norms(W, steps),
        numerical_abscissa=float(np.linalg.eigvalsh(symmetric)[-1]),
        numerical_radius=reach,
        schur=shown.lower,
        basis=shown.basis,
        subdiagonals=shown.subdiagonals(),
        angle_counts=counts,
        angle_edges=edges,
        matrix=source.what,
    )


def _assumptions(source: StateMatrix, kind: Stability, exact: bool) -> tuple[str, ...]:
    found = [] if source.what == "the given matrix" else [f"the matrix is {source.what}"]
    if kind.kind == "marginal":
        found.append("eigenvalues on the unit circle to rounding are taken to lie on it")
    if not exact:
        found.append("the amplification is the largest among the powers that were looked at: a lower bound")
    return tuple(found)


def _is_rows(value: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list is a matrix written as rows of numbers."""
    return all(isinstance(row, list | tuple) or getattr(row, "ndim", None) == 1 for row in value)
