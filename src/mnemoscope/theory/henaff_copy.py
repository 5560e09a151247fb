"""Henaff's explicit solution of the copy task: a linear network of clocks that all meet after the delay."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from mnemoscope.core.errors import positive_int

__all__ = ["HenaffCopy", "henaff_copy"]


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
