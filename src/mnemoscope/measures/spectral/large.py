"""Spectra of large matrices: eigenvalues by LAPACK or ARPACK, and bounds of growth from an Arnoldi process.

With W V_m = V_{m+1} H, V orthonormal and H the rectangular Hessenberg matrix, sigma_min(z - H) is at least
sigma_min(z - W), since H is W seen on a subspace: resolvents, Kreiss constant and pseudospectra from it are lower
bounds. The square part of H gives no bound.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse.linalg
from jaxtyping import Complex, Float, Inexact

from mnemoscope.measures.spectral.eigenvalues import ordered

__all__ = [
    "ALL",
    "DENSE",
    "arnoldi",
    "kreiss_lower_bound",
    "leading_eigenvalues",
    "norms_of_powers",
    "numerical_range_ends",
    "resolvent_lower_bound",
]

DENSE = 512
"""Rows up to which spectra are certified: Schur form, Kreiss constant over all angles, norms of all powers."""

ALL = 2048
"""Rows up to which all eigenvalues are found."""

_LEADING = 64
_STEPS = 96
_RADII = 24
_NEAREST = 0.01
"""Distance from the unit circle at which the search begins at the latest: far from normal, it pays to look near it."""

_ANGLES = 64
_COLUMNS = 4
_TURNS = 8


def leading_eigenvalues(W: Inexact[np.ndarray, "n n"]) -> Complex[np.ndarray, " k"]:
    """Return all eigenvalues up to 2,048 rows, else the largest by ARPACK, as many as it found."""
    if len(W) <= ALL:
        return ordered(np.linalg.eigvals(W).astype(complex))
    start = np.random.default_rng(0).normal(size=len(W))
    try:
        found = scipy.sparse.linalg.eigs(W, k=_LEADING, v0=start, maxiter=30, tol=1e-8, return_eigenvectors=False)
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        found = error.eigenvalues
    if not len(found):  # eigenvalues of one modulus, as those of a rotation: their circle is all that can be said
        vector = start / np.linalg.norm(start)
        for _ in range(_LEADING):
            vector = W @ vector
        found = np.array([np.linalg.norm(vector) ** (1 / _LEADING)])
    return ordered(found.astype(complex))


def arnoldi(W: Inexact[np.ndarray, "n n"], hermitian: bool = False) -> Inexact[np.ndarray, "m1 m"]:
    """Return the rectangular Hessenberg matrix of W, or of (W + W*)/2, with every vector orthogonalised twice."""
    n, steps = len(W), min(_STEPS, len(W) - 1)
    kind, adjoint = np.result_type(W.dtype, float), W.conj().T
    basis, H = np.zeros((n, steps + 1), dtype=kind), np.zeros((steps + 1, steps), dtype=kind)
    start = np.random.default_rng(0).normal(size=n)
    basis[:, 0] = start / np.linalg.norm(start)
    for k in range(steps):
        vector = W @ basis[:, k]
        vector = (vector + adjoint @ basis[:, k]) / 2 if hermitian else vector
        size = np.linalg.norm(vector)
        for _ in range(2):
            part = basis[:, : k + 1].conj().T @ vector
            vector = vector - basis[:, : k + 1] @ part
            H[: k + 1, k] += part
        left = float(np.linalg.norm(vector))
        if left <= 1e-14 * size or size == 0:
            return H[: k + 2, : k + 1]
        H[k + 1, k] = left
        basis[:, k + 1] = vector / left
    return H


def resolvent_lower_bound(H: Inexact[np.ndarray, "m1 m"], points: Complex[np.ndarray, " z"]) -> Float[np.ndarray, " z"]:
    """Return a lower bound of ||(z - W)^-1|| at each z, from the Hessenberg matrix of W."""
    eye = np.eye(*H.shape)
    found = [1 / max(float(np.linalg.svd(z * eye - H, compute_uv=False)[-1]), 1e-300) for z in points]
    return np.array(found)


def kreiss_lower_bound(H: Inexact[np.ndarray, "m1 m"], radius: float) -> tuple[float, complex]:
    """Return a lower bound of the Kreiss constant, over circles around the unit disc, and the z that gives it."""
    half = not np.iscomplexobj(H)
    angles = np.linspace(0, math.pi if half else 2 * math.pi, _ANGLES, endpoint=half)
    best, at = 1.0, complex(math.inf)
    for excess in np.geomspace(min(max(1 - radius, 1e-4) / 4, _NEAREST), 8.0, _RADII):
        points = (1 + excess) * np.exp(1j * angles)
        values = excess * resolvent_lower_bound(H, points)
        if values.max() > best:
            best, at = float(values.max()), complex(points[values.argmax()])
    return best, at


def norms_of_powers(W: Inexact[np.ndarray, "n n"], horizon: int) -> Float[np.ndarray, " powers"]:
    """Return lower bounds of ||W^k||, k = 0 .. horizon: on subspaces that were turned towards the largest gain.

    For k = 1, 2, 4, .. a few columns are taken through W^k and back, which turns them towards the right singular
    vectors; each such subspace bounds the norms of all powers.
    """
    columns = np.random.default_rng(0).normal(size=(len(W), min(_COLUMNS, len(W))))
    turned, power = [], 1
    while power <= max(1, horizon // 2):
        for _ in range(max(1, _TURNS // power)):  # each power starts from where the last one ended
            columns = _through(W, columns, power)
            columns = np.linalg.qr(_through(W.conj().T, columns, power))[0]
        turned.append(columns)
        power *= 2
    return _gains(W, np.concatenate(turned, axis=1), columns.shape[1], horizon)


def _through(W: Inexact[np.ndarray, "n n"], columns: np.ndarray, power: int) -> np.ndarray:
    for _ in range(power):
        columns = W @ columns
        size = np.abs(columns).max()
        columns = columns / size if size > 0 else columns
    return columns


def _gains(W: Inexact[np.ndarray, "n n"], bases: np.ndarray, width: int, horizon: int) -> Float[np.ndarray, " powers"]:
    """Return the largest gain of every power over bases that stand beside each other, `width` columns each."""
    found = np.ones(horizon + 1)
    for k in range(1, horizon + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            bases = W @ bases
        if not np.isfinite(bases).all():
            found[k:] = math.inf
            break
        squares = np.stack([each.conj().T @ each for each in np.split(bases, bases.shape[1] // width, axis=1)])
        found[k] = math.sqrt(max(float(np.linalg.eigvalsh(squares).max()), 0.0))
    return found


def numerical_range_ends(W: Inexact[np.ndarray, "n n"], H: Inexact[np.ndarray, "m1 m"]) -> tuple[float, float]:
    """Return lower bounds of the largest eigenvalue of (W + W*)/2, and of the numerical radius.

    The first is the top Ritz value of a Lanczos process; the numerical range of the square part of W's Hessenberg
    matrix lies within that of W.
    """
    inner, symmetric = H[:-1], arnoldi(W, hermitian=True)[:-1]
    turns = np.exp(1j * np.linspace(0, 2 * math.pi, 36, endpoint=False))[:, None, None]
    tops = np.linalg.eigvalsh((turns * inner + (turns * inner).conj().swapaxes(-1, -2)) / 2)[:, -1]
    abscissa = float(np.linalg.eigvalsh(symmetric)[-1])
    return abscissa, max(abs(abscissa), float(tops.max()))
