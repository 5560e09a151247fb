"""Powers of a matrix: whether they decay, their norms, and the exact maximum over all of them."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg
from jaxtyping import Complex, Float, Inexact

from mnemoscope.measures.spectral.eigenvalues import eigenvalues
from mnemoscope.measures.spectral.schur import SchurForm

__all__ = ["Amplification", "Stability", "amplification", "power_norms", "spectral_norm", "stability"]

_NEAR = 1e-6
_EPS = float(np.finfo(float).eps)
_DEFECTIVE = 1e6


@dataclass(frozen=True)
class Stability:
    """Decay or growth of the powers of a matrix.

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
        Its eigenvalues, where they are known already.
    rounding
        Of the type that W was stored in: an orthogonal matrix in float32 has eigenvalues up to 1e-6 off the circle.
    """
    radius = float(np.abs(eigenvalues(W).values if values is None else values).max())
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


_DOUBLINGS = 24
_BUDGET = 20_000
_MARGINAL = 2_000


@dataclass(frozen=True)
class Amplification:
    """The largest norm of a power.

    Attributes
    ----------
    value
        max over k >= 0 of ||W^k||, at least 1 as W^0 = I; infinite when the powers are not bounded.
    power
        The first k that attains it; -1 when none does.
    exact
        False where not all powers could be looked at or bounded: then it is a lower bound.
    """

    value: float
    power: int
    exact: bool


def spectral_norm(matrix: Inexact[np.ndarray, "n n"]) -> float:
    """Return the largest singular value, to full relative precision, cheaper than by an SVD."""
    scale = float(np.abs(matrix).max())
    if scale == 0:
        return 0.0
    scaled = matrix / scale
    return scale * math.sqrt(float(np.linalg.eigvalsh(scaled @ scaled.conj().T)[-1]))


def power_norms(W: Inexact[np.ndarray, "n n"], horizon: int) -> Float[np.ndarray, " powers"]:
    """Return ||W^k|| for k = 0 .. horizon; infinite where it is beyond float64."""
    found, power = np.full(horizon + 1, np.inf), np.eye(len(W), dtype=W.dtype)
    for k in range(horizon + 1):
        found[k] = spectral_norm(power)
        with np.errstate(over="ignore", invalid="ignore"):
            power = power @ W
        if not np.isfinite(power).all():
            break
    return found


def amplification(W: Inexact[np.ndarray, "n n"], stability: Stability) -> Amplification:
    """Return the largest norm of a power, with a proof that no other is larger.

    As ||W^(a+j)|| <= ||W^a|| ||W^j||, the powers of an interval [a, a + L) are at most ||W^a|| max_{j<L} ||W^j||. That
    discards most intervals unseen, and all powers from m on once ||W^m|| <= 1.
    """
    if not stability.bounded:
        return Amplification(float("inf"), -1, True)
    norm = spectral_norm(W)
    if stability.is_one(norm, len(W)):
        return Amplification(1.0, 0, True)
    if stability.kind == "marginal":
        norms = power_norms(W, _MARGINAL)
        return Amplification(float(norms.max()), int(norms.argmax()), False)
    return _Search().run(W, norm)


@dataclass
class _Search:
    """The search over powers, interval by interval."""

    best: float = 1.0
    power: int = 0
    left: int = _BUDGET
    powers: list[np.ndarray] = field(default_factory=list)
    largest: list[float] = field(default_factory=list)  # of ||W^j|| for j < 2^i

    def run(self, W: Inexact[np.ndarray, "n n"], norm: float) -> Amplification:
        current = W
        for i in range(_DOUBLINGS):
            self.powers.append(current)
            self.largest.append(self.best)
            if norm <= 1:
                return Amplification(self.best, self.power, True)
            self.look(current, norm, 2**i, i)
            if self.left <= 0:
                break
            current = current @ current
            norm = spectral_norm(current)
        return Amplification(self.best, self.power, False)

    def look(self, matrix: Inexact[np.ndarray, "n n"], norm: float, start: int, level: int) -> None:
        """Look at the powers [start, start + 2^level), the first of which is given."""
        if norm > self.best:
            self.best, self.power = norm, start
        if level == 0 or norm * self.largest[level] <= self.best or self.left <= 0:
            return
        self.look(matrix, norm, start, level - 1)
        self.left -= 1
        half = matrix @ self.powers[level - 1]
        self.look(half, spectral_norm(half), start + 2 ** (level - 1), level - 1)
