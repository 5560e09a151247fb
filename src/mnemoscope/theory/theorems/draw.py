"""Random matrices on which theorems are tried."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

__all__ = ["general", "normal", "orthogonal", "stable"]

Square = Float[np.ndarray, "n n"]


def general(random: np.random.Generator, size: int, radius: float) -> Square:
    """Return a Gaussian matrix of a given spectral radius."""
    W = random.standard_normal((size, size))
    return np.asarray(W * (radius / np.abs(np.linalg.eigvals(W)).max()))


def stable(random: np.random.Generator, size: int, radius: float | None = None) -> Square:
    """Return a stable matrix, far from normal or not so far."""
    W = random.standard_normal((size, size)) * random.choice([1.0, 4.0], size=(size, size))
    wanted = random.uniform(0.2, 0.98) if radius is None else radius
    return np.asarray(W * wanted / np.abs(np.linalg.eigvals(W)).max())


def orthogonal(random: np.random.Generator, size: int) -> Square:
    """Return an orthogonal matrix."""
    return np.asarray(np.linalg.qr(random.standard_normal((size, size)))[0])


def normal(random: np.random.Generator, size: int, radius: float) -> Square:
    """Return a normal matrix of at most this spectral radius: scaled rotations of planes, in a random frame."""
    W = np.diag(random.uniform(-radius, radius, size))
    for i in range(0, size - 1, 2):
        angle, scale = random.uniform(0, 2 * np.pi), random.uniform(0, radius)
        c, s = scale * np.cos(angle), scale * np.sin(angle)
        W[i : i + 2, i : i + 2] = [[c, -s], [s, c]]
    Q = orthogonal(random, size)
    return np.asarray(Q @ W @ Q.T)
