"""Modes that only the rounding of the weights connects with the input: found, and taken out."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Complex, Float

__all__ = ["without_dust"]

EPS = float(np.finfo(float).eps)
MOST_DECOMPOSITIONS = 400
"""How many singular value decompositions a search may take; beyond it only the first candidates are looked at."""


def without_dust(
    W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "r r"], Float[np.ndarray, " r"]]:
    r"""Return (W, v) without the modes that a change of the weights by rounding errors cuts off.

    A left eigenvector y with y* v = 0 belongs to a mode that v does not reach. In floats y* v is never quite zero, so a
    mode counts as cut off when y, made orthogonal to v, is a left eigenvector of a matrix whose every entry differs
    from that of W by a few units in its last place (Oettli and Prager's condition):

    .. math:: |y^* (W - \lambda I)|_j \le c\, \epsilon\, (|y|^\top |W|)_j \quad \text{for every column } j

    Weights that are exactly zero stay zero, and small weights are only changed in their own last place, so weak
    couplings count as couplings: the criterion cuts off what was meant to be zero and was rounded, and nothing else.
    """
    while len(W) > 1:
        modes = _cut_off(W, v)
        if not modes.shape[1]:
            break
        rest = _complement(modes)
        if not rest.shape[1]:
            break
        W, v = rest.T @ W @ rest, rest.T @ v
    return W, v


def _complement(modes: Complex[np.ndarray, "n m"]) -> Float[np.ndarray, "n r"]:
    both = np.concatenate([modes.real, modes.imag], axis=1)
    left, sizes, _ = np.linalg.svd(both, full_matrices=True)
    return np.asarray(left[:, int((sizes > 1e-6).sum()) :])


def _cut_off(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]) -> Complex[np.ndarray, "n m"]:
    size = len(W)
    small = 100 * size * EPS * np.linalg.norm(W)
    eigenvalues, rights = np.linalg.eig(W.T)
    found: list[Complex[np.ndarray, "n m"]] = [np.zeros((size, 0), dtype=complex)]
    candidates = eigenvalues[_suspect(eigenvalues, rights, v)]
    for value in candidates[candidates.imag >= 0][:MOST_DECOMPOSITIONS]:
        pencil = np.concatenate([W - value * np.eye(size), v[:, None]], axis=1)
        left, sizes, _ = np.linalg.svd(pencil, full_matrices=False)
        for y in left[:, sizes <= small].T:
            y = _cleaned(y, v)
            if _is_left_eigenvector(y, value, W):
                found.append(np.conj(y)[:, None])
    return np.concatenate(found, axis=1)


def _suspect(
    eigenvalues: Complex[np.ndarray, " n"], vectors: Complex[np.ndarray, "n n"], v: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Return which eigenvalues are near another one, or belong to a left eigenvector that is nearly orthogonal to v."""
    gaps = np.abs(eigenvalues[:, None] - eigenvalues[None, :])
    np.fill_diagonal(gaps, np.inf)
    scale = max(float(np.abs(eigenvalues).max()), EPS)
    hidden = np.abs(vectors.T @ v) <= 1e-6 * np.linalg.norm(v)
    return np.asarray((gaps.min(axis=1) <= 1e-6 * scale) | hidden)


def _cleaned(y: Complex[np.ndarray, " n"], v: Float[np.ndarray, " n"]) -> Complex[np.ndarray, " n"]:
    y = y - v * (v @ y) / (v @ v)
    return np.where(np.abs(y) <= 100 * len(y) * EPS, 0, y)


def _is_left_eigenvector(y: Complex[np.ndarray, " n"], value: complex, W: Float[np.ndarray, "n n"]) -> bool:
    left = np.conj(y)
    residual = np.abs(left @ W - value * left)
    return bool(np.all(residual <= 100 * len(y) * EPS * (np.abs(y) @ np.abs(W))))
