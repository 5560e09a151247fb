"""Schur form of a matrix, and its eigenvalues and departure from normality in the precision that they need.

W = Q S Q*, S lower triangular but for the 2 x 2 blocks of conjugate pairs.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Bool, Complex, Float, Inexact

from mnemoscope.core.arrays import square
from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.measures.spectral.eigenvalues import BITS, eigenvalues, enclosed_eigenvalues, frobenius, ordered

__all__ = ["Normality", "SchurForm", "checked_matrix", "normality", "schur_form"]


@dataclass(frozen=True)
class SchurForm:
    """W = Q S Q*.

    Attributes
    ----------
    lower
        S: lower triangular, with 2 x 2 blocks for the conjugate pairs of a real W.
    basis
        Q, orthogonal or unitary.
    upper
        Upper triangular and complex, unitarily similar to W: for resolvents.
    triangular
        Whether W came triangular, so that S is W itself, reordered, and free of rounding.
    """

    lower: Inexact[np.ndarray, "n n"]
    basis: Inexact[np.ndarray, "n n"]
    upper: Inexact[np.ndarray, "n n"]
    triangular: bool

    @property
    def eigenvalues(self) -> Complex[np.ndarray, " n"]:
        """The eigenvalues, largest modulus first, and by angle among equals."""
        return ordered(np.diag(self.upper).astype(complex))

    @property
    def strict(self) -> Bool[np.ndarray, "n n"]:
        """Where the entries of S are that do not belong to a diagonal block."""
        mask = np.tril(np.ones(self.lower.shape, dtype=bool), -1)
        for i in self._pairs():
            mask[i + 1, i] = False
        return mask

    @property
    def henrici(self) -> float:
        """Henrici's departure from normality, sqrt(||W||_F^2 - sum |lambda|^2), from entries that vanish with it."""
        # A block [[a, b], [c, a]] with b c < 0 has eigenvalues of modulus^2 a^2 - b c, and leaves (b + c)^2.
        blocks = [self.lower[i, i + 1] + self.lower[i + 1, i] for i in self._pairs()]
        return frobenius(np.concatenate([self.lower[self.strict], blocks]))

    def subdiagonals(self) -> Float[np.ndarray, " n"]:
        """Return the mean size of the entries on the k-th subdiagonal of S, k = 0 .. n-1; blocks belong to k = 0.

        At k = 0 stands the mean modulus of the eigenvalues.
        """
        sizes, mask = np.abs(self.lower), self.strict
        found = np.empty(len(sizes))
        found[0] = np.abs(self.eigenvalues).mean()
        for k in range(1, len(sizes)):
            kept = np.diag(mask, -k)
            found[k] = np.diag(sizes, -k)[kept].mean() if kept.any() else 0.0
        return found

    def _pairs(self) -> list[int]:
        return [int(i) for i in np.flatnonzero(np.diag(self.lower, 1))]


def schur_form(W: Inexact[np.ndarray, "n n"]) -> SchurForm:
    """Return the Schur form; a matrix that is triangular already is kept as it is."""
    if not np.triu(W, 1).any():
        return SchurForm(W, np.eye(len(W)), W[::-1, ::-1], True)
    if not np.tril(W, -1).any():
        return SchurForm(W[::-1, ::-1], np.eye(len(W))[:, ::-1], W, True)
    if np.iscomplexobj(W):
        upper, basis = scipy.linalg.schur(W, output="complex")
        return SchurForm(upper[::-1, ::-1], basis[:, ::-1], upper, False)
    upper, basis = scipy.linalg.schur(W, output="real")
    return SchurForm(upper[::-1, ::-1], basis[:, ::-1], scipy.linalg.rsf2csf(upper, basis)[0], False)


def checked_matrix(name: str, value: Any) -> Inexact[np.ndarray, "n n"]:
    """Return `value` as a finite square float64 or complex128 matrix, or raise the standard error."""
    found = value.detach().cpu().resolve_conj().resolve_neg().numpy() if hasattr(value, "detach") else value
    try:
        found = np.array(found)
    except (TypeError, ValueError):
        raise expected(name, "an array of numbers", value) from None
    if found.dtype.kind != "c":
        return square(name, found)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or found.size == 0:
        raise expected(name, "a square matrix", Description(f"an array of shape {found.shape}"))
    found = found.astype(np.complex128)
    if not np.isfinite(found).all():
        bad = int(found.size - np.isfinite(found).sum())
        raise UserError(f"{name} must be finite, got {bad} NaN or infinite of {found.size} entries")
    return found if found.imag.any() else found.real.copy()


_WANTED = 8
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Normality:
    """Distance of a matrix from normal.

    Attributes
    ----------
    eigenvalues
        Largest modulus first.
    henrici
        sqrt(||W||_F^2 - sum |lambda|^2).
    digits
        Decimal digits of it that can be trusted.
    errors
        By how much rounding may have moved each eigenvalue.
    """

    eigenvalues: Complex[np.ndarray, " n"]
    henrici: float
    digits: int
    errors: Float[np.ndarray, " n"]


def normality(W: Inexact[np.ndarray, "n n"], form: SchurForm, rounding: float = _EPS) -> Normality:
    """Return eigenvalues and Henrici's departure.

    Eigenvalues of a matrix far from normal may be so sensitive that float64 has none of their digits right. The loss is
    estimated from their eigenvectors; where fewer than 8 digits of the departure are left, and for up to 256 rows, the
    eigenvalues are enclosed with 212 bits from the exact values of the given floats. `rounding` is that of the type in
    which W was stored: a departure of that size is a normal matrix.
    """
    digits, found = _digits(W, form, rounding), eigenvalues(W)
    enclosed = found.enclosed
    if digits < _WANTED and enclosed is None:
        enclosed = enclosed_eigenvalues(W)
    henrici, digits = (form.henrici, digits) if enclosed is None else (_departure(W, enclosed), 14)
    return Normality(found.values, henrici, digits, found.errors)


def _digits(W: Inexact[np.ndarray, "n n"], form: SchurForm, rounding: float) -> int:
    """Estimate the digits of the departure from the derivative of its square by W, times the rounding of W."""
    henrici, size = form.henrici, frobenius(W)
    if form.triangular or henrici <= max(1e-11, 16 * rounding) * size:  # what is left of a normal matrix is rounding
        return 15
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        values, left, right = scipy.linalg.eig(form.upper, left=True, right=True)
    overlap = (right.conj() * left).sum(axis=0)
    overlap = np.where(np.abs(overlap) < _EPS, _EPS, overlap)
    gradient = form.upper - (left * (values / overlap)) @ right.conj().T
    lost = _EPS * (size / henrici) * (frobenius(gradient) / henrici)
    return max(0, min(15, math.floor(-math.log10(max(lost, 1e-15)))))


def _departure(W: Inexact[np.ndarray, "n n"], values: list[Any]) -> float:
    import flint

    with flint.ctx.workprec(BITS):
        total = sum((flint.arb(x.real) ** 2 + flint.arb(x.imag) ** 2 for x in W.ravel().tolist()), flint.arb(0))
        total -= sum((value.real**2 + value.imag**2 for value in values), flint.arb(0))
        return math.sqrt(max(float(total.mid()), 0.0))
