"""Eq. 12 of the document, as printed: the covariance taken for a product of one of rows and one of columns.

It adds terms that the covariance does not have, so it never says more than there is. It is kept for comparison.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from mnemoscope.measures.fisher.frame import Group, decoupled
from mnemoscope.measures.fisher.part import Gathered, Modes, Part, gather
from mnemoscope.measures.fisher.precision import sources
from mnemoscope.measures.fisher.roots import published_roots

__all__ = ["published"]


def published(
    U: Float[np.ndarray, "n n"], V: Float[np.ndarray, "m m"], W: Float[np.ndarray, "n m"], horizon: int | None
) -> tuple[Gathered, float]:
    """Return the published curve and total at noise 1, and an estimate of their relative error.

    In a unitary frame the published covariance falls apart as the exact one does.
    """
    parts = [_part(group, horizon) for group in decoupled(U, V, W)]
    return gather(parts, horizon, max(W.shape)), max(part.error() for part in parts)


def _part(group: Group, horizon: int | None) -> Part:
    if group.size > 1:
        return published_roots(group.a, group.b, sources(group), horizon)
    across, along = np.abs(group.a)[:, 0, 0], np.abs(group.b)[:, 0, 0]
    both = across * along
    energy = np.abs(group.w[:, 0, 0]) ** 2
    # A mode's curve has the exact shape; the ratio of the two variances is its height.
    ratio = np.exp(_log_variance(both, horizon) - _log_variance(across, horizon) - _log_variance(along, horizon))
    return Modes(both, energy * ratio, horizon)


def _log_variance(moduli: Float[np.ndarray, " m"], horizon: int | None) -> Float[np.ndarray, " m"]:
    """Return log sum_k q^2k over the horizon; where q > 1 the largest term is taken out, so that nothing overflows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = 2 * np.log(moduli)
        decay = -np.abs(rate)
        last = 0.0 if horizon is None else np.where(moduli == 0, 0.0, np.exp(horizon * decay))
        found = np.log((last - 1) / np.expm1(decay)) + np.where(rate > 0, ((horizon or 1) - 1) * rate, 0.0)
    return np.asarray(np.where(moduli == 1, np.log(float(horizon or np.inf)), found))
