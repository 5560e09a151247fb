"""Deep linear networks: transfer functions and the lags they copy, exactly; the one wide layer that each of them is.

A linear network with L layers of n units is one layer of n L units whose blocks are

    U_l = U^(l) .. U^(1),   V_lj = U^(l) .. U^(j+1) V^(j) for j <= l, zero above,   b_l = sum_j U^(l) .. U^(j+1) b^(j)

Most wide layers are not of this form (Lizaire et al. 2026, Theorem 6): there every block row is the one above times one
n x n matrix, except for its block on the diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Bool, Float

from mnemoscope.core.arrays import matrix, non_negative, square, vector
from mnemoscope.core.errors import UserError, choice, expected, positive_int
from mnemoscope.core.ring import PRIMES, Prime, Ring

__all__ = [
    "LatentEmbedding",
    "LinearLayer",
    "TransferDegrees",
    "copied_lags",
    "deep_form",
    "impulse_response",
    "is_deep",
    "latent_embedding",
    "linear_layers",
    "transfer_degrees",
    "unrolled_matrix",
    "unrolled_states",
]


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


class LatentEmbedding(NamedTuple):
    """One wide linear layer, s_t = weight_hh s_{t-1} + weight_ih x_t + bias."""

    weight_ih: Float[np.ndarray, "units input"]
    weight_hh: Float[np.ndarray, "units units"]
    bias: Float[np.ndarray, " units"]


def latent_embedding(U: Sequence[Any], V: Sequence[Any], b: Sequence[Any] | None = None) -> LatentEmbedding:
    """Return the one wide layer whose state is the states of all layers of a deep linear network, the first on top.

    Parameters
    ----------
    U, V
        Input and recurrent matrices of the deep network, one of each for every layer.
    b
        Its biases; None: zero.

    Examples
    --------
    >>> wide = latent_embedding(U=[[[2.0]], [[3.0]]], V=[[[0.5]], [[0.1]]])
    >>> wide.weight_ih.tolist(), wide.weight_hh.tolist()
    ([[2.0], [6.0]], [[0.5, 0.0], [1.5, 0.1]])
    """
    layers = linear_layers(U, V, b)
    ends = np.cumsum([len(layer.weight_hh) for layer in layers])
    units = int(ends[-1])
    u, v, c = np.eye(layers[0].weight_ih.shape[1]), np.zeros((layers[0].weight_ih.shape[1], units)), 0.0
    rows = []
    for layer, end in zip(layers, ends, strict=True):
        u, v, c = layer.weight_ih @ u, layer.weight_ih @ v, layer.weight_ih @ np.broadcast_to(c, len(v)) + layer.bias
        v[:, end - len(layer.bias) : end] = layer.weight_hh
        rows.append((u, v, c))
    return LatentEmbedding(*(np.concatenate(part) for part in zip(*rows, strict=True)))


def unrolled_states(
    U: Sequence[Any], V: Sequence[Any], inputs: Any, b: Sequence[Any] | None = None, state: Any = None
) -> Float[np.ndarray, "time units"]:
    """Return the states of all layers of a deep linear network after every input, the first layer's first.

    Parameters
    ----------
    U, V, b
        As for `latent_embedding`.
    inputs
        ``(time, d)``.
    state
        All layers' states before the first input, as one vector; None: zero.

    Examples
    --------
    >>> unrolled_states([[[2.0]], [[3.0]]], [[[0.5]], [[0.1]]], inputs=[[1.0], [0.0]]).tolist()
    [[2.0, 6.0], [1.0, 3.6]]
    """
    layers = linear_layers(U, V, b)
    x = matrix("inputs", inputs)
    d, sizes = layers[0].weight_ih.shape[1], [len(layer.bias) for layer in layers]
    if x.shape[1] != d:
        raise expected("inputs", f"of shape (time, {d})", x.shape)
    start = np.zeros(sum(sizes)) if state is None else vector("state", state, sum(sizes))
    parts = np.split(start, np.cumsum(sizes)[:-1])
    found = []
    for layer, h in zip(layers, parts, strict=True):
        states = []
        for entry in x:
            h = layer.weight_hh @ h + layer.weight_ih @ entry + layer.bias
            states.append(h)
        x = np.array(states)
        found.append(x)
    return np.concatenate(found, axis=1)


def unrolled_matrix(U: Any, V: Any, steps: int) -> Float[np.ndarray, "units inputs"]:
    """Return [V^(t-1) U, .., V U, U]: by it the inputs x_1, .., x_t, one after the other, make the state of a layer.

    Parameters
    ----------
    U, V
        Of one layer; `latent_embedding` gives those of a deep network.
    steps
        t.

    Examples
    --------
    >>> unrolled_matrix([[1.0]], [[0.5]], 3).tolist()
    [[0.25, 0.5, 1.0]]
    """
    v = square("V", V)
    blocks = [_fitting(U, v)]
    for _ in range(positive_int("steps", steps) - 1):
        blocks.append(v @ blocks[-1])
    return np.concatenate(blocks[::-1], axis=1)


def deep_form(
    U: Any, V: Any, n: int, b: Any = None, *, by: str = "weights", tolerance: float = 1e-9
) -> list[LinearLayer] | None:
    r"""Return the deep linear network with layers of n units that a wide layer is, or None when it is none.

    With C_l for the rows of block l, layer l has to satisfy

    .. math::
        U^{(l)} C_{l-1} U = C_l U, \qquad (U^{(l)} C_{l-1} V + V^{(l)} C_l) Q = C_l V Q

    (C_0 U = I, C_0 V = 0), which is linear in U^(l) and V^(l): it has a solution exactly when the right sides add
    nothing to the rank of what stands on the left. Q = I asks for equal weights; a basis of the states that inputs and
    bias can reach asks for equal states for all inputs, from the zero state.

    Parameters
    ----------
    U, V
        Of the wide layer, n L units.
    n
        Units of a layer of the deep one; n divides n L.
    b
        Bias of the wide layer, which never stands in the way; None: zero.
    by
        ``"weights"`` or ``"function"``.
    tolerance
        The part of a block row that may lie outside what the rows above it span, as a share of its norm.

    Examples
    --------
    >>> wide = latent_embedding(U=[[[2.0]], [[3.0]]], V=[[[0.5]], [[0.1]]])
    >>> [layer.weight_hh.round(9).tolist() for layer in deep_form(wide.weight_ih, wide.weight_hh, 1)]
    [[[0.5]], [[0.1]]]
    """
    v = square("V", V)
    u, units, n = _fitting(U, v), len(v), positive_int("n", n)
    if units % n:
        raise expected("n", f"a divisor of the {units} units of the wide layer", n)
    bias = np.zeros(units) if b is None else vector("b", b, units)
    allowed = non_negative("tolerance", tolerance)
    reached = choice("by", by, ("weights", "function")) == "function"
    basis = _reachable(np.column_stack([u, bias]), v) if reached else np.eye(units)
    size = u.shape[1]
    above, below = np.hstack([np.eye(size), np.zeros((size, basis.shape[1]))]), np.zeros(size)
    found = []
    for start in range(0, units, n):
        block = slice(start, start + n)
        own = np.hstack([u[block], v[block] @ basis])
        known = np.vstack([above, np.hstack([np.zeros((n, size)), basis[block]])])
        solution = np.linalg.lstsq(known.T, own.T, rcond=max(allowed * 1e-3, 1e-14))[0].T
        if np.linalg.norm(own - solution @ known) > allowed * np.linalg.norm(own):
            return None
        drive, recurrent = np.split(solution, [len(above)], axis=1)
        found.append(LinearLayer(drive, recurrent, bias[block] - drive @ below))
        above, below = own, bias[block]
    return found


def is_deep(U: Any, V: Any, n: int, *, by: str = "weights", tolerance: float = 1e-9) -> bool:
    """Tell whether a wide linear layer is a deep linear network with layers of n units, as `deep_form` decides it.

    Parameters
    ----------
    U, V, n, by, tolerance
        As for `deep_form`.

    Examples
    --------
    >>> is_deep([[1, 0], [2, 0], [1, 0], [0, 1]], np.zeros((4, 4)), n=2)  # rank 1 below, rank 2 above: Theorem 6
    False
    """
    return deep_form(U, V, n, by=by, tolerance=tolerance) is not None


def _fitting(U: Any, v: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n input"]:
    u = matrix("U", U)
    if len(u) != len(v):
        raise expected("U", f"of {len(v)} rows, as V", u.shape)
    return u


def _reachable(u: Float[np.ndarray, "n input"], v: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n reached"]:
    """Return an orthonormal basis of the span of U, V U, V^2 U, ..: only new directions go on, which none outgrows."""
    basis = np.zeros((len(v), 0))
    new = u
    while new.shape[1]:
        size = np.linalg.norm(new, axis=0)
        new = new[:, size > 0] / size[size > 0]
        for _ in range(2):  # once more, for what rounding has left of the first time
            new = new - basis @ (basis.T @ new)
        left, values, _ = np.linalg.svd(new, full_matrices=False)
        fresh = left[:, values > 1e-10]
        basis = np.hstack([basis, fresh])
        new = v @ fresh
    return basis
