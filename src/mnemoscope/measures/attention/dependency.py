"""How many states a gradient has to pass on its way through an attention matrix, and how many each step attends to."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import expected
from mnemoscope.theory.formulas.attention import attention_matrix

__all__ = ["attention_kappa", "dependency_depths", "path_weights"]

_CAP = 1e300


def attention_kappa(attention: Any, threshold: float = 0.0) -> int:
    """Return the sparsity coefficient: the largest number of states that one step attends to.

    Parameters
    ----------
    attention
        ``[t, i]`` is the weight at step t on state i.
    threshold
        What a weight must exceed to count; 0.1 counts relevant events only.

    Examples
    --------
    >>> attention = [[1, 0, 0], [0.05, 0.95, 0], [0, 0.5, 0.5]]
    >>> attention_kappa(attention), attention_kappa(attention, threshold=0.6)
    (2, 1)
    """
    weights = attention_matrix("attention", attention)
    return int((weights > threshold).sum(axis=1).max())


def path_weights(attention: Float[np.ndarray, "T T"], recurrent: bool = True) -> Float[np.ndarray, "T T"]:
    """Return the weight of the way from each state h_i to each macro-state s_t: attention, and 1 for i = t."""
    return attention + np.eye(len(attention)) if recurrent else attention


def dependency_depths(
    attention: Any, threshold: float = 0.1, start: int | None = None, recurrent: bool = True
) -> Int[np.ndarray, " steps"]:
    r"""Return the dependency depth: the fewest intermediate states on a path whose weights multiply to enough.

    A path h_t -> s_{a} -> h_{a+1} -> s_{b} -> h_{b+1} -> .. -> s_T has the weight alpha_{a,t} alpha_{b,a+1} .., where
    the recurrent way h_a -> s_a counts with 1 + alpha_{a,a}. Best products over all paths with s intermediate states
    follow from those with s - 1, so nothing is enumerated: O(T^2) for each s.

    Parameters
    ----------
    attention
        ``[t, i]`` is the weight at step t on state i.
    threshold
        What the product must exceed.
    start
        None: the depth from every state to the last step. A step t: the depth from state t to steps t, t+1, ..
    recurrent
        Whether the recurrent connection is a way too. Without it some depths do not exist: they are -1.

    References
    ----------
    Kerg et al. (2020), section 4.4.1: a product of scores that stays away from 0; here, that exceeds the threshold.

    Examples
    --------
    >>> attention = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]])
    >>> dependency_depths(attention, start=0).tolist(), dependency_depths(attention).tolist()
    ([0, 1, 0, 1], [1, 2, 1, 0])
    """
    weights = path_weights(attention_matrix("attention", attention), recurrent)
    limit = positive("threshold", threshold)
    if start is None:
        # The last link ends in the last step; the links before it go from h_i to s_j, which leads to h_{j+1}.
        return _depths(weights[-1], np.pad(weights[:-1].T, ((0, 0), (1, 0))), limit)
    if isinstance(start, bool) or not isinstance(start, int) or not 0 <= start < len(weights):
        raise expected("start", f"a step from 0 to {len(weights) - 1}", start)
    return _depths(weights[start:, start], np.pad(weights[start:, start + 1 :], ((0, 0), (0, 1))), limit)


def _depths(first: Float[np.ndarray, " K"], links: Float[np.ndarray, "K K"], limit: float) -> Int[np.ndarray, " K"]:
    """Return how often best <- max_j links[:, j] best[j] must be done until each entry has exceeded the limit."""
    best, found = first.copy(), np.where(first > limit, 0, -1)
    if (found >= 0).all():
        return found
    rows, columns = np.nonzero(links)
    values = links[rows, columns]
    present, begin = np.unique(rows, return_index=True)
    for s in range(1, len(first)):
        if (found >= 0).all() or not best.any():
            break
        after = np.zeros_like(best)
        if len(present):
            after[present] = np.maximum.reduceat(values * best[columns], begin)
        best = np.minimum(after, _CAP)  # of no consequence but for products beyond float64
        found = np.where((found < 0) & (best > limit), s, found)
    return found
