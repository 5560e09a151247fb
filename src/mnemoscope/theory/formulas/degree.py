"""Degrees of second-order networks as polynomials of their inputs, and networks that reach them.

In a layer without a nonlinearity h_t^(l) is bilinear in h_{t-1}^(l) and h_t^(l-1), so the degree in x_s adds up along
the lattice paths from (s, 0) to (t, l): deg(t, l) = deg(t-1, l) + deg(t, l-1). It is attained by generic weights.
"""

from __future__ import annotations

from math import comb

import numpy as np
from jaxtyping import Float, Int64

from mnemoscope.core.errors import expected, positive_int

__all__ = [
    "birnn_degree",
    "birnn_degrees",
    "birnn_input_degree",
    "cp_image_dimension",
    "diagonal_tensor",
]


def birnn_degree(horizon: int, num_layers: int) -> int:
    """Return the total degree C(T+L-1, L) of a generic BIRNN's state after T steps; the published T^L is above it.

    2RNNs without nonlinearity, CPBIRNNs and RACs have the same.

    Parameters
    ----------
    horizon, num_layers
        T and L.

    Examples
    --------
    >>> birnn_degree(5, 1), birnn_degree(5, 3)
    (5, 35)
    """
    T, L = positive_int("horizon", horizon), positive_int("num_layers", num_layers)
    return comb(T + L - 1, L)


def birnn_input_degree(step: int, horizon: int, num_layers: int) -> int:
    """Return the degree C(T-s+L-1, L-1) in x_s of a generic BIRNN's state after T steps; 0 for s > T.

    Parameters
    ----------
    step
        s, from 1.
    horizon, num_layers
        T and L.

    Examples
    --------
    >>> [birnn_input_degree(1, 2, L) for L in (1, 2, 3, 4)]
    [1, 2, 3, 4]
    """
    s, T, L = positive_int("step", step), positive_int("horizon", horizon), positive_int("num_layers", num_layers)
    return comb(T - s + L - 1, L - 1) if s <= T else 0


def birnn_degrees(step: int, horizon: int, num_layers: int) -> Int64[np.ndarray, "layers steps"]:
    """Return the degree in x_s of h_t^(l), layers l = 1 .. L by steps t = 1 .. T.

    Parameters
    ----------
    step
        s, from 1.
    horizon, num_layers
        T and L.

    Examples
    --------
    >>> birnn_degrees(1, 4, 3)
    array([[ 1,  1,  1,  1],
           [ 1,  2,  3,  4],
           [ 1,  3,  6, 10]])
    """
    T, L = positive_int("horizon", horizon), positive_int("num_layers", num_layers)
    table = [[birnn_input_degree(step, t, layer) for t in range(1, T + 1)] for layer in range(1, L + 1)]
    try:
        return np.array(table, dtype=np.int64)
    except OverflowError:
        raise expected(
            "horizon and num_layers", "so small that degrees are below 2^63", (horizon, num_layers)
        ) from None


def cp_image_dimension(input_size: int, hidden_size: int, rank: int) -> int:
    """Return the dimension min(d, n, R) of the image of x_1 -> h_1 of a generic CPBIRNN, whatever its depth.

    Theorem 4 of Lizaire et al. (2026) tells ranks R < n apart by it, which needs R < d too.

    Parameters
    ----------
    input_size, hidden_size, rank
        d, n and R.

    Examples
    --------
    >>> [cp_image_dimension(3, 5, R) for R in (1, 2, 3, 4)]
    [1, 2, 3, 3]
    """
    sizes = {"input_size": input_size, "hidden_size": hidden_size, "rank": rank}
    return min(positive_int(name, value) for name, value in sizes.items())


def diagonal_tensor(hidden_size: int, input_size: int) -> Float[np.ndarray, "n d n"]:
    """Return A_ijk = 1 where i = j = k, else 0: in every layer of a BIRNN it makes h_2^(L) = diag(x_1)^L x_2.

    Parameters
    ----------
    hidden_size, input_size
        n and d; with n != d the first min(n, d) units do this and the others are zero.

    Examples
    --------
    >>> int(diagonal_tensor(3, 2).sum())
    2
    """
    n, d = positive_int("hidden_size", hidden_size), positive_int("input_size", input_size)
    tensor = np.zeros((n, d, n))
    both = np.arange(min(n, d))
    tensor[both, both, both] = 1.0
    return tensor
