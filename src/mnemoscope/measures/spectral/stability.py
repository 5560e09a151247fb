"""Whether the powers of a matrix decay, stay bounded or grow, as far as float64 can tell."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Complex, Float, Inexact

from mnemoscope.measures.spectral.schur import SchurForm

__all__ = ["Stability", "stability"]

_NEAR = 1e-6
_EPS = float(np.finfo(float).eps)
_DEFECTIVE = 1e6


@dataclass(frozen=True)
class Stability:
    """What the powers of a matrix do.

    Attributes
    ----------
    radius
        The spectral radius.
    kind
        ``"stable"``: they decay. ``"marginal"``: eigenvalues on the unit circle, to rounding, each with as many
        eigenvectors as it needs: they stay bounded. ``"unstable"``: they grow, by an eigenvalue outside the circle
        or one on it that lacks eigenvectors.
    projector
        Largest norm of the spectral projector of an eigenvalue on the unit circle; 0 where there is none.
    rounding
        Of the type that the matrix was stored in.
    """

    radius: float
    kind: str
    projector: float
    rounding: float = _EPS

    @property
    def bounded(self) -> bool:
        """Whether the powers stay bounded."""
        return self.kind != "unstable"

    def is_one(self, value: float, size: int) -> bool:
        """Whether a norm or numerical radius is at most 1 to rounding; never generous to a matrix off the circle."""
        allowed = 8 * size * _EPS if self.kind == "stable" else max(8 * size * _EPS, 16 * self.rounding)
        return value <= 1 + allowed


def stability(
    W: Inexact[np.ndarray, "n n"],
    form: SchurForm,
    values: Complex[np.ndarray, " n"] | None = None,
    rounding: float = _EPS,
) -> Stability:
    """Classify a matrix by its eigenvalues near the unit circle and how well they are known.

    Parameters
    ----------
    W, form
        The matrix and its Schur form.
    values
        Its eigenvalues, where they are known better than by the Schur form.
    rounding
        Of the type that W was stored in: an orthogonal matrix in float32 has eigenvalues up to 1e-6 off the circle.
    """
    radius = float(np.abs(np.diag(form.upper) if values is None else values).max())
    near = max(_NEAR, 64 * rounding)
    if radius < 1 - near:
        return Stability(radius, "stable", 0.0, rounding)
    if radius > 1 + near:
        return Stability(radius, "unstable", 0.0, rounding)
    values, left, right = _eigenvectors(form.upper)
    slack = np.minimum(_slack(W, form, left, right, rounding), near)
    if (np.abs(values) > 1 + slack).any():
        return Stability(radius, "unstable", 0.0, rounding)
    on = np.abs(values) >= 1 - slack
    if not on.any():
        return Stability(radius, "stable", 0.0, rounding)
    projector = max(_projector_norm(left[:, group], right[:, group]) for group in _groups(values, on))
    return Stability(radius, "unstable" if projector > _DEFECTIVE else "marginal", projector, rounding)


def _eigenvectors(
    upper: Inexact[np.ndarray, "n n"],
) -> tuple[Complex[np.ndarray, " n"], Complex[np.ndarray, "n n"], Complex[np.ndarray, "n n"]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        values, left, right = scipy.linalg.eig(upper, left=True, right=True)
    return values, left, right


def _slack(
    W: Inexact[np.ndarray, "n n"],
    form: SchurForm,
    left: Complex[np.ndarray, "n n"],
    right: Complex[np.ndarray, "n n"],
    rounding: float,
) -> Float[np.ndarray, " n"]:
    """Return by how much rounding may have moved each eigenvalue: its condition number times that of W and its form."""
    if form.triangular:
        return np.full(len(W), 8 * rounding)
    condition = 1 / np.maximum(np.abs((left.conj() * right).sum(axis=0)), 1e-300)
    moved = max(4 * len(W) * _EPS, 16 * rounding if rounding > _EPS else 0.0) * float(np.linalg.norm(W, 2))
    found: np.ndarray = np.maximum(moved * condition, 1e-12)
    return found


def _groups(values: Complex[np.ndarray, " n"], on: np.ndarray) -> list[np.ndarray]:
    """Return the indices of the chosen eigenvalues, those that are equal to rounding together."""
    left = list(np.flatnonzero(on))
    groups = []
    while left:
        near = [i for i in left if abs(values[i] - values[left[0]]) < 1e-7]
        groups.append(np.array(near))
        left = [i for i in left if i not in near]
    return groups


def _projector_norm(left: Complex[np.ndarray, "n m"], right: Complex[np.ndarray, "n m"]) -> float:
    """Return the norm of the projector onto the span of `right` along the complement of `left`."""
    x, rank_x = _orthonormal(right)
    y, rank_y = _orthonormal(left)
    if min(rank_x, rank_y) < right.shape[1]:
        return float("inf")
    smallest = np.linalg.svd(y.conj().T @ x, compute_uv=False)[-1]
    return float(1 / smallest) if smallest > 0 else float("inf")


def _orthonormal(vectors: Complex[np.ndarray, "n m"]) -> tuple[Complex[np.ndarray, "n m"], int]:
    u, sizes, _ = np.linalg.svd(vectors, full_matrices=False)
    return u, int((sizes > 1e-6 * sizes[0]).sum())
