"""Pseudospectral radius: how large an eigenvalue a small change of a matrix can make."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Complex, Inexact
from scipy.optimize import minimize_scalar

__all__ = ["MOST", "pseudospectral_radius"]

MOST = 100
"""Rows up to which it is followed along the boundary: an evaluation takes the eigenvalues of twice as many."""

_ANGLES = 48
_STARTS = 4
_REAL = 1e-7
"""Imaginary part of an eigenvalue, as a share of the norm, that is rounding: at a double one it is a root of that."""


def pseudospectral_radius(
    W: Inexact[np.ndarray, "n n"], epsilon: float, eigenvalues: Complex[np.ndarray, " n"]
) -> float:
    r"""Return max \|z\| over the epsilon-pseudospectrum of W, by following its boundary.

    Along the ray of angle t, sigma(r e^{it} - W) = epsilon exactly where r is a real eigenvalue of

    .. math:: \begin{pmatrix} e^{-it} W & \epsilon \\ \epsilon & e^{it} W^* \end{pmatrix},

    and the largest of these is where the ray leaves the set for good (Mengi and Overton 2005). The angle is then
    improved from the best of a grid and of the eigenvalues' own.

    Examples
    --------
    >>> round(pseudospectral_radius(np.diag([0.6, 0.1]), 0.01, np.array([0.6, 0.1])), 12)
    0.61
    """
    largest = np.argsort(-np.abs(eigenvalues))[:_ANGLES]
    angles = np.unique(np.r_[np.linspace(-math.pi, math.pi, _ANGLES + 1)[1:], np.angle(eigenvalues[largest])])
    found = np.array([_leaving(W, epsilon, angle) for angle in angles])
    best = float(found.max())
    width = 2 * math.pi / _ANGLES
    for start in np.argsort(-found)[:_STARTS]:
        near = minimize_scalar(
            lambda angle: -_leaving(W, epsilon, angle),
            bounds=(angles[start] - width, angles[start] + width),
            method="bounded",
            options={"xatol": 1e-8},
        )
        best = max(best, -float(near.fun))
    return best


def _leaving(W: Inexact[np.ndarray, "n n"], epsilon: float, angle: float) -> float:
    """Return the largest r at which the ray of an angle is on the boundary; 0 where it never is."""
    turned, apart = np.exp(-1j * angle) * W, epsilon * np.eye(len(W))
    values = np.linalg.eigvals(np.block([[turned, apart], [apart, turned.conj().T]]))
    real = values.real[np.abs(values.imag) <= _REAL * max(1.0, float(np.abs(values).max()))]
    return max(0.0, float(real.max(initial=0.0)))
