"""What a network in white coordinates says of its memory: the curve by lag, the matrix of pairs of lags, directions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from mnemoscope.measures.fisher.vector_factor import DOUBLINGS, Whitened

__all__ = ["TAIL", "Directions", "curve", "directions", "dyadic_sums", "interference", "responses", "settled_curve"]

TAIL = 1e-12
"""A curve of an infinite horizon ends where what follows is below this share of the total."""

_BLOCK = 1024  # lags that are computed at once after the first, which are computed one by one


def curve(white: Whitened, lags: int) -> Float[np.ndarray, " lags"]:
    """Return J(k) = ||B^k b||^2 for a number of lags."""
    size = min(_BLOCK, lags)
    blocks = islice(_blocks(white, size), -(-lags // size))
    return np.concatenate([_squares(block) for block in blocks])[:lags]


def settled_curve(white: Whitened, root: Float[np.ndarray, "n n"], total: float) -> Float[np.ndarray, " lags"]:
    """Return J(k) until the rest is below `TAIL` of the total, and for N lags at least.

    `root` is a factor of sum_k B^kT B^k, so that the rest from lag k on is the squared norm of its product with B^k b.
    """
    size = len(white.source)
    parts: list[Float[np.ndarray, " lags"]] = []
    for block in _blocks(white, min(_BLOCK, 2 * size)):
        parts.append(_squares(block))
        end = root @ (white.step @ block[:, -1])
        rest = float(end @ end)
        if rest <= TAIL * total and sum(map(len, parts)) >= size:
            break
    values = np.concatenate(parts)
    from_here = rest + np.cumsum(values[::-1])[::-1]
    return values[: max(size, int(np.count_nonzero(from_here > TAIL * total)))]


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
