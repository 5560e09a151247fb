"""Products of past inputs: an orthonormal basis of the functions of a white input's past."""

from __future__ import annotations

import itertools
import math

import numpy as np
from jaxtyping import Float, Int

__all__ = ["DISTRIBUTIONS", "count", "draw", "longest_lag", "products", "table", "variance"]

DISTRIBUTIONS = ("uniform", "gaussian")
"""What inputs are drawn from: uniform on [-1, 1], or the standard normal distribution."""


def draw(random: np.random.Generator, shape: tuple[int, ...], distribution: str) -> np.ndarray:
    """Return independent inputs of scale one."""
    return random.uniform(-1, 1, size=shape) if distribution == "uniform" else random.normal(size=shape)


def variance(distribution: str) -> float:
    """Return the variance of inputs of scale one."""
    return 1 / 3 if distribution == "uniform" else 1.0


def polynomials(
    u: Float[np.ndarray, "lags samples"], degree: int, distribution: str
) -> Float[np.ndarray, "degrees lags samples"]:
    """Return the polynomials of degree 0 .. `degree` that are orthonormal under the distribution of u.

    Legendre's, times sqrt(2 m + 1), for uniform inputs; Hermite's, over sqrt(m!), for normal ones.
    """
    uniform = distribution == "uniform"
    found = [np.ones_like(u), u]
    for m in range(1, degree):
        following = (2 * m + 1) * u * found[m] - m * found[m - 1] if uniform else u * found[m] - m * found[m - 1]
        found.append(following / (m + 1) if uniform else following)
    norms = [math.sqrt(2 * m + 1) if uniform else 1 / math.sqrt(math.factorial(m)) for m in range(degree + 1)]
    return np.stack([norm * polynomial for norm, polynomial in zip(norms, found, strict=True)])


def table(past: Float[np.ndarray, "samples lags"], degree: int, distribution: str) -> Float[np.ndarray, "rows samples"]:
    """Return P_m(u(t-k)) for every degree m and lag k, in row m * lags + k; `past` holds u(t-k)."""
    values = polynomials(np.ascontiguousarray(past.T), degree, distribution)
    return values.reshape(-1, past.shape[0])


def count(degree: int, lag: int) -> int:
    """Return how many products of total degree `degree` there are of the inputs at lags 0 .. `lag`."""
    return math.comb(lag + degree, degree)


def products(degree: int, lag: int, lags: int) -> Int[np.ndarray, "products degree"]:
    """Return the factors of every product of total degree `degree` at lags 0 .. `lag`, as rows of `table`.

    A product is a multiset of lags; a lag that occurs m times gives the factor P_m(u(t-k)). Products with fewer factors
    than `degree` are filled with row 0, which is P_0 = 1. `lags` is the number of lags in the table.
    """
    found = np.zeros((count(degree, lag), degree), dtype=np.int64)
    for row, chosen in enumerate(itertools.combinations_with_replacement(range(lag + 1), degree)):
        for slot, (k, group) in enumerate(itertools.groupby(chosen)):
            found[row, slot] = len(list(group)) * lags + k
    return found


def longest_lag(factors: Int[np.ndarray, "products degree"], lags: int) -> Int[np.ndarray, " products"]:
    """Return the longest lag that takes part in each product."""
    return np.asarray((factors % lags).max(axis=1))
