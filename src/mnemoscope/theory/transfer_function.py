"""The transfer function of a deep linear network in exact arithmetic, and the lags that it copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Bool, Float

from mnemoscope.core.arrays import matrix, square, vector
from mnemoscope.core.errors import UserError, expected
from mnemoscope.core.ring import PRIMES, Prime, Ring

__all__ = ["LinearLayer", "TransferDegrees", "copied_lags", "impulse_response", "linear_layers", "transfer_degrees"]

T = TypeVar("T")


class LinearLayer(NamedTuple):
    """One layer: h_t = V h_{t-1} + U y_t + b, where y_t is the input or the state of the layer below."""

    weight_ih: Float[np.ndarray, "n below"]
    weight_hh: Float[np.ndarray, "n n"]
    bias: Float[np.ndarray, " n"]


class TransferDegrees(NamedTuple):
    """Degrees of H(z) = N(z) / q(z) with N = prod_l adj(I - z V_l) U_l and q = prod_l det(I - z V_l).

    Attributes
    ----------
    numerator
        The largest degree of an entry of N, at most the sum of n_l - 1; -1 when N is zero.
    denominator
        The degree of q.

    w N(z) = z^p q(z) needs p + deg q <= deg N: `numerator` - `denominator` is the longest lag that any readout of this
    very network can copy, and none when it is negative.
    """

    numerator: int
    denominator: int


def linear_layers(U: Sequence[Any], V: Sequence[Any], b: Sequence[Any] | None = None) -> list[LinearLayer]:
    """Return the layers of a deep linear network, checked: the first layer first.

    Parameters
    ----------
    U, V
        Input and recurrent matrices, one of each for every layer.
    b
        Biases; None: zero.
    """
    if not (len(U) == len(V) > 0 and (b is None or len(b) == len(U))):
        raise expected(
            "U, V and b", "lists of one array for every layer", (len(U), len(V), None if b is None else len(b))
        )
    found: list[LinearLayer] = []
    for layer, (drive, recurrent) in enumerate(zip(U, V, strict=True)):
        v = square(f"V[{layer}]", recurrent)
        u = matrix(f"U[{layer}]", drive)
        below = u.shape[1] if layer == 0 else len(found[-1].weight_hh)
        if u.shape != (len(v), below):
            raise expected(f"U[{layer}]", f"of shape ({len(v)}, {below})", u.shape)
        found.append(LinearLayer(u, v, np.zeros(len(v)) if b is None else vector(f"b[{layer}]", b[layer], len(v))))
    return found


def impulse_response(ring: Ring, layers: Sequence[LinearLayer], steps: int) -> np.ndarray:
    """Return what an impulse has become in the last layer after 0, 1, .. steps: (steps, n, d + 1), in a ring.

    The last column answers to biases that are there at the first step only. The state after t steps of the network is
    the sum of the inputs' answers, and of the biases' answers from 0 to t - 1.
    """
    d = layers[0].weight_ih.shape[1]
    signal = ring.zeros((steps, d, d + 1))
    signal[0, :, :d] = ring.array(np.eye(d, dtype=np.int64))
    for layer in layers:
        u, v, b = (ring.array(weight) for weight in layer)
        flat = ring.matmul(u, np.moveaxis(signal, 1, 0).reshape(u.shape[1], -1))
        driven = np.moveaxis(flat.reshape(len(v), steps, d + 1), 1, 0)
        states = [driven[0].copy()]
        states[0][:, d] = ring.add(states[0][:, d], b)
        for entry in driven[1:]:
            states.append(ring.add(ring.matmul(v, states[-1]), entry))
        signal = np.stack(states)
    return signal


def copied_lags(layers: Sequence[LinearLayer]) -> Bool[np.ndarray, "lags input"]:
    r"""Return which inputs a deep linear network copies exactly, at which lags: for some affine readout of its output.

    Input j is copied at lag p when w, c exist with w h_t + c = x_{t-p, j} at every step, zero for t <= p:

    .. math::
        w M_k = \delta_{kp} e_j^\top \ (k \ge 0), \qquad w m_k = 0 \ (k \ge 1)

    with the answers M_k to the inputs and m_k to the biases. By Cayley and Hamilton N = sum of the n_l steps beyond the
    last lag suffice, and lags end at the sum of n_l - 1. A unit vector lies in the row space of the answers exactly
    when it is a row of their reduced echelon form. That is computed from the exact rational values of the floats,
    modulo primes near 2^61, of which two have to agree.

    Returns
    -------
    For lags 0, 1, .. up to the sum of n_l - 1, and every input.

    Examples
    --------
    >>> shift = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    >>> copied_lags(linear_layers([[[1], [0], [0]]], [shift])).T.tolist()
    [[True, True, True]]
    >>> copied_lags(linear_layers([[[1], [0], [0]]], [[[0, 0, 0.5], [1, 0, 0], [0, 1, 0]]])).any()
    np.False_
    """
    return _agreed(lambda field: _copied(field, layers), lambda a, b: bool((a == b).all()))


def transfer_degrees(layers: Sequence[LinearLayer]) -> TransferDegrees:
    """Return the degrees of numerator and denominator of the transfer function, exact.

    Examples
    --------
    >>> transfer_degrees(linear_layers([[[1], [0]]], [[[0, 0], [1, 0]]]))
    TransferDegrees(numerator=1, denominator=0)
    """
    return _agreed(lambda field: _degrees(field, layers), lambda a, b: a == b)


def _agreed(compute: Callable[[Prime], T], same: Callable[[T, T], bool]) -> T:
    """Return what two primes agree on."""
    found: list[T] = []
    for p in PRIMES:
        new = compute(Prime(p))
        if any(same(new, old) for old in found):
            return new
        found.append(new)
    raise UserError(f"an exact transfer function was sought, and no two of {len(PRIMES)} primes agree on it")


def _copied(field: Prime, layers: Sequence[LinearLayer]) -> np.ndarray:
    import flint

    d, units = layers[0].weight_ih.shape[1], sum(len(layer.weight_hh) for layer in layers)
    lags = units - len(layers) + 1
    answers = impulse_response(field, layers, lags + units)
    n = answers.shape[1]
    inputs = np.moveaxis(answers[:, :, :d], 1, 0).reshape(n, -1)
    rows = np.concatenate([inputs, answers[1 : units + 1, :, d].T], axis=1)
    echelon, rank = flint.nmod_mat(n, rows.shape[1], rows.ravel().tolist(), field.p).rref()
    filled = np.array([int(entry) != 0 for entry in echelon.entries()]).reshape(rows.shape)[:rank]
    single = filled[filled.sum(axis=1) == 1].any(axis=0)
    return np.asarray(single[: lags * d].reshape(lags, d))


def _degrees(field: Prime, layers: Sequence[LinearLayer]) -> TransferDegrees:
    import flint

    below = flint.nmod_poly([1], field.p)
    for layer in layers:
        v = field.array(layer.weight_hh)
        powers = flint.nmod_mat(len(v), len(v), v.ravel().tolist(), field.p).charpoly().coeffs()
        below *= flint.nmod_poly(powers[::-1], field.p)  # det(I - z V), from det(z I - V) with its powers reversed
    q = np.array([int(c) for c in below.coeffs()], dtype=np.uint64)
    # N = q H, beyond the degree that it can have: coefficients up there would show, were the theory wrong.
    units = sum(len(layer.weight_hh) for layer in layers)
    answers = impulse_response(field, layers, units + 1)[:, :, :-1]
    above = field.zeros(answers.shape)
    for i, c in enumerate(q):
        above[i:] = field.add(above[i:], field.mul(answers[: units + 1 - i], c))
    filled = np.flatnonzero(above.any(axis=(1, 2)))
    return TransferDegrees(int(filled[-1]) if len(filled) else -1, len(q) - 1)
