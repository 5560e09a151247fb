"""Gradients through attention, split by how many states they pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import Description, UserError, choice, expected
from mnemoscope.core.memory import allowance, require
from mnemoscope.core.result import Result, result
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.theory.formulas.attention import attention_matrix, uniform_attention, uniform_attention_exponent

if TYPE_CHECKING:
    from mnemoscope.report.chart import Chart

__all__ = ["AttentionPaths", "attention_kappa", "attention_paths", "dependency_depths"]

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


def norms_of_powers(
    V: Float[np.ndarray, "n n"], ways: Float[np.ndarray, "K K"], most: int, order: Any
) -> Float[np.ndarray, "K skips"]:
    """Return the norms where all Jacobians are V: then xi_k(s) is a number times V^s."""
    lags = len(ways)
    require("the table of paths", 16 * lags * (most + 1), f"skips={allowance() // (16 * lags)} would fit")
    # V is divided by its size, and the numbers multiplied by it: neither may overflow before their product does.
    size = float(np.linalg.norm(V, 2)) or 1.0
    counts = np.zeros((lags, most + 1))
    counts[:, 0] = ways[:, 0]
    for k in range(1, lags):
        counts[k, 1:] = size * (ways[k, 1 : k + 1] @ counts[:k, :-1])
    power, sizes = np.eye(len(V)), np.empty(most + 1)
    for s in range(most + 1):
        sizes[s] = np.linalg.norm(power, order)
        power = power @ V / size
    return counts * sizes


def norms_of_products(
    jacobians: Float[np.ndarray, "steps n n"], ways: Float[np.ndarray, "K K"], most: int, order: Any
) -> Float[np.ndarray, "K skips"]:
    """Return the norms from the graded recursion on matrices."""
    lags, n = len(ways), jacobians.shape[-1]
    per_skip = 8 * (lags + 2) * n * n
    fits = f"skips={max(0, allowance() // per_skip - 1)} would fit"
    require(f"the gradient by path at {lags} lags, {most} skips, {n} units", per_skip * (most + 1), fits)
    moved = np.zeros((max(lags - 1, 1), most + 1, n, n))  # J_{t+j} xi_j(s): what enters h_{t+j+1}
    norms = np.zeros((lags, most + 1))
    for k in range(lags):
        sums = np.zeros((most + 1, n, n))
        sums[0] = ways[k, 0] * np.eye(n)
        if k:
            past = moved[:k, :-1].reshape(k, -1) if most else np.zeros((k, 0))
            sums[1:] = (ways[k, 1 : k + 1] @ past).reshape(most, n, n)
        norms[k] = np.linalg.norm(sums, order, axis=(1, 2))
        if k < lags - 1:
            moved[k] = jacobians[k] @ sums
    return norms


def norms_of_totals(
    jacobians: Float[np.ndarray, "... n n"], ways: Float[np.ndarray, "K K"], n: int, order: Any
) -> Float[np.ndarray, " K"]:
    """Return the norm of C_k = E_k + sum_j F_{k,j} C_j by lag."""
    lags = len(ways)
    most = int((allowance() // (8 * n * n)) ** 0.5)
    require(f"the gradient at {lags} lags of {n} units", 8 * lags * n * n, f"{most} lags would fit")
    moved, totals = np.zeros((lags, n * n)), np.empty(lags)
    for k in range(lags):
        total = ways[k, 0] * np.eye(n) + (ways[k, 1 : k + 1] @ moved[:k]).reshape(n, n)
        totals[k] = np.linalg.norm(total, order)
        if k < lags - 1:
            moved[k] = ((jacobians if jacobians.ndim == 2 else jacobians[k]) @ total).ravel()
    return totals


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
        from mnemoscope.report.chart import HEIGHT, beside, heat_map, lines

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


_COST = Cost(
    time={"T^2 K S^2": 5e-11, "T K S^3": 1e-9},
    memory="T K S^2",
    sizes={"T": lambda given: len(given["attention"]), "K": lambda given: given["skips"] or len(given["attention"])},
    letters={"K": "states that a path passes at most"},
)


@measure("attention-paths", kinds=(), matrices={"V": "matrix", "attention": "attention"}, cost=_COST)
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


def _jacobians(V: Any, length: int) -> Float[np.ndarray, " ..."]:
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
