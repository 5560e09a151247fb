"""Fisher memory of vector networks in closed form: delay lines, bounds that they attain, Kerg's triangular matrices."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from mnemoscope.core.arrays import matrix, positive, square, vector
from mnemoscope.core.errors import UserError, expected, positive_int

__all__ = [
    "TABLE_5",
    "LinearNetwork",
    "TriangularBounds",
    "amplification",
    "amplification_bound",
    "delay_line",
    "delay_line_curve",
    "delay_line_limit",
    "feedback_delay_line",
    "feedback_interval",
    "kerg_matrix",
    "optimal_delay_line",
    "triangular_fisher_bounds",
]

TABLE_5: dict[tuple[float, float, float], float] = {
    (alpha, beta, d): total
    for (beta, d), totals in {
        (0.0, 0.0): (3.03, 5.19, 12.1),
        (0.005, 0.0): (3.18, 5.30, 12.1),
        (0.0, 0.2): (12.0, 16.2, 20.5),
        (0.005, 0.2): (12.1, 16.3, 20.4),
    }.items()
    for alpha, total in zip((0.95, 1.0, 1.05), totals, strict=True)
}
"""Kerg's Table 5 as published: total Fisher memory by (alpha, beta, d) at N = 100, of what `kerg_matrix` builds."""


class LinearNetwork(NamedTuple):
    """Weights of h = W h + v s + z."""

    W: Float[np.ndarray, "n n"]
    v: Float[np.ndarray, " n"]


class TriangularBounds(NamedTuple):
    """Lower bounds of J(k) for a strictly lower triangular matrix, k = 0..N-1.

    Attributes
    ----------
    corrected
        Proposition 3.4.1 with its factor 1/noise.
    sharper
        The bound of ours, at least as large at every lag.
    sigma
        Largest singular value of the triangular factor.
    """

    corrected: Float[np.ndarray, " n"]
    sharper: Float[np.ndarray, " n"]
    sigma: float


def delay_line(size: int, gain: float = 1.0) -> LinearNetwork:
    """Return a chain of `size` units with sub-diagonal sqrt(gain), and its source, the first unit.

    Examples
    --------
    >>> delay_line(3, gain=4.0).W.tolist()
    [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    """
    size, root = positive_int("size", size), math.sqrt(positive("gain", gain))
    return LinearNetwork(root * np.eye(size, k=-1), np.eye(size)[0])


def delay_line_curve(size: int, gain: float = 1.0, noise: float = 1.0, lags: int | None = None) -> np.ndarray:
    r"""Return the Fisher memory curve of `delay_line` in closed form.

    .. math::
        J(k) = \frac{1}{\epsilon} \frac{a^k (a - 1)}{a^{k+1} - 1}, \quad k < N

    which is 1 / (epsilon (k + 1)) at gain a = 1, and zero from lag N on.

    Parameters
    ----------
    size
        N.
    gain
        a, the square of the sub-diagonal.
    noise
        Variance epsilon.
    lags
        Length of the curve, N unless told.

    References
    ----------
    Ganguli, Huh and Sompolinsky (2008).

    Examples
    --------
    >>> delay_line_curve(3, gain=2.0, lags=4).round(4).tolist()
    [1.0, 0.6667, 0.5714, 0.0]
    """
    size, gain, noise = positive_int("size", size), positive("gain", gain), positive("noise", noise)
    k = np.arange(size if lags is None else positive_int("lags", lags))
    rate = -math.log1p(gain - 1) if 0.5 < gain < 2 else -math.log(gain)
    if rate == 0:
        curve = 1.0 / (k + 1)
    elif rate < 0:
        curve = math.expm1(rate) / np.expm1((k + 1) * rate)
    else:  # the same, times a^k / a^k, so that nothing overflows
        curve = np.exp(-k * rate) * math.expm1(-rate) / np.expm1(-(k + 1) * rate)
    return np.where(k < size, curve, 0.0) / noise


def delay_line_limit(size: int, gain: float, noise: float = 1.0) -> float:
    """Return what the total of a long delay line with gain a > 1 tends to: (N / noise) (1 - 1 / a).

    Examples
    --------
    >>> delay_line_limit(100, gain=2.0)
    50.0
    """
    size, gain, noise = positive_int("size", size), positive("gain", gain), positive("noise", noise)
    if gain <= 1:
        raise expected("gain", "above 1", gain)
    return size / noise * (1 - 1 / gain)


def amplification(W: Any, v: Any, lags: int) -> Float[np.ndarray, " lags"]:
    """Return the signal's amplification A_m = ||W^m v||^2 for m = 0..lags-1.

    Examples
    --------
    >>> amplification([[0, 0], [3, 0]], [1, 0], 3).tolist()
    [1.0, 9.0, 0.0]
    """
    W = square("W", W)
    signal = vector("v", v, len(W))
    found = np.empty(positive_int("lags", lags))
    for m in range(lags):
        found[m] = signal @ signal
        signal = W @ signal
    return found


def amplification_bound(amplification: Any, noise: float = 1.0) -> Float[np.ndarray, " lags"]:
    r"""Return what no network with this amplification can exceed at any lag.

    .. math:: J(k) \le \frac{1}{\epsilon \sum_{m \le k} 1 / A_m}

    Examples
    --------
    >>> amplification_bound([1.0, 4.0, 0.0]).round(6).tolist()
    [1.0, 0.8, 0.0]
    """
    A = vector("amplification", amplification)
    if (A < 0).any():
        raise expected("amplification", "at least 0 at every lag", float(A.min()))
    with np.errstate(divide="ignore"):
        return 1.0 / (positive("noise", noise) * np.cumsum(1.0 / A))


