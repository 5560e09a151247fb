"""Gradients on their way back: polynomial growth, and the bound of orthogonal networks."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from mnemoscope.core.errors import Description, expected, positive_int

__all__ = ["orthogonal_relu_bound", "triangular_power", "triangular_power_entry"]


def triangular_power_entry(distance: int, power: int, x: float | Fraction) -> Fraction:
    r"""Return an entry of the power of a matrix with ones on its diagonal and x above it, exactly.

    .. math::
        (A^t)_{i,i+k} = \sum_{l=1}^{k} \binom{t}{l} \binom{k-1}{l-1} x^l

    A walk of t steps from i to i+k makes l jumps, at l of the t times, by distances that sum to k. In t it is a
    polynomial of degree k: eigenvalues of modulus one let gradients grow, but no faster than that.

    Parameters
    ----------
    distance
        k = j - i, from 1 on.
    power
        t.
    x
        What stands above the diagonal; a float counts as the fraction that it is.

    References
    ----------
    Kerg et al. (2019), Proposition 3.4.2, in exact form.

    Examples
    --------
    >>> triangular_power_entry(2, 10, Fraction(1, 2))
    Fraction(65, 4)
    """
    k, t = positive_int("distance", distance), positive_int("power", power)
    value = Fraction(x)
    terms = (math.comb(t, jumps) * math.comb(k - 1, jumps - 1) * value**jumps for jumps in range(1, k + 1))
    return sum(terms, Fraction(0))


def triangular_power(size: int, power: int, x: float | Fraction) -> Float[np.ndarray, "n n"]:
    """Return A^t of the matrix A with ones on its diagonal and x above it, every entry rounded once.

    Parameters
    ----------
    size
        n.
    power
        t.
    x
        What stands above the diagonal.

    Examples
    --------
    >>> triangular_power(3, 4, 1.0)
    array([[ 1.,  4., 10.],
           [ 0.,  1.,  4.],
           [ 0.,  0.,  1.]])
    """
    n = positive_int("size", size)
    found = np.eye(n)
    for k in range(1, n):
        np.fill_diagonal(found[:, k:], float(triangular_power_entry(k, power, x)))
    return found


def orthogonal_relu_bound(active: Any) -> Float[np.ndarray, " lags"]:
    r"""Return the bound of the gradient of h_t = relu(V h_{t-1} + U x_t + b), V orthogonal, by steps back.

    .. math::
        \left\| \frac{dL}{dh_{T-k}} \right\| \le \left\| \frac{dL}{dh_T} \right\| \prod_{t=T-k+1}^{T} \|D_t\|, \quad
        \|D_t\| = \begin{cases} 1 & \text{a unit is active at step } t \\ 0 & \text{else} \end{cases}

    for a loss of the last state: the gradient never explodes, and is zero beyond a step at which all units are off.

    Parameters
    ----------
    active
        Which units are active (above zero) at steps 1 to T, (T, n).

    Returns
    -------
    The factor by which dL/dh_T bounds the gradients k = 0..T steps back.

    References
    ----------
    Arjovsky, Shah and Bengio (2016), section 2.

    Examples
    --------
    >>> orthogonal_relu_bound([[True, False], [False, False], [True, True]])
    array([1., 1., 0., 0.])
    """
    steps: Bool[np.ndarray, "time n"] = np.asarray(active)
    if steps.ndim != 2 or steps.dtype != bool or 0 in steps.shape:
        came = Description(f"an array of {steps.dtype} of shape {steps.shape}")
        raise expected("active", "an array of True and False of shape (steps, units)", came)
    alive = np.concatenate([[True], steps[::-1].any(axis=1)])
    return np.cumprod(alive).astype(float)
