"""Deep linear networks inside wide ones: the embedding, its recognition, and the states of all layers.

A linear network with L layers of n units is one layer of n L units whose blocks are

    U_l = U^(l) .. U^(1),   V_lj = U^(l) .. U^(j+1) V^(j) for j <= l, zero above,   b_l = sum_j U^(l) .. U^(j+1) b^(j)

Most wide layers are not of this form (Depth, Theorem 6): there every block row is the one above times one n x n matrix,
except for its block on the diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from mnemoscope.core.arrays import matrix, non_negative, square, vector
from mnemoscope.core.errors import choice, expected, positive_int
from mnemoscope.theory.transfer_function import LinearLayer, linear_layers

__all__ = ["LatentEmbedding", "deep_form", "is_deep", "latent_embedding", "unrolled_matrix", "unrolled_states"]


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