def optimal_delay_line(amplification: Any) -> LinearNetwork:
    """Return the network that attains `amplification_bound`: a delay line with this amplification A_0..A_{N-1}.

    Its sub-diagonal is sqrt(A_m / A_{m-1}), its source sqrt(A_0) on the first unit. At a given amplification no network
    remembers more; with more amplification another may.

    Examples
    --------
    >>> optimal_delay_line([1.0, 4.0, 1.0]).W.tolist()
    [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.5, 0.0]]
    """
    A = vector("amplification", amplification)
    if not (A > 0).all():
        raise expected("amplification", "positive at every lag", float(A.min()))
    gains = np.sqrt(A[1:] / A[:-1])
    return LinearNetwork(np.diag(gains, -1), math.sqrt(A[0]) * np.eye(len(A))[0])


def feedback_interval(gain: float) -> tuple[float, float]:
    """Return between which feedback weights sqrt(b) a delay line with gain a < 1 amplifies and is stable at any length.

    1 - sqrt(a) < sqrt(b): the chain's norm exceeds 1, so that a signal grows on its way. sqrt(b) < 1 / (4 sqrt(a)): the
    eigenvalues 2 (a b)^(1/4) cos(pi j / (N + 1)) stay below 1 for every N.

    Examples
    --------
    >>> feedback_interval(0.64)
    (0.19999999999999996, 0.3125)
    """
    root = math.sqrt(positive("gain", gain))
    if root >= 1:
        raise expected("gain", "below 1 (above, the line amplifies without feedback)", gain)
    return 1 - root, 1 / (4 * root)


def feedback_delay_line(size: int, gain: float, feedback: float) -> LinearNetwork:
    """Return a delay line whose units also feed back: sub-diagonal sqrt(gain), super-diagonal sqrt(feedback).

    Parameters
    ----------
    size
        N.
    gain
        a, below 1.
    feedback
        b; sqrt(b) has to be inside `feedback_interval`.

    Examples
    --------
    >>> feedback_delay_line(3, gain=0.64, feedback=0.0625).W.tolist()
    [[0.0, 0.25, 0.0], [0.8, 0.0, 0.25], [0.0, 0.8, 0.0]]
    """
    low, high = feedback_interval(gain)
    root = math.sqrt(positive("feedback", feedback))
    if not low < root < high:
        raise UserError(f"sqrt(feedback) must be between {low:.6g} and {high:.6g} for gain={gain:g}, got {root:.6g}")
    line = delay_line(size, gain)
    return LinearNetwork(line.W + root * np.eye(len(line.v), k=1), line.v)


def kerg_matrix(size: int, alpha: float, beta: float = 0.0, d: float = 0.0) -> Float[np.ndarray, "n n"]:
    """Return Kerg's Eq. 3.4.2: d on the diagonal, alpha below it, beta in the rest of the lower triangle.

    Table 5 is about these at N = 100 with the first unit as source. Note that alpha itself stands below the diagonal,
    where the closed form and Proposition 3.4.1 put sqrt(alpha).

    Examples
    --------
    >>> kerg_matrix(3, alpha=1.0, beta=0.5, d=0.2).tolist()
    [[0.2, 0.0, 0.0], [1.0, 0.2, 0.0], [0.5, 1.0, 0.2]]
    """
    size = positive_int("size", size)
    return np.tril(np.full((size, size), float(beta)), -2) + alpha * np.eye(size, k=-1) + d * np.eye(size)


def triangular_fisher_bounds(theta: Any, noise: float = 1.0) -> TriangularBounds:
    r"""Return lower bounds of the Fisher memory curve of a strictly lower triangular matrix from the first unit.

    With :math:`\sqrt{\alpha}` all along the sub-diagonal, :math:`\Theta = D T` with the delay line D and a triangular T
    of unit diagonal (rows 2..N of :math:`\Theta / \sqrt{\alpha}`, and :math:`e_N`), largest singular value sigma:

    .. math::
        J(k) \ge \frac{\alpha^k}{\epsilon \sum_{m \le k} (\alpha \sigma^2)^m}
             \ge \frac{1}{\epsilon \sigma^{2(N-1)}} \frac{\alpha^k (\alpha - 1)}{\alpha^{k+1} - 1}

    The second is Kerg's Proposition 3.4.1, with the 1/epsilon that it lacks; the first is sharper.

    Parameters
    ----------
    theta
        The matrix, N x N.
    noise
        Variance epsilon.

    Examples
    --------
    >>> bounds = triangular_fisher_bounds([[0, 0, 0], [1, 0, 0], [0.5, 1, 0]])
    >>> bounds.sharper.round(4).tolist(), bounds.corrected.round(4).tolist()
    ([1.0, 0.3787, 0.1876], [0.3716, 0.1858, 0.1239])
    """
    theta = square("theta", matrix("theta", theta))
    size, noise = len(theta), positive("noise", noise)
    below = theta.diagonal(-1)
    if (
        size < 2
        or np.triu(theta).any()
        or not (below > 0).all()
        or not np.allclose(below, below[0], rtol=1e-12, atol=0)
    ):
        raise UserError("theta must be strictly lower triangular with one positive number along its sub-diagonal")
    alpha = float(below[0]) ** 2
    factor = np.vstack([theta[1:] / below[0], np.eye(size)[-1]])
    sigma = float(np.linalg.norm(factor, 2))
    k = np.arange(size)
    logs = k * math.log(alpha * sigma**2)
    sharper = np.exp(k * math.log(alpha) - np.logaddexp.accumulate(logs)) / noise
    corrected = delay_line_curve(size, alpha, noise) * math.exp(-2 * (size - 1) * math.log(sigma))
    return TriangularBounds(corrected, sharper, sigma)
