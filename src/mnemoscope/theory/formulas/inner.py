r"""Memory capacity from eigenvalues by the inner function of their poles: thousands of them, without a matrix.

The sequences that a linear network with reachable eigenvalues lambda_1 .. lambda_r can read out are what the inner
function (Blaschke product)

    B(z) = prod_i (z - conj lambda_i) / (1 - lambda_i z) = sum_j beta_j z^j

leaves of l2: the orthogonal complement of B l2, of which z^j B is an orthonormal basis. The share of the input at lag k
that lies in the complement is therefore

    MC_k = 1 - sum_{j <= k} |beta_j|^2 = sum_{j > k} |beta_j|^2,

and one Fourier transform of B gives all of them in O(r L + L log L).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float

__all__ = ["LONGEST", "InnerCurve", "inner_curve"]

LONGEST = 1 << 19
"""Points of the longest transform."""

_FADED = 1e-26
"""Energy in the last quarter of a transform below which nothing comes round from its end to its beginning; where
rounding leaves more than that, what it leaves."""

_LOST = 1e-8
"""What is left of an echo that would come round where the longest transform is too short: eight digits remain."""

_FACTORS = 32
"""Factors that are multiplied before numerator and denominator are divided, so that neither overflows."""


class InnerCurve(NamedTuple):
    """MC_k from k = 0 on, the sum of those beyond its end, and the error that was found."""

    curve: Float[np.ndarray, " lags"]
    rest: float
    error: float


def inner_curve(eigenvalues: Complex[np.ndarray, " r"], least: int, most: int, tail: float) -> InnerCurve:
    """Return MC_k of a network whose input reaches these eigenvalues, closed under conjugation.

    Parameters
    ----------
    eigenvalues
        With multiplicity, inside the unit circle; complex ones with their conjugates.
    least, most
        Bounds of the number of lags.
    tail
        Sum of what is left at which the curve may end.

    Examples
    --------
    >>> inner_curve(np.array([0.5 + 0j]), 3, 3, 0.0).curve
    array([0.75    , 0.1875  , 0.046875])
    """
    rank = len(eigenvalues)
    size = 1 << max(10, math.ceil(math.log2(4 * max(rank, least))))
    shrink, faded = 1.0, max(_FADED, 10 * (rank * np.finfo(float).eps) ** 2)
    energy = np.square(_taps(eigenvalues, size, shrink))
    while energy[3 * size // 4 :].sum() > faded and shrink == 1:
        if 2 * size > max(LONGEST, 4 * least):
            shrink = _LOST ** (1 / size)
        else:
            size *= 2
        energy = np.square(_taps(eigenvalues, size, shrink))
    beyond = max(0.0, 1 - energy.sum()) if shrink < 1 else 0.0
    after = np.cumsum(energy[::-1])[::-1][1:] + beyond  # sum_{j > k}
    left = rank - np.cumsum(after) if shrink < 1 else np.append(np.cumsum(after[::-1])[::-1][1:], 0.0)
    enough = np.flatnonzero(left <= tail)
    end = min(most, max(least, int(enough[0]) + 1 if len(enough) else len(after)), len(after))
    error = _LOST if shrink < 1 else abs(float(after.sum()) - rank) / max(rank, 1)
    return InnerCurve(np.minimum(after[:end], 1.0), float(left[end - 1]), error)


def _taps(eigenvalues: Complex[np.ndarray, " r"], size: int, shrink: float) -> Float[np.ndarray, " size"]:
    """Return beta_j, j < size, from the values of B on a circle of radius `shrink`.

    They are real, since eigenvalues come in conjugate pairs. On the unit circle z - conj lambda = z conj(1 - lambda z).
    """
    turns = np.arange(size // 2 + 1)
    z = shrink * np.exp(-2j * np.pi * turns / size)
    response = np.exp(-2j * np.pi * (turns * len(eigenvalues) % size) / size) if shrink == 1 else np.ones_like(z)
    for first in range(0, len(eigenvalues), _FACTORS):
        above, below = np.ones_like(z), np.ones_like(z)
        for value in eigenvalues[first : first + _FACTORS]:
            below *= 1 - value * z
            if shrink < 1:
                above *= z - np.conj(value)
        response *= (np.conj(below) if shrink == 1 else above) / below
    return np.asarray(np.fft.irfft(response, size) * shrink ** -np.arange(size, dtype=float))
