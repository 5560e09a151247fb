"""Eigenvalues and departure from normality, in extended precision where float64 loses them."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Complex, Inexact

from mnemoscope.measures.spectral.schur import SchurForm, ordered

__all__ = ["Normality", "normality"]

_WANTED = 8
_LARGEST = 100
_BITS = 212
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Normality:
    """How far a matrix is from normal.

    Attributes
    ----------
    eigenvalues
        Largest modulus first.
    henrici
        sqrt(||W||_F^2 - sum |lambda|^2).
    digits
        Decimal digits of it that can be trusted.
    """

    eigenvalues: Complex[np.ndarray, " n"]
    henrici: float
    digits: int


def normality(W: Inexact[np.ndarray, "n n"], form: SchurForm, rounding: float = _EPS) -> Normality:
    """Return eigenvalues and Henrici's departure.

    Eigenvalues of a matrix far from normal may be so sensitive that float64 has none of their digits right. The loss is
    estimated from their eigenvectors; where fewer than 8 digits of the departure are left, and for up to 100 rows,
    the eigenvalues are computed with 212 bits from the exact values of the given floats. `rounding` is that of the type
    in which W was stored: a departure of that size is a normal matrix.
    """
    digits = _digits(W, form, rounding)
    if digits >= _WANTED or len(W) > _LARGEST:
        return Normality(form.eigenvalues, form.henrici, digits)
    return _extended(W)


def _digits(W: Inexact[np.ndarray, "n n"], form: SchurForm, rounding: float) -> int:
    """Estimate the digits of the departure from the derivative of its square by W, times the rounding of W."""
    henrici, size = form.henrici, float(np.linalg.norm(W))
    if form.triangular or henrici <= max(1e-11, 16 * rounding) * size:  # what is left of a normal matrix is rounding
        return 15
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        values, left, right = scipy.linalg.eig(form.upper, left=True, right=True)
    overlap = (right.conj() * left).sum(axis=0)
    overlap = np.where(np.abs(overlap) < _EPS, _EPS, overlap)
    gradient = form.upper - (left * (values / overlap)) @ right.conj().T
    lost = _EPS * size * float(np.linalg.norm(gradient)) / henrici**2
    return max(0, min(15, math.floor(-math.log10(max(lost, 1e-15)))))


def _extended(W: Inexact[np.ndarray, "n n"]) -> Normality:
    import flint

    before = flint.ctx.prec
    flint.ctx.prec = _BITS
    try:
        exact = flint.acb_mat([[flint.acb(complex(x)) for x in row] for row in W.tolist()])
        values = exact.eig(algorithm="approx")
        total = sum((flint.arb(x.real) ** 2 + flint.arb(x.imag) ** 2 for x in W.ravel().tolist()), flint.arb(0))
        total -= sum((value.real**2 + value.imag**2 for value in values), flint.arb(0))
        henrici = math.sqrt(max(float(total.mid()), 0.0))
        found = np.array([complex(value.real.mid(), value.imag.mid()) for value in values])
    finally:
        flint.ctx.prec = before
    return Normality(ordered(found), henrici, 14)
