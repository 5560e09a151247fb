"""The spectrum of a recurrent matrix, how far it is from normal, and what that does to its powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.measures.registry import measure
from mnemoscope.measures.spectral.angles import numerical_radius
from mnemoscope.measures.spectral.kreiss import kreiss_constant
from mnemoscope.measures.spectral.normality import normality
from mnemoscope.measures.spectral.powers import amplification, power_norms
from mnemoscope.measures.spectral.result import Spectrum
from mnemoscope.measures.spectral.schur import SchurForm, schur_form
from mnemoscope.measures.spectral.stability import Stability, stability
from mnemoscope.measures.spectral.state_matrix import StateMatrix, state_matrix
from mnemoscope.measures.threads import few_threads

__all__ = ["Spectrum", "spectrum", "spectrum_of"]


@measure(
    "spectrum",
    kinds=("recurrent",),
    needs=("matrix",),
    matrices={"W": "matrix"},
    quick={"tolerance": 0.02, "horizon": 60},
)
def spectrum(W: Any, tolerance: float | None = None, horizon: int = 100, settle: int = 0, angles: int = 36) -> Spectrum:
    r"""Find eigenvalues, departure from normality, and transient growth of a recurrent matrix.

    .. math::
        \mathrm{henrici} = \Big(\|W\|_F^2 - \sum_i |\lambda_i|^2\Big)^{1/2}, \quad
        K = \sup_{|z|>1} (|z| - 1) \|(z - W)^{-1}\|, \quad
        K \le \max_{k \ge 0} \|W^k\|_2 \le e N K

    The departure comes from the Schur form, so that it is zero to rounding for a normal matrix; the Kreiss constant K
    from a global search with a certificate; the amplification max_k \|\|W^k\|\| from the powers, with a proof that no
    later one is larger. Both are infinite when the spectral radius exceeds 1, or when an eigenvalue on the unit circle
    lacks eigenvectors.

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
        return spectrum_of(source, tolerance, horizon, angles)


def spectrum_of(source: StateMatrix, tolerance: float | None, horizon: int, angles: int) -> Spectrum:
    """Return the spectrum of a matrix that has been checked."""
    W, steps, bins = source.matrix, positive_int("horizon", horizon), positive_int("angles", angles)
    gap = (1e-6 if len(W) <= 128 else 1e-2) if tolerance is None else positive("tolerance", tolerance)
    form = schur_form(W)
    normal = normality(W, form, source.rounding)
    kind = stability(W, form, normal.eigenvalues, source.rounding)
    kreiss = kreiss_constant(W, form, kind, gap)
    growth = amplification(W, kind)
    frobenius = float(np.linalg.norm(W))
    shown = form if source.theta is None else SchurForm(*source.theta, form.upper, False)
    symmetric = (W + W.conj().T) / 2
    counts, edges = np.histogram(np.degrees(np.angle(normal.eigenvalues)), bins=bins, range=(-180.0, 180.0))
    return Spectrum(
        status="exact" if growth.exact else "bound",
        digits=min(normal.digits, kreiss.digits, 13),
        assumptions=_assumptions(source, kind, growth.exact),
        cost="O(n^3) time for each of some 30 circles (an eigenvalue problem of size 2n) and each power; O(n^2) memory",
        eigenvalues=normal.eigenvalues,
        radius=kind.radius,
        stability=kind.kind,
        henrici=normal.henrici,
        share=0.0 if frobenius == 0 else min(1.0, (normal.henrici / frobenius) ** 2),
        kreiss=kreiss.value,
        kreiss_bound=kreiss.bound,
        kreiss_point=kreiss.point,
        amplification=growth.value,
        amplification_power=growth.power,
        amplification_exact=growth.exact,
        transient=power_norms(W, steps),
        numerical_abscissa=float(np.linalg.eigvalsh(symmetric)[-1]),
        numerical_radius=numerical_radius(W),
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
