"""White coordinates of a noisy linear network by the square-root method in float64, and its memory in them.

With C = L L^T the covariance of the state for noise of variance 1, the coordinates y = L^-1 h turn W into
B = L^-1 W L, a contraction when the horizon is infinite, and v into b = L^-1 v. Then J(k) = ||B^k b||^2, without any
inverse of C.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dtpqrt

from mnemoscope.measures.fisher.conventions import DOUBLINGS, TAIL, doublings

__all__ = [
    "Coordinates",
    "Directions",
    "Whitened",
    "curve",
    "directions",
    "dyadic_sums",
    "interference",
    "responses",
    "root_of_sum",
    "stationary_curve",
    "whiten",
]

_NEGLIGIBLE = 1e-9  # of a factor: squared, it is below float64's rounding
_COLUMNS = 64  # columns that dtpqrt reflects at once: the fastest of 16, 32, 64 and 128 at N = 1000


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
    with np.errstate(over="ignore", invalid="ignore"):
        for odd in doublings(terms):
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
    return np.triu(dtpqrt(0, min(_COLUMNS, len(upper)), upper, below)[0])


_LAGS = 1024  # lags that are computed at once after the first, which are computed one by one
_SHORT = 64  # blocks of a curve that is not long


def curve(white: Whitened, lags: int) -> Float[np.ndarray, " lags"]:
    """Return J(k) = ||B^k b||^2 for a number of lags."""
    size = min(_LAGS, lags)
    blocks = islice(_blocks(white, size), -(-lags // size))
    return np.concatenate([_squares(block) for block in blocks])[:lags]


def stationary_curve(white: Whitened, root: Float[np.ndarray, "n n"], total: float) -> Float[np.ndarray, " lags"]:
    """Return J(k) until the rest is below `TAIL` of the total, and for N lags at least.

    `root` is a factor of sum_k B^kT B^k, so that the rest from lag k on is the squared norm of its product with B^k b.
    """
    size = len(white.source)
    found = None
    for length, most in ((min(_LAGS, 2 * size), _SHORT), (_LAGS, None)):  # few lags for most; a slow one has millions
        found = _until_spent(white, root, TAIL * total, length, most)
        if found is not None:
            break
    assert found is not None
    values, rest = found
    from_here = rest + np.cumsum(values[::-1])[::-1]
    return values[: max(size, int(np.count_nonzero(from_here > TAIL * total)))]


def _until_spent(
    white: Whitened, root: Float[np.ndarray, "n n"], least: float, length: int, most: int | None
) -> tuple[Float[np.ndarray, " lags"], float] | None:
    """Return J(k) block by block until the rest is at most `least`, and that rest; None where `most` are too few."""
    parts: list[Float[np.ndarray, " lags"]] = []
    for block in islice(_blocks(white, length), most):
        parts.append(_squares(block))
        end = root @ (white.step @ block[:, -1])
        rest = float(end @ end)
        if rest <= least and len(parts) * length >= len(white.source):
            return np.concatenate(parts), rest
    return None


def dyadic_sums(white: Whitened, root: Float[np.ndarray, "n n"]) -> Float[np.ndarray, " sums"]:
    """Return the sums of J(k) over k = 0, over 1, over 2..3, over 4..7, .. of an infinite horizon, to its end."""
    image = root @ white.source
    tails = [float(image @ image)]
    power = white.step
    while tails[-1] > TAIL * tails[0] and len(tails) < DOUBLINGS:
        image = root @ (power @ white.source)
        tails.append(float(image @ image))
        power = power @ power
    return -np.diff([*tails, 0.0])


def responses(white: Whitened, lags: int) -> Float[np.ndarray, "n lags"]:
    """Return the columns b, B b, B^2 b, .., each computed from the one before, which keeps small ones accurate."""
    columns = np.empty((lags, len(white.source)))
    column = white.source
    for k in range(lags):
        columns[k] = column
        column = white.step @ column
    return columns.T


class Directions(NamedTuple):
    """The spatial matrix J^s for noise of variance 1, and the unit inputs that it remembers best and worst."""

    spatial: Float[np.ndarray, "n n"]
    best: Float[np.ndarray, " n"]
    best_total: float
    worst: Float[np.ndarray, " n"]
    worst_total: float


def directions(white: Whitened, root: Float[np.ndarray, "n n"]) -> Directions:
    """Return J^s = F^T F and its extreme eigenvectors, by the singular values of F: that saves half of the digits."""
    factor = root @ white.inverse
    _, values, rows = np.linalg.svd(factor)
    best, worst = (_oriented(rows[i]) for i in (0, -1))
    return Directions(factor.T @ factor, best, float(values[0] ** 2), worst, float(values[-1] ** 2))


def interference(matrix: Float[np.ndarray, "lags lags"]) -> float:
    """Return how much of a Fisher memory matrix is off its diagonal: a ratio of Frobenius norms, 0 for a delay line."""
    largest = float(np.abs(matrix).max())
    if largest == 0:
        return 0.0
    scaled = matrix / largest
    return float(np.linalg.norm(scaled - np.diag(scaled.diagonal())) / np.linalg.norm(scaled))


def _blocks(white: Whitened, size: int) -> Iterator[Float[np.ndarray, "n lags"]]:
    block = responses(white, size)
    yield block
    jump = np.linalg.matrix_power(white.step, size)
    while True:
        block = jump @ block
        yield block


def _squares(block: Float[np.ndarray, "n lags"]) -> Float[np.ndarray, " lags"]:
    found: Float[np.ndarray, " lags"] = np.einsum("ik,ik->k", block, block)
    return found


def _oriented(direction: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Choose the sign for which the largest component is positive."""
    return direction if direction[np.argmax(np.abs(direction))] > 0 else -direction
