"""The square-root method in float64: a noisy linear network in the coordinates in which its noise is white.

With C = L L^T the covariance of the state for noise of variance 1, the coordinates y = L^-1 h turn W into
B = L^-1 W L, a contraction when the horizon is infinite, and v into b = L^-1 v. Then J(k) = ||B^k b||^2, without any
inverse of C.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dtpqrt

__all__ = ["DOUBLINGS", "Coordinates", "Whitened", "root_of_sum", "whiten"]

DOUBLINGS = 64
"""After 2^64 steps a sum that has not converged in float64 is not going to."""

_NEGLIGIBLE = 1e-9  # of a factor: squared, it is below float64's rounding
_BLOCK = 64  # columns that dtpqrt reflects at once: the fastest of 16, 32, 64 and 128 at N = 1000


class Coordinates(NamedTuple):
    """A network after a change of coordinates: what W, v and a factor of the noise's covariance (at first I) became."""

    W: Float[np.ndarray, "n n"]
    v: Float[np.ndarray, " n"]
    noise: Float[np.ndarray, "n n"]


class Whitened(NamedTuple):
    """A linear network in the coordinates in which its noise is white with variance 1.

    Attributes
    ----------
    lower
        L, lower triangular.
    step
        B = L^-1 W L.
    source
        b = L^-1 v.
    inverse
        L^-1 times the noise's factor: an S with S C S^T = I in the coordinates that the network came from.
    """

    lower: Float[np.ndarray, "n n"]
    step: Float[np.ndarray, "n n"]
    source: Float[np.ndarray, " n"]
    inverse: Float[np.ndarray, "n n"]


def whiten(network: Coordinates, horizon: int | None) -> Whitened | None:
    """Return the network in white coordinates, or None where float64 overflows or the sum does not converge."""
    W, v, noise = network
    with np.errstate(over="ignore", invalid="ignore"):
        factor = root_of_sum(W, horizon, noise)
        if factor is None or not factor.diagonal().all():
            return None
        lower = factor.T
        step, source, inverse = (
            solve_triangular(lower, part, lower=True, check_finite=False) for part in (W @ lower, v, noise)
        )
    found = Whitened(lower, step, source, inverse)
    return found if all(np.isfinite(part).all() for part in found) else None


def root_of_sum(
    W: Float[np.ndarray, "n n"], terms: int | None, noise: Float[np.ndarray, "n n"]
) -> Float[np.ndarray, "n n"] | None:
    r"""Return an upper triangular R with :math:`R^T R = \sum_{k < terms} W^k Z Z^T W^{kT}`, Z the noise's factor.

    None where float64 overflows, or an infinite sum does not converge.

    Doubling on the factor, never on the sum: with :math:`R_m` for m terms and :math:`P = W^m`, the triangle of the QR
    decomposition of :math:`[R_m; R_m P^T]` is :math:`R_{2m}`. Half of the digits of the sum's condition are saved.
    """
    first = np.triu(np.linalg.qr(noise.T, mode="r"))
    root, power = first, W
    # The binary digits of the number of terms after the first: each doubles it, and adds one where it is 1.
    digits = [False] * DOUBLINGS if terms is None else [digit == "1" for digit in bin(terms)[3:]]
    with np.errstate(over="ignore", invalid="ignore"):
        for odd in digits:
            root = _stacked(root, root, power)
            power = power @ power
            if odd:
                root = _stacked(first, root, W)
                power = W @ power
            if not np.isfinite(root).all():
                return None
            # The sum is at least the identity (or is near it, in coordinates that were almost white): this bounds what
            # is missing relative to it.
            if np.linalg.norm(power) * np.linalg.norm(root) < _NEGLIGIBLE:
                return root
    return None if terms is None else root


def _stacked(
    upper: Float[np.ndarray, "n n"], root: Float[np.ndarray, "n n"], power: Float[np.ndarray, "n n"]
) -> Float[np.ndarray, "n n"]:
    """Return the triangle of the QR decomposition of [upper; root power^T], both of them upper triangular."""
    below = dtrmm(1.0, root, power.T)
    return np.triu(dtpqrt(0, min(_BLOCK, len(upper)), upper, below)[0])
