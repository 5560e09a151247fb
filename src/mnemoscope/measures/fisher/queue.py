"""Fisher memory of a matrix network that also reads a queue of its own past states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from mnemoscope.core.arrays import vector
from mnemoscope.core.errors import UserError, choice, expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.fisher.conventions import trusted_digits
from mnemoscope.measures.fisher.engine import (
    MatrixNetwork,
    cut_off,
    matrix_memory,
    matrix_network,
    unstable,
)
from mnemoscope.measures.fisher.published import published_queue
from mnemoscope.measures.fisher.resting import matrices_of
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.spectral.eigenvalues import eigenvalues, spectral_radius

if TYPE_CHECKING:
    from mnemoscope.report.chart import Chart

__all__ = ["QueueFisherMemory", "queue_fisher_memory"]


@result
class QueueFisherMemory(Result):
    """Result of `queue_fisher_memory`.

    Attributes
    ----------
    curve
        J(k): Fisher information that the last state X(n) holds about the input k steps back.
    total, relative
        The sum of J(k) over all lags of the horizon, and eps1 eps2 total / tr(W^T W).
    joint_curve, joint_total, joint_relative
        The same for the last two states (X(n), X(n-1)) together; None for the published form.
    stable
        Whether the network with its queue forgets: the spectral radius of its companion matrix is below 1.
    radius
        That spectral radius.
    bound
        N^2 tr(W^T W) / (eps1 eps2), which no total exceeds; the joint total stays below twice that.
    tail, joint_tail
        Shares of the totals that lie beyond the ends of the curves.
    self_check
        How far, relatively, trace(J^s) is from N^2 (2 N^2 for two states), at worst; None for the published form.
    diverges
        Whether the series of the published form has no limit; None for the exact form.
    growth
        By what factors the terms of the published series (row covariance, column covariance, mean) grow in the end;
        None for the exact form.
    terms
        The traces of the first two and the norm of the third, one row each, for m = 0..m_max; None for the exact form.
    m_max
        Where the published series were cut off; None for the exact form.
    method
        The arithmetic that was used.
    weights, form, noise, horizon
        As given.
    """

    measure: ClassVar[str] = "queue-fisher"
    references: ClassVar[tuple[str, ...]] = ("renanse2021", "ganguli2008")

    curve: Float[np.ndarray, " lags"]
    total: float
    relative: float
    joint_curve: Float[np.ndarray, " lags"] | None
    joint_total: float | None
    joint_relative: float | None
    stable: bool
    radius: float
    bound: float
    tail: float
    joint_tail: float | None
    self_check: float | None
    diverges: bool | None
    growth: tuple[float, float, float] | None
    terms: Float[np.ndarray, "3 m"] | None
    m_max: int | None
    method: str
    weights: tuple[float, ...]
    form: str
    noise: tuple[float, float]
    horizon: int | None

    def __str__(self) -> str:
        shown = max(1, min(self.digits or 1, 8))
        if self.growth is not None:
            limit = "diverges" if self.diverges else "converges"
            return (
                f"Published queue memory {self.total:.{shown}g} with its series cut off at m = {self.m_max}; the "
                f"series {limit}: its terms grow by {max(self.growth):.4g}"
            )
        steps = "an infinite horizon" if self.horizon is None else f"a horizon of {self.horizon}"
        verdict = "stable" if self.stable else "unstable"
        return (
            f"Fisher memory {self.total:.{shown}g} of one state and {self.joint_total:.{shown}g} of two, of at most "
            f"{self.bound:.6g} and {2 * self.bound:.6g}, over {steps}; {verdict}, radius {self.radius:.6g}, "
            f"{self.digits} digits to be trusted"
        )

    def plot(self) -> Chart:
        """Draw the curve of one state and of two by lag; of the published form its curve alone."""
        from mnemoscope.report.chart import lines

        lags = np.arange(len(self.curve))
        name = "last state" if self.form == "exact" else f"published, cut off at m = {self.m_max}"
        series = {f"{name}, total {self.total:.4g}": (lags, self.curve)}
        if self.joint_curve is not None:
            series[f"last two states, total {self.joint_total:.4g}"] = (lags, self.joint_curve)
        return lines(
            series,
            x="lag k (steps)",
            y="Fisher information J(k)",
            title=f"Memory with a queue of {len(self.weights)}",
            log_y=bool(self.curve.max() > 1e3 * self.curve.min()),
        )


FORMS = ("exact", "published")

COST = (
    "N x N state, p slots, K lags, T the horizon or 1/(1 - radius): O(N^3 + N^2 p^3 log T + N^2 p^2 K) time when U and "
    "V are normal; O((p N^2)^3 log T + (p N^2)^2 K) time and O((p N^2)^2) memory when neither is"
)


_WEIGHTS = (0.3,)
"""Of the queue, where nothing is said."""

_COST = Cost(
    time={"Q^3 log(T)": 2.6e-9, "Q^2 T": 2e-9},
    memory="Q^2",
    sizes={
        "Q": lambda given: given["S"] * (1 + len(given["weights"] or _WEIGHTS)),
        "T": lambda given: given["horizon"] or 1000,
    },
    letters={"Q": "numbers in the matrix and its queue, less where U and V fall apart", "T": "lags"},
)


@measure("queue-fisher", kinds=("recurrent",), needs=("matrix",), matrices={"U": "u", "V": "v", "W": "w"}, cost=_COST)
def queue_fisher_memory(
    U: Any,
    V: Any = None,
    W: Any = None,
    weights: tuple[float, ...] | None = None,
    noise: tuple[float, float] = (1.0, 1.0),
    horizon: int | None = None,
    form: str = "exact",
    m_max: int = 20,
    channel: int = 0,
) -> QueueFisherMemory:
    r"""Measure what a matrix network with a queue of p past states says about each past input.

    For :math:`X_t = U^T X_{t-1} V + W s_t + \sum_{i=1}^p \alpha_i X_{t-1-i} + Z_t` the response to an input is a
    polynomial in :math:`K = V^T \otimes U^T`,

    .. math::
        G_0 = I, \quad G_k = K G_{k-1} + \sum_i \alpha_i G_{k-1-i}, \quad C = \epsilon_1 \epsilon_2 \sum_k G_k G_k^T,
        \quad J(k) = w^T G_k^T C^{-1} G_k w, \quad w = \mathrm{vec}\, W,

    and the pair :math:`(X_t, X_{t-1})` has the response :math:`(G_k, G_{k-1})`. The trace of J^s is N^2 with or without
    the queue, and 2 N^2 for the pair. The stationary state exists when every root of
    :math:`z^{p+1} - \mu z^p - \sum_i \alpha_i z^{p-i}` is inside the unit circle for every product :math:`\mu` of
    eigenvalues of U and V; otherwise a finite horizon is needed.

    Parameters
    ----------
    U
        Left recurrent matrix, N x N: the state is multiplied by its transpose. Or a network instead of all three:
        matrix-queue, which has weights of its own, or one that `matrix_fisher_memory` takes.
    V
        Right recurrent matrix, N x N (M x M for an N x M state).
    W
        Where the scalar signal enters, of the shape of the state.
    weights
        alpha_1..alpha_p: with what weight the states two, three, .. steps back are added; None: those of the network,
        else (0.3,).
    noise
        Variances epsilon_1 of rows and epsilon_2 of columns; only their product matters.
    horizon
        n: n steps from zero states, so n noise terms and lags 0..n-1; None: the stationary state, where there is one.
    form
        "exact", or "published" for the document's series (one slot of weight 1, whatever `weights` says).
    m_max
        Where the published series are cut off; they diverge.
    channel
        Which number of a network's input the signal is, counted row by row.

    Returns
    -------
    QueueFisherMemory
        With ``.curve``, ``.total``, ``.relative``, ``.joint_total``, ``.stable``, ``.radius`` and more.

    References
    ----------
    Renanse, Sharma and Chandra (2021), corrected as the documentation says.

    Examples
    --------
    A queue moves information of normal networks to longer lags and adds none; only reading two states gains.

    >>> import numpy as np
    >>> U = V = np.diag([0.9, 0.5])
    >>> found = queue_fisher_memory(U, V, np.eye(2), weights=(0.1,))
    >>> round(found.relative, 12), round(found.joint_relative, 12), found.stable
    (1.0, 2.0, True)
    >>> found.curve[:3].round(6).tolist()
    [1.101711, 0.180513, 0.131659]
    """
    U, V, W, queue, words = matrices_of(U, V, W, channel, "queue_fisher_memory")
    if queue is not None and weights is not None:
        raise UserError(f"weights cannot be given for a network that has a queue of its own, {queue}")
    network = matrix_network(U, V, W, noise, horizon)
    alphas = queue or _weights(_WEIGHTS if weights is None else weights)
    choice("form", form, FORMS)
    if form == "published":
        found = _published_result(network, alphas, positive_int("m_max", m_max))
        return replace(found, assumptions=(*words, *found.assumptions))
    radius = queue_radius(network.U, network.V, alphas)
    if network.horizon is None and unstable(radius):
        raise UserError(
            f"the network with its queue must be stable for horizon=None, got a companion matrix of spectral radius "
            f"{radius:.6g}: there is no stationary state; give a finite horizon, or smaller weights"
        )
    found = _exact_result(network, alphas, radius)
    return replace(found, assumptions=(*words, *found.assumptions))


def queue_radius(U: Float[np.ndarray, "n n"], V: Float[np.ndarray, "m m"], weights: Sequence[float]) -> float:
    """Return the spectral radius of a network with its queue: the largest root over all products of eigenvalues."""
    products = np.outer(eigenvalues(U).values, eigenvalues(V).values).reshape(-1)
    companions = np.zeros((len(products), 1 + len(weights), 1 + len(weights)), complex)
    companions[:, 0, 0] = products
    companions[:, 0, 1:] = weights
    companions[:, range(1, 1 + len(weights)), range(len(weights))] = 1
    return float(np.abs(np.linalg.eigvals(companions)).max())


def _exact_result(network: MatrixNetwork, weights: tuple[float, ...], radius: float) -> QueueFisherMemory:
    # After one step the state before is still zero, and says nothing.
    observed = (1,) if network.horizon == 1 else (1, 2)
    measured = matrix_memory(network.U, network.V, network.W, weights, observed, network.horizon)
    found, unit = measured.found, network.unit
    one, two = float(found.totals[0]), float(found.totals[-1])
    return QueueFisherMemory(
        status="exact",
        digits=trusted_digits(measured.error),
        assumptions=(
            "the network is linear: X(n) = U^T X(n-1) V + W s(n) + sum_i alpha_i X(n-1-i) + Z(n)",
            "independent Gaussian noise of equal variance enters every entry of the state at every step",
            "only the last state is read, or the last two",
            *cut_off(float(found.tails.max())),
        ),
        cost=COST,
        curve=found.curves[0] * unit,
        total=one * unit,
        relative=one / network.energy,
        joint_curve=found.curves[-1] * unit,
        joint_total=two * unit,
        joint_relative=two / network.energy,
        stable=not unstable(radius),
        radius=radius,
        bound=network.W.size * network.energy * unit,
        tail=float(found.tails[0]),
        joint_tail=float(found.tails[-1]),
        self_check=measured.self_check,
        diverges=None,
        growth=None,
        terms=None,
        m_max=None,
        method=measured.method,
        weights=weights,
        form="exact",
        noise=network.noise,
        horizon=network.horizon,
    )


def _published_result(network: MatrixNetwork, weights: tuple[float, ...], m_max: int) -> QueueFisherMemory:
    if len(weights) > 1:
        raise expected("weights", "of one slot for form='published', which has no other", weights)
    if network.horizon is not None:
        raise expected("horizon", "None for form='published', whose series are infinite", network.horizon)
    radii = spectral_radius(network.U), spectral_radius(network.V)
    if any(map(unstable, radii)):
        raise UserError(
            f"form='published' needs rho(U) and rho(V) below 1, got {radii[0]:.6g} and {radii[1]:.6g}: not even the "
            "terms of its series exist; form='exact' with a finite horizon does"
        )
    found = published_queue(network.U, network.V, network.W, m_max)
    radius = queue_radius(network.U, network.V, (1.0,))
    return QueueFisherMemory(
        status="estimate",
        digits=12,
        assumptions=(
            "the document's series for one slot of weight 1, which diverge: a sum cut off at m_max is no limit",
            "the document's separable covariances and its mean without the slot's time shift",
        ),
        cost="O(N^3 log T m_max + N^3 K) ball operations, O(N^3 + N^2 K) time when U and V are normal",
        curve=found.curve * network.unit,
        total=found.total * network.unit,
        relative=found.total / network.energy,
        joint_curve=None,
        joint_total=None,
        joint_relative=None,
        stable=not unstable(radius),
        radius=radius,
        bound=network.W.size * network.energy * network.unit,
        tail=0.0,
        joint_tail=None,
        self_check=None,
        diverges=max(found.growth) >= 1,
        growth=found.growth,
        terms=found.terms,
        m_max=m_max,
        method="series cut off",
        weights=(1.0,),
        form="published",
        noise=network.noise,
        horizon=None,
    )


def _weights(value: Any) -> tuple[float, ...]:
    return tuple(float(weight) for weight in vector("weights", np.atleast_1d(value) if np.isscalar(value) else value))
