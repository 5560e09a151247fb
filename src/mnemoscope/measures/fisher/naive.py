"""Fisher memory by its definition: the covariance of the last state is summed and inverted, as the papers write it.

Every Fisher memory of this folder is that of a linear network h_t = P h_{t-1} + w s_t + z_t. These few lines are the
twin that tests compare the fast and precise forms with. They hold as long as the covariance is well conditioned: its
condition number is the square of that of the square root which the other files compute with, and of a chain that
amplifies it soon exceeds what float64 holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

__all__ = ["matrix_step", "memory_curve", "queue_step"]


def memory_curve(
    step: Float[np.ndarray, "n n"],
    source: Float[np.ndarray, " n"],
    horizon: int,
    noise: float = 1.0,
    noisy: int | None = None,
    seen: int | None = None,
) -> Float[np.ndarray, " lags"]:
    r"""Return the information J(k) that the last state holds about the input k steps back, for k below the horizon.

    .. math:: C = \epsilon \sum_{k < n} P^k E P^{kT}, \qquad J(k) = w^T P^{kT} C^{-1} P^k w

    Parameters
    ----------
    step, source
        P and w.
    horizon
        n: steps from a zero state.
    noise
        Variance epsilon.
    noisy
        How many leading numbers of the state the noise enters (E is the identity there, else zero); None: all.
    seen
        How many leading numbers of the last state are read; None: all.
    """
    powers = [np.linalg.matrix_power(step, k) for k in range(horizon)]
    covariance = noise * sum(power[:seen, :noisy] @ power[:seen, :noisy].T for power in powers)
    responses = np.stack([power[:seen] @ source for power in powers], axis=1)
    curve: np.ndarray = (responses * np.linalg.solve(covariance, responses)).sum(axis=0)
    return curve


def matrix_step(U: Float[np.ndarray, "n n"], V: Float[np.ndarray, "m m"]) -> Float[np.ndarray, "nm nm"]:
    """Return P of a matrix network X = U^T X V, its columns stacked: vec(U^T X V) = (V^T kron U^T) vec X."""
    return np.kron(V.T, U.T)


def queue_step(
    U: Float[np.ndarray, "n n"], V: Float[np.ndarray, "m m"], weights: Sequence[float]
) -> Float[np.ndarray, "size size"]:
    """Return P of (X(t), X(t-1), ..), X(t) = U^T X(t-1) V + sum_i alpha_i X(t-1-i): the queue shifts by one state."""
    own = matrix_step(U, V)
    states, units = 1 + len(weights), len(own)
    step = np.eye(states * units, k=-units)
    step[:units] = np.hstack([own, *(alpha * np.eye(units) for alpha in weights)])
    return step
