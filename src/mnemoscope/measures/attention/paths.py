"""Gradients through attention, split by how many states they pass on the way."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import Description, UserError, choice, expected
from mnemoscope.core.result import Result, result
from mnemoscope.measures.attention.dependency import attention_kappa, dependency_depths, path_weights
from mnemoscope.measures.attention.norms import norms_of_powers, norms_of_products, norms_of_totals
from mnemoscope.measures.registry import measure
from mnemoscope.report.chart import HEIGHT, Chart, beside, heat_map, lines
from mnemoscope.theory.formulas.attention import attention_matrix, uniform_attention, uniform_attention_exponent

__all__ = ["AttentionPaths", "attention_paths"]

_ORDERS = {"frobenius": "fro", "spectral": 2}
_SHOWN = 7
_FLOOR = 1e-8  # of the largest total: parts below it are not drawn


@result
class AttentionPaths(Result):
    """Gradients ds_{t+k}/dh_t = sum_s xi_k(s) through attention.

    Attributes
    ----------
    start
        t, the step of the state, counted from 0.
    norms
        ``[k, s]``: norm of xi_k(s), all paths of lag k through s intermediate states (s Jacobians, s + 1 skips).
    totals
        Norm of the whole gradient by lag.
    depths
        Dependency depth from state t to step t + k, by lag k.
    depth
        Of the whole attention matrix: the largest depth from any state to the last step.
    kappa
        The largest number of states that one step attends to.
    relevant
        The largest number of relevant events of one step: weights above the threshold.
    threshold
        Above which a weight, or a product of weights, counts as relevant.
    exponent
        For uniform attention and one V with spectral radius below 1: the power of T by which the total grows.
    """

    measure: ClassVar[str] = "attention-paths"
    references: ClassVar[tuple[str, ...]] = ("kerg2020",)

    start: int
    norms: Float[np.ndarray, "lags skips"]
    totals: Float[np.ndarray, " lags"]
    depths: Int[np.ndarray, " lags"]
    depth: int
    kappa: int
    relevant: int
    threshold: float
    exponent: float | None

    def __str__(self) -> str:
        last = len(self.totals) - 1
        most = int(np.argmax(self.norms[last]))
        return (
            f"||ds_T/dh_t|| = {self.totals[last]:.6g} at lag {last}, most of it through {most} states; "
            f"dependency depth {self.depth}, kappa {self.kappa}"
        )

    def plot(self) -> Chart:
        """Draw the norms by lag, one curve for each number of intermediate states, and all of them as a map."""
        lags = np.arange(len(self.totals))
        floor = float(self.totals.max()) * _FLOOR
        count = 1 + int(np.flatnonzero((self.norms > floor).any(axis=0)).max(initial=0))
        chosen = sorted({round(x) for x in np.geomspace(1, count, min(_SHOWN, count))})
        series = {"all paths": (lags, self.totals)}
        for s in chosen:
            series[f"through {s - 1}"] = (lags, np.where(self.norms[:, s - 1] > floor, self.norms[:, s - 1], np.nan))
        curves = lines(
            series,
            x="lag k (steps)",
            y="norm of the gradient",
            title="Gradient from s(t+k) to h(t) by path",
            log_y=True,
            legend="states passed",
        )
        every_lag, every_skip = (max(1, -(-size // 60)) for size in (len(lags), count))
        shown = self.norms[::every_lag, :count:every_skip]
        cells = heat_map(
            np.log10(np.where(shown > floor, shown, np.nan)).T[::-1],
            x="lag k (steps)",
            y="states passed s",
            value="log10 norm",
            title="Norm of each part",
            x_ticks=lags[::every_lag].tolist(),
            y_ticks=list(range(0, count, every_skip))[::-1],
        )
        return beside(curves, cells.properties(height=HEIGHT))


@measure("attention-paths", kinds=(), matrices={"V": "matrix", "attention": "attention"})
def attention_paths(
    V: Any,
    attention: Any,
    start: int = 0,
    skips: int | None = None,
    combine: str = "sum",
    norm: str = "frobenius",
    threshold: float = 0.1,
) -> AttentionPaths:
    r"""Split the gradient of an attentive recurrent network by how many states it passes.

    For h_{t+1} = phi(V s_t + ..), s_t = h_t + sum_i alpha_{t,i} h_i, with J_t = dh_{t+1}/ds_t:

    .. math::
        \frac{ds_{t+k}}{dh_t} = \sum_{s=0}^{k} \xi_k(s), \quad \xi_k(0) = E_k, \quad
        \xi_{k}(s) = \sum_{j<k} F_{k,j}\, \xi_j(s-1)

    with E_k = alpha_{t+k,t} + [k = 0] and F_{k,j} = (alpha_{t+k,t+j+1} + [j = k-1]) J_{t+j}: the recursion
    C_k = E_k + sum_j F_{k,j} C_j, graded by the number of factors F. Weights count as constants: what gradients gain
    through the alignment function is left out, as in the document's laws.

    Parameters
    ----------
    V
        The recurrent matrix (n x n), a number, or the Jacobians J_t of all steps but the last (T-1 x n x n).
    attention
        T x T, lower triangular: row t, column i is the weight at step t on state i.
    start
        t, the step whose state is differentiated by, counted from 0.
    skips
        Split up to this many intermediate states; None: all. The total holds all paths in any case.
    combine
        "sum" for s = h + c, "mean" for s = (h + c)/2.
    norm
        "frobenius" or "spectral".
    threshold
        Weights, and products of weights along a path, above it count as relevant.

    Returns
    -------
    AttentionPaths

    References
    ----------
    Kerg et al. (2020), Proposition 1; with the corrected laws of `mnemoscope.theory.uniform_attention_exponent` and
    `mnemoscope.theory.sparse_attention_bound`.

    Examples
    --------
    >>> from mnemoscope.theory.formulas.attention import uniform_attention
    >>> found = attention_paths(0.5, uniform_attention(100))
    >>> print(found)
    ||ds_T/dh_t|| = 2 at lag 99, most of it through 6 states; dependency depth 69, kappa 100
    >>> round(found.exponent, 12)
    0.0
    """
    weights = attention_matrix("attention", attention)
    length = len(weights)
    jacobians = _jacobians(V, length)
    if isinstance(start, bool) or not isinstance(start, int) or not 0 <= start < length:
        raise expected("start", f"a step from 0 to {length - 1}", start)
    most = _most(skips, length - start)
    order, limit = _ORDERS[choice("norm", norm, _ORDERS)], positive("threshold", threshold)
    scale = 0.5 if choice("combine", combine, ("sum", "mean")) == "mean" else 1.0
    ways = scale * path_weights(weights)[start:, start:]
    single = jacobians.ndim == 2
    norms = (
        norms_of_powers(jacobians, ways, most, order)
        if single
        else norms_of_products(jacobians[start:], ways, most, order)
    )
    size = jacobians.shape[-1]
    return AttentionPaths(
        status="exact",
        digits=12,
        assumptions=("attention weights do not change with the states",),
        cost="O(T^2 S) time for one V, O(T^2 S n^2 + T S n^3) for T Jacobians, S = skips"
        if single
        else "O(T^2 S n^2 + T S n^3) time, O(T S n^2) memory, S = skips",
        start=start,
        norms=norms,
        totals=norms_of_totals(jacobians if single else jacobians[start:], ways, size, order),
        depths=dependency_depths(weights, limit, start),
        depth=int(dependency_depths(weights, limit).max()),
        kappa=attention_kappa(weights),
        relevant=attention_kappa(weights, limit),
        threshold=limit,
        exponent=_exponent(jacobians, weights, scale),
    )


def _most(skips: int | None, lags: int) -> int:
    if skips is None:
        return lags - 1
    if isinstance(skips, bool) or not isinstance(skips, int) or skips < 0:
        raise expected("skips", "an integer of at least 0", skips)
    return min(skips, lags - 1)


def _jacobians(V: Any, length: int) -> Float[np.ndarray, ...]:
    value = V.detach().cpu().numpy() if hasattr(V, "detach") else V
    try:
        found = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise expected("V", "an array of real numbers", V) from None
    found = found.reshape(1, 1) if found.ndim == 0 else found
    if found.ndim not in (2, 3) or found.shape[-1] != found.shape[-2] or 0 in found.shape:
        wanted = "a square matrix, or Jacobians of shape (T-1, n, n)"
        raise expected("V", wanted, Description(f"an array of shape {found.shape}"))
    if found.ndim == 3 and len(found) != length - 1:
        raise expected("V", f"one Jacobian for each of the {length - 1} steps between {length} states", len(found))
    if not np.isfinite(found).all():
        bad = int(found.size - np.isfinite(found).sum())
        raise UserError(f"V must be finite, got {bad} NaN or infinite of {found.size} entries")
    return found


def _exponent(jacobians: np.ndarray, weights: Float[np.ndarray, "T T"], scale: float) -> float | None:
    if jacobians.ndim != 2 or scale != 1 or not np.allclose(weights, uniform_attention(len(weights)), rtol=1e-9):
        return None
    values = np.linalg.eigvals(jacobians)
    return None if np.abs(values).max() >= 1 else max(uniform_attention_exponent(complex(x)) for x in values)
