"""Copying by deep linear networks: how far back, with which weights, and why no further; and by Henaff's clocks.

d inputs, n units in each of L layers. With z for a delay of one step, the states of the last layer are H(z) x with

    H(z) = (I - z V_L)^-1 U_L .. (I - z V_1)^-1 U_1

and a network copies lag p of all inputs when some readout W has W H(z) = z^p I. The minors of order d of
(I - z V)^-1 are minors of order n - d of I - z V over det(I - z V), of degree n - d at most. By Cauchy and Binet
det(W H) = z^(p d) then says that z^(p d) prod_l det(I - z V_l), which is not zero, has degree L (n - d) at most: hence
p d <= L (n - d).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from mnemoscope.core.errors import UserError, expected, positive_int

__all__ = [
    "CopyCertificate",
    "CopyWeights",
    "HenaffCopy",
    "copy_certificate",
    "copy_frontier",
    "copy_limit",
    "copy_parameters",
    "copy_weights",
    "copy_width",
    "critical_width",
    "henaff_copy",
]


class CopyCertificate(NamedTuple):
    """Whether a size can copy a lag, by the degree of its transfer function.

    Attributes
    ----------
    possible
        Whether `needed` is at most `available`: then `copy_weights` has the weights, otherwise there are none.
    needed
        p d: the least degree of z^(p d) prod_l det(I - z V_l), whose constant term is 1 after the power of z.
    available
        L (n - d): the largest degree of the minors of order d that have to be equal to it.
    """

    possible: bool
    needed: int
    available: int


class CopyWeights(NamedTuple):
    """Weights of a `linear-rnn` that copies.

    Attributes
    ----------
    weights
        By the names of the network's parameters, biases of zero among them: what `load_state_dict` takes.
    readout
        W, so that W h_t = x_{t-p} (zero for t <= p), where h_t is the network's output.
    """

    weights: dict[str, Float[np.ndarray, " ..."]]
    readout: Float[np.ndarray, "input n"]


def copy_limit(hidden_size: int, num_layers: int = 1, input_size: int = 1) -> int:
    """Return the longest lag that a deep linear network can copy for all its inputs: floor(L (n - d) / d).

    Parameters
    ----------
    hidden_size, num_layers, input_size
        n, L and d; no network with n < d copies all its inputs.

    Examples
    --------
    >>> copy_limit(hidden_size=10, num_layers=8, input_size=5), copy_limit(4, 3)
    (8, 9)
    """
    n, layers, d = _sizes(hidden_size, num_layers, input_size)
    if n < d:
        raise expected("hidden_size", f"at least input_size = {d}, without which nothing is copied whole", n)
    return layers * (n - d) // d


def copy_width(lag: int, num_layers: int = 1, input_size: int = 1) -> int:
    """Return the least hidden size that copies a lag at a depth: d + ceil(p d / L).

    Examples
    --------
    >>> [copy_width(8, layers, 5) for layers in (1, 2, 4, 8)]
    [45, 25, 15, 10]
    """
    p, layers, d = (
        positive_int("lag", lag),
        positive_int("num_layers", num_layers),
        positive_int("input_size", input_size),
    )
    return d - (-p * d // layers)


def copy_parameters(hidden_size: int, num_layers: int = 1, input_size: int = 1, output_size: int = 0) -> int:
    """Return the parameters of a deep linear network: (2 L - 1) n^2 + (L + d) n, and o (n + 1) of a readout.

    Parameters
    ----------
    hidden_size, num_layers, input_size
        n, L and d.
    output_size
        o, of an affine readout; 0: none.

    Examples
    --------
    >>> copy_parameters(10, 8, 5), copy_parameters(10, 8, 5, output_size=5)
    (1630, 1685)
    """
    n, layers, d = _sizes(hidden_size, num_layers, input_size)
    readout = 0 if output_size == 0 else positive_int("output_size", output_size) * (n + 1)
    return (2 * layers - 1) * n**2 + (layers + d) * n + readout


def copy_frontier(lag: int, input_size: int = 1) -> list[tuple[int, int, int]]:
    """Return the networks that copy a lag for all inputs, one for every depth from 1 to the lag, the cheapest first.

    For a long lag of one input the cheapest is the deepest, two units in each of `lag` layers with 10 lag - 2
    parameters: true, and hopeless to train. The list is there to choose from.

    Parameters
    ----------
    lag
        p, at least 1.
    input_size
        d; all inputs are copied.

    Returns
    -------
    Triples (hidden_size, num_layers, parameters); of equal costs the shallower first.

    Examples
    --------
    >>> copy_frontier(8, input_size=5)[:3]
    [(10, 8, 1630), (13, 5, 1651), (11, 7, 1705)]
    >>> copy_frontier(40)[0]
    (2, 40, 398)
    """
    p, d = positive_int("lag", lag), positive_int("input_size", input_size)
    sizes = [(copy_width(p, layers, d), layers) for layers in range(1, p + 1)]
    found = [(n, layers, copy_parameters(n, layers, d)) for n, layers in sizes]
    return sorted(found, key=lambda size: (size[2], size[1]))


def critical_width(num_layers: int, shallower: int) -> float:
    """Return the width above which L layers copy lag L (n - 1) of one input with fewer parameters than l < L layers.

    1 + l (1 + sqrt(12 a + 1)) / (2 a) with a = 2 L l - L - l: the largest root of the difference of the counts, the
    shallower network's width taken as the real number 1 + L (n - 1) / l. It is largest at L = 2, l = 1.

    Parameters
    ----------
    num_layers, shallower
        L and l < L.

    Examples
    --------
    >>> round(critical_width(2, 1), 10)
    3.3027756377
    """
    deep, shallow = positive_int("num_layers", num_layers), positive_int("shallower", shallower)
    if shallow >= deep:
        raise expected("shallower", f"less than num_layers = {deep}", shallow)
    a = 2 * deep * shallow - deep - shallow
    return 1 + shallow * (1 + math.sqrt(12 * a + 1)) / (2 * a)


def copy_certificate(lag: int, hidden_size: int, num_layers: int = 1, input_size: int = 1) -> CopyCertificate:
    """Return whether a deep linear network can copy a lag for all its inputs, with the degrees that decide it.

    Examples
    --------
    >>> copy_certificate(3, hidden_size=5, num_layers=2, input_size=2)
    CopyCertificate(possible=True, needed=6, available=6)
    >>> copy_certificate(4, hidden_size=5, num_layers=2, input_size=2).possible
    False
    """
    n, layers, d = _sizes(hidden_size, num_layers, input_size)
    needed, available = _lag(lag) * d, layers * (n - d)
    return CopyCertificate(needed <= available, needed, available)


def copy_weights(lag: int, hidden_size: int, num_layers: int = 1, input_size: int = 1) -> CopyWeights:
    """Return weights with which a `linear-rnn` copies a lag for all its inputs.

    The p d unit delays are distributed over the layers, n - d to each. In a layer every input has a delay line: its
    first unit reads the end of the same input's line one layer below, the others read their neighbour a step ago.

    Parameters
    ----------
    lag
        p >= 0, with p d <= L (n - d): beyond, there are no such weights.
    hidden_size, num_layers, input_size
        n, L and d.

    Examples
    --------
    >>> found = copy_weights(lag=3, hidden_size=3, num_layers=2)
    >>> found.weights["weight_hh_l1"].tolist(), found.readout.tolist()
    ([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    """
    n, layers, d = _sizes(hidden_size, num_layers, input_size)
    p = _lag(lag)
    degrees = copy_certificate(p, n, layers, d)
    if not degrees.possible:
        raise UserError(
            f"a linear network of {layers} x {n} units copies lag p of {d} inputs only if p * {d} <= "
            f"{layers} * ({n} - {d}) = {degrees.available}, got lag {p}; hidden_size {d - (-p * d // layers)} would do"
        )
    weights: dict[str, Float[np.ndarray, " ..."]] = {}
    below, width = np.arange(d), d
    for layer, delays in enumerate(_distribute(p, n - d, layers, d)):
        ends = np.cumsum(delays + 1) - 1
        starts = ends - delays
        drive, shift = np.zeros((n, width)), np.zeros((n, n))
        drive[starts, below] = 1
        inner = np.setdiff1d(np.arange(ends[-1] + 1), starts)
        shift[inner, inner - 1] = 1
        weights |= {f"weight_ih_l{layer}": drive, f"weight_hh_l{layer}": shift, f"bias_l{layer}": np.zeros(n)}
        below, width = ends, n
    return CopyWeights(weights, np.eye(n)[below])


def _distribute(lag: int, room: int, layers: int, inputs: int) -> np.ndarray:
    """Return how many delays each input has in each layer: `room` in a layer, `lag` for an input, in order."""
    found = np.zeros((layers, inputs), dtype=np.int64)
    delays = np.arange(lag * inputs)
    if len(delays):
        np.add.at(found, (delays // room, delays // lag), 1)
    return found


def _lag(lag: int) -> int:
    if isinstance(lag, int | np.integer) and not isinstance(lag, bool) and lag == 0:
        return 0
    return positive_int("lag", lag)


def _sizes(hidden_size: int, num_layers: int, input_size: int) -> tuple[int, int, int]:
    return (
        positive_int("hidden_size", hidden_size),
        positive_int("num_layers", num_layers),
        positive_int("input_size", input_size),
    )


class HenaffCopy(NamedTuple):
    """Weights of ``h_t = U x_t + V h_{t-1}, y_t = W h_t``."""

    recurrent: Float[np.ndarray, "n n"]
    input: Float[np.ndarray, "n symbols"]
    output: Float[np.ndarray, "letters n"]


def henaff_copy(blocks: int, delay: int, symbols: int = 10, alphabet: int = 8, seed: int = 0) -> HenaffCopy:
    r"""Return weights that solve the copy task of `mnemoscope.tasks` without training.

    .. math::
        V = \mathrm{diag}(R(2 \pi l_1 / (T+S)), .., R(2 \pi l_d / (T+S)), 1), \quad
        U_{:,k} = (\cos \phi_{1k}, \sin \phi_{1k}, .., 0), \quad W = U^\top / d

    with l_j uniform on 1..T+S and one uniform phase per letter and block; blank and cue enter as zero. V^{T+S} = I, so
    a letter seen T + S steps ago stands in the state as it came, and all others are turned to random phases:
    interference that falls as 1/sqrt(d).

    Parameters
    ----------
    blocks
        d; the hidden size is n = 2 d + 1.
    delay, symbols, alphabet
        T, S and the number of letters.
    seed
        Of the rotation speeds and phases.

    Returns
    -------
    V (n x n), U (n x (alphabet + 2): blank, letters, cue) and W (alphabet x n).

    References
    ----------
    Henaff, Szlam and LeCun (2016).
    """
    d = positive_int("blocks", blocks)
    period = positive_int("delay", delay) + positive_int("symbols", symbols)
    random = np.random.default_rng(seed)
    angles = 2 * math.pi * random.integers(1, period + 1, size=d) / period
    phases = random.uniform(0, 2 * math.pi, size=(d, positive_int("alphabet", alphabet)))
    recurrent = np.eye(2 * d + 1)
    even = 2 * np.arange(d)
    recurrent[even, even] = recurrent[even + 1, even + 1] = np.cos(angles)
    recurrent[even, even + 1], recurrent[even + 1, even] = np.sin(angles), -np.sin(angles)
    weights = np.zeros((2 * d + 1, alphabet + 2))
    weights[even, 1 : alphabet + 1] = np.cos(phases)
    weights[even + 1, 1 : alphabet + 1] = np.sin(phases)
    return HenaffCopy(recurrent, weights, weights[:, 1 : alphabet + 1].T / d)
