"""Published forms of matrix and queue memory, as printed: kept for comparison.

Eq. 12 takes the covariance for a product of one of rows and one of columns. It adds terms that the covariance does not
have, so it never says more than there is.

Theorem 4, with Eq. 40 rebuilt from Eq. 39, has one slot of weight 1 and infinite series, cut off at m_max. With
L = I - K on column-stacked matrices the terms are D_m = L^-m K^k w, and alike for both covariances, so that each series
is geometric: it diverges, since the covariances' largest ratio is 1 / (1 - rho^2) > 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, ctx
from jaxtyping import Float

from mnemoscope.core.errors import UserError
from mnemoscope.measures.fisher.balls import Balls, balls
from mnemoscope.measures.fisher.blocks import BlockMemory, Group, Modes, TotalMemory, decoupled, total_memory
from mnemoscope.measures.fisher.conventions import TAIL
from mnemoscope.measures.fisher.engine import sources
from mnemoscope.measures.fisher.roots import published_roots
from mnemoscope.measures.spectral.eigenvalues import eigenvalues

__all__ = ["PublishedQueue", "published", "published_queue"]


def published(
    U: Float[np.ndarray, "n n"], V: Float[np.ndarray, "m m"], W: Float[np.ndarray, "n m"], horizon: int | None
) -> tuple[TotalMemory, float]:
    """Return the published curve and total at noise 1, and an estimate of their relative error.

    In a unitary frame the published covariance falls apart as the exact one does.
    """
    parts = [_part(group, horizon) for group in decoupled(U, V, W)]
    return total_memory(parts, horizon, max(W.shape)), max(part.error() for part in parts)


def _part(group: Group, horizon: int | None) -> BlockMemory:
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


_MOST = 2**14  # lags
_PRECISIONS = (256, 512, 1024, 2048)


@dataclass(frozen=True)
class PublishedQueue:
    """The cut-off series at noise 1.

    Attributes
    ----------
    curve, total
        J'(k) and its sum.
    terms
        Traces of Psi_m and Sigma_m and the norm of D_m at lag 0, one row each, for m = 0..m_max.
    growth
        By what factor the terms of each series grow in the end; a series converges only below 1.
    """

    curve: Float[np.ndarray, " lags"]
    total: float
    terms: Float[np.ndarray, "3 m"]
    growth: tuple[float, float, float]


def published_queue(
    U: Float[np.ndarray, "n n"], V: Float[np.ndarray, "m m"], W: Float[np.ndarray, "n m"], m_max: int
) -> PublishedQueue:
    """Evaluate the published form with the series cut off after `m_max`."""
    left, right = eigenvalues(U).values, eigenvalues(V).values
    growth = (
        float(1 / (1 - np.abs(left).max() ** 2)),
        float(1 / (1 - np.abs(right).max() ** 2)),
        float(1 / np.abs(1 - np.outer(left, right)).min()),
    )
    groups = decoupled(U, V, W)
    if all(group.size == 1 for group in groups):
        curve, total, terms = _by_modes(groups, m_max)
    else:
        curve, total, terms = _by_balls(U, V, W, m_max)
    return PublishedQueue(curve, total, terms, growth)


Series = tuple[Float[np.ndarray, " lags"], float, Float[np.ndarray, "3 m"]]


def _by_modes(groups: list[Group], m_max: int) -> Series:
    a = np.concatenate([group.a[:, 0, 0] for group in groups])
    b = np.concatenate([group.b[:, 0, 0] for group in groups])
    energy = np.concatenate([np.abs(group.w[:, 0, 0]) ** 2 for group in groups])
    rows, columns = groups[0].rows.shape[1], groups[0].columns.shape[1]
    orders = np.arange(m_max + 1)[:, None]
    with np.errstate(over="ignore"):
        across, along = (np.power(1 - np.abs(one) ** 2, -(orders + 1.0)) for one in (a, b))
        mean = np.power((1 - a * b).astype(complex), -orders)
        sized = float(across.sum() * along.sum())
    if not np.isfinite(sized):
        raise UserError(f"the published series leaves float64 before m_max={m_max}: it diverges; lower m_max")
    terms = np.stack([along.sum(axis=1) / columns, across.sum(axis=1) / rows, np.sqrt(np.abs(mean) ** 2 @ energy)])
    height = np.abs(mean.sum(axis=0)) ** 2 / (across.sum(axis=0) * along.sum(axis=0))
    both = np.abs(a * b)
    found = total_memory([Modes(both, energy * height / (1 - both**2), None)], None, max(rows, columns))
    return found.curves[0], float(found.totals[0]), terms


def _by_balls(U: Any, V: Any, W: Any, m_max: int) -> Series:
    """Sum the series in ball arithmetic: their sums have condition numbers that grow as the terms do."""
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            try:
                return _series(U, V, W, m_max)
            except ZeroDivisionError:  # the balls are too wide
                continue
    raise UserError(f"the published series of this network needs more than {_PRECISIONS[-1]} bits; lower m_max")


def _series(U: Any, V: Any, W: Any, m_max: int) -> Series:
    left, right = balls(U.T), balls(V.T)
    rows, psi = _summed(_unit(len(U)), left, left, m_max + 1)
    columns, sigma = _summed(_unit(len(V)), right, right, m_max + 1)
    sources, source = _summed(balls(W), left, right, m_max, first=balls(W))
    inverse = psi.inv(), sigma.inv()
    terms = [[float(one.trace().mid()) for one in rows], [float(one.trace().mid()) for one in columns]]
    norms = [float(np.sqrt(sum(float(x.mid()) ** 2 for x in one.entries()))) for one in sources]
    curve = _curve(inverse, source, left, right.transpose(), max(W.shape))
    return curve, float(curve.sum()), np.array([*terms, norms])


def _summed(
    start: Balls, left: Balls, right: Balls, count: int, first: Balls | None = None
) -> tuple[list[Balls], Balls]:
    """Return the first `count` solutions of X_m = left X_m right^T + X_{m-1} (after `first`), and their sum."""
    terms = [] if first is None else [first]
    now = start
    for _ in range(count):
        now = _stein(now, left, right)
        terms.append(now)
    return terms, sum(terms[1:], terms[0])


def _stein(inner: Balls, left: Balls, right: Balls) -> Balls:
    small = arb(2) ** (-ctx.prec // 2)
    for _ in range(64):
        more = left * inner * right.transpose()
        inner = inner + more
        if _size(more) < small * _size(inner):
            return inner
        if not _size(inner).is_finite():
            raise ZeroDivisionError
        left, right = left * left, right * right
    raise ZeroDivisionError


def _size(values: Balls) -> Any:
    return max((entry.abs_upper() for entry in values.entries()), default=arb(0))


def _unit(size: int) -> Balls:
    return balls(np.eye(size))


def _curve(
    inverse: tuple[Balls, Balls], source: Balls, left: Balls, right: Balls, least: int
) -> Float[np.ndarray, " lags"]:
    """Return J'(k) until a hundred lags in a row together hold less than `TAIL` of the sum."""
    found: list[float] = []
    while len(found) < _MOST:
        whole = inverse[0] * source * inverse[1]
        value = sum((x * y for x, y in zip(whole.entries(), source.entries(), strict=True)), arb(0))
        if not value.is_finite() or value.rad() > 1e-20 + abs(value.mid()) * 1e-15:
            raise ZeroDivisionError
        found.append(float(value.mid()))
        source = left * source * right
        if len(found) > least + 100 and sum(found[-100:]) <= TAIL / 100 * sum(found):
            break
    curve = np.array(found)
    after = np.cumsum(curve[::-1])[::-1]
    enough = np.flatnonzero(after <= TAIL * after[0])
    return curve[: max(least, int(enough[0]))] if len(enough) else curve
