"""Whether a linear network has a stationary state, also where float64's eigenvalues cannot tell."""

from __future__ import annotations

import numpy as np
from jaxtyping import Complex, Float
from scipy.linalg import eig

from mnemoscope.core.errors import UserError
from mnemoscope.measures.fisher.vector_precise import certified_radius

__all__ = ["prove_stable", "require_stable"]

_UNIT = 2.0**-52
_MARGIN = 100.0  # between the first-order error of an eigenvalue and its distance from the circle


def require_stable(W: Float[np.ndarray, "n n"], prove: bool) -> float:
    """Return the spectral radius if it is below 1, else raise; `prove` spends extended precision on doubtful cases."""
    radius = _radius(np.linalg.eigvals(W)) if _is_full(W) else float(np.abs(W.diagonal()).max())
    if radius < 1 - len(W) * _UNIT:
        return radius
    if prove and not _is_normal(W):
        return prove_stable(W)
    raise _unstable(radius)


def prove_stable(W: Float[np.ndarray, "n n"]) -> float:
    """Return the spectral radius if it is below 1 beyond doubt, else raise.

    Beyond doubt: W is triangular, or its eigenvalues' condition numbers say so, or extended precision proves it.
    """
    if not _is_full(W):
        radius, error = float(np.abs(W.diagonal()).max()), 0.0
    else:
        values, left, right = eig(W, left=True, right=True, check_finite=False)
        overlap = float(np.abs(np.einsum("ij,ij->j", left.conj(), right)).min())
        radius, error = _radius(values), _MARGIN * len(W) * _UNIT * float(np.linalg.norm(W)) / max(overlap, 1e-300)
    proved = radius if abs(radius - 1) > error else certified_radius(W)
    if proved >= 1:
        raise _unstable(radius if radius >= 1 else proved)
    return proved


def _radius(values: Complex[np.ndarray, " n"]) -> float:
    return float(np.abs(values).max())


def _is_full(W: Float[np.ndarray, "n n"]) -> bool:
    return bool(np.tril(W, -1).any() and np.triu(W, 1).any())


def _is_normal(W: Float[np.ndarray, "n n"]) -> bool:
    """Whether W is normal but for rounding, so that float64's eigenvalues are right."""
    return bool(np.linalg.norm(W @ W.T - W.T @ W) <= 1e-12 * np.linalg.norm(W) ** 2)


def _unstable(radius: float) -> UserError:
    return UserError(
        f"W must have a spectral radius below 1 for an infinite horizon, got {radius:.8g}; "
        "a finite one works: horizon=100"
    )
