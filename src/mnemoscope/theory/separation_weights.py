"""Weights of a RAC that attain the bounds on its separation rank, modulo a prime: floats cannot hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import UInt64

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.core.ring import Prime

__all__ = ["attaining_weights", "conjecture_weights"]

Weights = dict[str, UInt64[np.ndarray, "rows columns"]]


def attaining_weights(
    field: Prime, M: int, R: int, T: int, *, templates: Any = None, classes: int = 1, base: int = 3
) -> Weights:
    """Return weights of two layers whose separation rank is exactly Theorem 1's mc(min(M, R), T/2).

    Z (R x M) has z^(Omega^i) at (i, i), ones elsewhere in its rows i <= M, zeros below, with Omega > (T/2)^2. The
    first layer reads W_I1 = Z (F^T)^-1, where row i of F is template i; the second one reads the sum of the first,
    W_I2 = e_1 1^T; W_H = I in both, and every class reads component 1.

    Parameters
    ----------
    field
        The prime field to build them in.
    M, R, T
        Input channels, hidden channels, steps (even).
    templates
        M linearly independent rows of length M; by default the one-hot vectors.
    classes
        Rows of ``weight_out``.
    base
        The number z.

    Returns
    -------
    dict
        By the names of `mnemoscope.nn.RAC`'s parameters: ``weight_ih_l0``, ``weight_hh_l0``, .., ``weight_out``.

    Examples
    --------
    >>> from mnemoscope.core.ring import PRIMES
    >>> weights = attaining_weights(Prime(PRIMES[0]), M=2, R=3, T=4)
    >>> weights["weight_ih_l1"].tolist()
    [[1, 1, 1], [0, 0, 0], [0, 0, 0]]
    """
    _check(M, R, T)
    spread = (T // 2) ** 2 + 1
    live = min(M, R)
    z = field.zeros((R, M))
    z[:live] = 1
    z[np.arange(live), np.arange(live)] = [pow(base, spread**i, field.p) for i in range(1, live + 1)]
    if templates is not None:
        rows = field.array(templates)
        if rows.shape != (M, M):
            raise expected("templates", f"of shape ({M}, {M})", rows.shape)
        z = field.matmul(z, field.inverse(np.ascontiguousarray(rows.T)))
    return {
        "weight_ih_l0": z,
        "weight_hh_l0": field.array(np.eye(R)),
        "weight_ih_l1": _first_row_of_ones(field, R),
        "weight_hh_l1": field.array(np.eye(R)),
        "weight_out": _reads_first(field, classes, R),
    }


def conjecture_weights(field: Prime, M: int, R: int, T: int, L: int, *, seed: int = 0, classes: int = 1) -> Weights:
    """Return weights of L >= 2 layers that met the bound of Conjecture 1 wherever it was tried.

    The appendix that motivates the conjecture takes W_H1 = I, with which the rank is at most mc(min(M, R), T/2) at
    any depth. Here the first layer is generic, the second reads its sum (a matrix of rank one), higher layers read
    by ones, and W_H = I above the first layer.

    Parameters
    ----------
    field
        The prime field to build them in.
    M, R, T, L
        Input channels, hidden channels, steps (even), layers (two or more).
    seed
        Draws the first layer.
    classes
        Rows of ``weight_out``.

    Examples
    --------
    >>> from mnemoscope.core.ring import PRIMES
    >>> sorted(conjecture_weights(Prime(PRIMES[0]), M=2, R=2, T=4, L=2))
    ['weight_hh_l0', 'weight_hh_l1', 'weight_ih_l0', 'weight_ih_l1', 'weight_out']
    """
    _check(M, R, T)
    if positive_int("L", L) < 2:
        raise expected("L", "at least 2", L)
    draw = np.random.default_rng(seed)
    weights = {
        "weight_ih_l0": draw.integers(1, field.p, size=(R, M), dtype=np.uint64),
        "weight_hh_l0": draw.integers(1, field.p, size=(R, R), dtype=np.uint64),
        "weight_ih_l1": _first_row_of_ones(field, R),
    }
    for layer in range(1, L):
        weights[f"weight_hh_l{layer}"] = field.array(np.eye(R))
        weights.setdefault(f"weight_ih_l{layer}", field.ones((R, R)))
    return {**weights, "weight_out": _reads_first(field, classes, R)}


def _first_row_of_ones(field: Prime, size: int) -> np.ndarray:
    found = field.zeros((size, size))
    found[0] = 1
    return found


def _reads_first(field: Prime, classes: int, size: int) -> np.ndarray:
    found = field.zeros((classes, size))
    found[:, 0] = 1
    return found


def _check(M: int, R: int, T: int) -> None:
    for name, value in zip("MRT", (M, R, T), strict=True):
        positive_int(name, value)
    if T % 2:
        raise expected("T", "even, so that it has two halves", T)
