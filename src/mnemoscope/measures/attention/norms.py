"""Norms of gradients through attention, by recursion: one number of intermediate states after the other.

`ways[k, i]` is the weight of the way from state t + i to macro-state t + k; at lag k there are k states between.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from mnemoscope.core.memory import allowance, require

__all__ = ["norms_of_powers", "norms_of_products", "norms_of_totals"]


def norms_of_powers(
    V: Float[np.ndarray, "n n"], ways: Float[np.ndarray, "K K"], most: int, order: Any
) -> Float[np.ndarray, "K skips"]:
    """Return the norms where all Jacobians are V: then xi_k(s) is a number times V^s."""
    lags = len(ways)
    require("the table of paths", 16 * lags * (most + 1), f"skips={allowance() // (16 * lags)} would fit")
    # V is divided by its size, and the numbers multiplied by it: neither may overflow before their product does.
    size = float(np.linalg.norm(V, 2)) or 1.0
    counts = np.zeros((lags, most + 1))
    counts[:, 0] = ways[:, 0]
    for k in range(1, lags):
        counts[k, 1:] = size * (ways[k, 1 : k + 1] @ counts[:k, :-1])
    power, sizes = np.eye(len(V)), np.empty(most + 1)
    for s in range(most + 1):
        sizes[s] = np.linalg.norm(power, order)
        power = power @ V / size
    return counts * sizes


def norms_of_products(
    jacobians: Float[np.ndarray, "steps n n"], ways: Float[np.ndarray, "K K"], most: int, order: Any
) -> Float[np.ndarray, "K skips"]:
    """Return the norms from the graded recursion on matrices."""
    lags, n = len(ways), jacobians.shape[-1]
    per_skip = 8 * (lags + 2) * n * n
    fits = f"skips={max(0, allowance() // per_skip - 1)} would fit"
    require(f"the gradient by path at {lags} lags, {most} skips, {n} units", per_skip * (most + 1), fits)
    moved = np.zeros((max(lags - 1, 1), most + 1, n, n))  # J_{t+j} xi_j(s): what enters h_{t+j+1}
    norms = np.zeros((lags, most + 1))
    for k in range(lags):
        sums = np.zeros((most + 1, n, n))
        sums[0] = ways[k, 0] * np.eye(n)
        if k:
            past = moved[:k, :-1].reshape(k, -1) if most else np.zeros((k, 0))
            sums[1:] = (ways[k, 1 : k + 1] @ past).reshape(most, n, n)
        norms[k] = np.linalg.norm(sums, order, axis=(1, 2))
        if k < lags - 1:
            moved[k] = jacobians[k] @ sums
    return norms


def norms_of_totals(
    jacobians: Float[np.ndarray, "... n n"], ways: Float[np.ndarray, "K K"], n: int, order: Any
) -> Float[np.ndarray, " K"]:
    """Return the norm of C_k = E_k + sum_j F_{k,j} C_j by lag."""
    lags = len(ways)
    most = int((allowance() // (8 * n * n)) ** 0.5)
    require(f"the gradient at {lags} lags of {n} units", 8 * lags * n * n, f"{most} lags would fit")
    moved, totals = np.zeros((lags, n * n)), np.empty(lags)
    for k in range(lags):
        total = ways[k, 0] * np.eye(n) + (ways[k, 1 : k + 1] @ moved[:k]).reshape(n, n)
        totals[k] = np.linalg.norm(total, order)
        if k < lags - 1:
            moved[k] = ((jacobians if jacobians.ndim == 2 else jacobians[k]) @ total).ravel()
    return totals
