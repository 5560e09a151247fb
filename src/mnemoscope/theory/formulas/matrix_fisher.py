"""Fisher memory of matrix networks on paper: closed forms, bounds, space-time matrices, KL of matrix Gaussians."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from jaxtyping import Float

from mnemoscope.core.arrays import matrix, positive, square
from mnemoscope.core.errors import UserError, choice, expected, positive_int

__all__ = [
    "DynamicRangeBounds",
    "SpaceTime",
    "dynamic_range_bounds",
    "matrix_fisher_bound",
    "matrix_gaussian_kl",
    "normal_matrix_fisher_curve",
    "normal_matrix_fisher_total",
    "space_time_matrices",
]

_NORMAL = 1e-10


class DynamicRangeBounds(NamedTuple):
    """Bounds on the total of a network whose activity stays within +-sqrt(R)."""

    published: float
    sharper: float


class SpaceTime(NamedTuple):
    """J_V(i, j) and J_U(i, j), and the covariance factors that they come from."""

    J_V: Float[np.ndarray, "m m"]
    J_U: Float[np.ndarray, "n n"]
    sigma: Float[np.ndarray, "m m"]
    psi: Float[np.ndarray, "n n"]


def normal_matrix_fisher_curve(
    U: Any, V: Any, W: Any, lags: int, noise: tuple[float, float] = (1.0, 1.0), form: str = "exact"
) -> Float[np.ndarray, " lags"]:
    r"""Return J(0)..J(lags - 1) of X = U^T X V + W s + Z for normal U and V, in closed form.

    .. math::
        J(k) = \frac{1}{\epsilon_1 \epsilon_2} \sum_{ij} |b_{ij}|^2 |\mu_{ij}|^{2k} c_{ij}, \quad
        \mu_{ij} = \lambda_i \nu_j, \quad c_{ij} = 1 - |\mu_{ij}|^2

    with b the source in the eigenbases of U and V, and lambda, nu their eigenvalues. The separable
    covariance of Renanse et al. (2021, Eq. 17 with its missing moduli) has
    :math:`c_{ij} = (1 - |\lambda_i|^2)(1 - |\nu_j|^2)` instead.

    Parameters
    ----------
    U, V
        Normal recurrent matrices with rho(U) rho(V) < 1 (each below 1 for the published form).
    W
        Where the signal enters.
    lags
        How many lags.
    noise
        Variances of rows and columns.
    form
        "exact" or "published".

    Examples
    --------
    >>> normal_matrix_fisher_curve([[0.5]], [[1.0]], [[2.0]], lags=3)
    array([3.    , 0.75  , 0.1875])
    """
    products, height = _modes(U, V, W, form)
    powers = products[:, None] ** (2 * np.arange(positive_int("lags", lags)))
    return height @ powers / _variance(noise)


def normal_matrix_fisher_total(
    U: Any, V: Any, W: Any, noise: tuple[float, float] = (1.0, 1.0), form: str = "exact"
) -> float:
    r"""Return the total of `normal_matrix_fisher_curve` over all lags.

    The exact one is tr(W^T W) / (eps1 eps2) whatever U and V are: relative capacity 1, as for vector networks. The
    published one is Theorem 2,

    .. math::
        \frac{1}{\epsilon_1 \epsilon_2} \sum_{ij}
        \frac{(1 - |\lambda_i|^2)(1 - |\nu_j|^2)}{1 - |\lambda_i \nu_j|^2} |b_{ij}|^2

    Examples
    --------
    >>> round(normal_matrix_fisher_total([[0.5]], [[0.9]], [[1.0]], form="published"), 6)
    0.178683
    """
    products, height = _modes(U, V, W, form)
    return float((height / (1 - products**2)).sum()) / _variance(noise)


def matrix_fisher_bound(W: Any, noise: tuple[float, float] = (1.0, 1.0)) -> float:
    """Return N^2 tr(W^T W) / (eps1 eps2), N^2 the number of units: no total exceeds it (Theorem 3), in either form.

    Examples
    --------
    >>> matrix_fisher_bound([[1.0, 0.0], [0.0, 2.0]])
    20.0
    """
    found = matrix("W", W)
    return found.size * float((found**2).sum()) / _variance(noise)


def dynamic_range_bounds(
    U: Any, V: Any, activity: float, noise: tuple[float, float] = (1.0, 1.0)
) -> DynamicRangeBounds:
    r"""Return what the total of a linear network can be at most when every unit stays within +-sqrt(`activity`).

    The document has Tr(Sigma^-1) Tr(Psi^-1) N^2 R with the separable factors, for the published form of the total: the
    exact total can exceed it. Since the covariance is at least :math:`\epsilon_1 \epsilon_2 I`, J(k) is at most the
    squared norm of the response over :math:`\epsilon_1 \epsilon_2`, and the sum of those norms stays below N^2 R for a
    signal of variance 1: N^2 R / (eps1 eps2) holds for both forms. It is the sharper one where the product of the
    traces, each times its variance, is above 1.

    Parameters
    ----------
    U, V
        Recurrent matrices; the published bound needs both spectral radii below 1 and is infinite otherwise.
    activity
        R, the square of the largest activity of a unit.
    noise
        Variances of rows and columns.

    Examples
    --------
    >>> bounds = dynamic_range_bounds([[0.5, 0.0], [0.0, 0.5]], [[0.5, 0.0], [0.0, 0.5]], activity=1.0)
    >>> round(bounds.published, 6), bounds.sharper
    (9.0, 4.0)
    """
    U, V = square("U", U), square("V", V)
    limit = len(U) * len(V) * positive("activity", activity) / _variance(noise)
    if max(_radius(U), _radius(V)) >= 1:
        return DynamicRangeBounds(float("inf"), limit)
    traces = [float(np.trace(np.linalg.inv(_gramian(one)))) for one in (U, V)]
    return DynamicRangeBounds(traces[0] * traces[1] * limit, limit)


def space_time_matrices(U: Any, V: Any, i: int, j: int, noise: tuple[float, float] = (1.0, 1.0)) -> SpaceTime:
    r"""Return the space-time matrices of Renanse et al. (2021), Eq. 28.

    .. math::
        J_V(i, j) = V^j \Sigma^{-1} V^{iT}, \quad J_U(i, j) = U^i \Psi^{-1} U^{jT}

    Of these :math:`\epsilon_2 \sum_i \mathrm{Tr}\, J_V(i, i) = \epsilon_1 \sum_i \mathrm{Tr}\, J_U(i, i) = N`, and
    :math:`\mathrm{Tr}(W J_V(i, j) W^T J_U(i, j))` is the published Fisher memory matrix (Eq. 13 has U^j for U^i).

    Examples
    --------
    >>> space_time_matrices([[0.5]], [[0.8]], 1, 1).J_U
    array([[0.1875]])
    """
    U, V = square("U", U), square("V", V)
    for name, one in (("U", U), ("V", V)):
        if _radius(one) >= 1:
            raise expected(f"the spectral radius of {name}", "below 1 for its covariance to exist", _radius(one))
    if min(i, j) < 0:
        raise expected("i and j", "lags of at least 0", (i, j))
    _variance(noise)
    psi, sigma = noise[0] * _gramian(U), noise[1] * _gramian(V)
    left = {k: np.linalg.matrix_power(U, k) for k in (i, j)}
    right = {k: np.linalg.matrix_power(V, k) for k in (i, j)}
    return SpaceTime(
        J_V=right[j] @ np.linalg.solve(sigma, right[i].T),
        J_U=left[i] @ np.linalg.solve(psi, left[j].T),
        sigma=sigma,
        psi=psi,
    )


def matrix_gaussian_kl(M1: Any, A1: Any, B1: Any, M2: Any, A2: Any, B2: Any, form: str = "exact") -> float:
    r"""Return the KL divergence, in nats, of two matrix Gaussians with means M and covariances A of rows, B of columns.

    .. math::
        \tfrac12 \Big[ p \log \tfrac{|A_2|}{|A_1|} + n \log \tfrac{|B_2|}{|B_1|} - np
        + \mathrm{Tr}(A_2^{-1} A_1) \mathrm{Tr}(B_2^{-1} B_1) + \mathrm{Tr}(B_2^{-1} D^T A_2^{-1} D) \Big]

    with D = M2 - M1, n x p matrices.

    The main text of Renanse et al. (2021, Lemma 1) names the row covariances Sigma and then uses them where columns
    belong; `form` ``"published"`` evaluates it so, which needs n = p.

    Examples
    --------
    >>> matrix_gaussian_kl([[0.0]], [[1.0]], [[1.0]], [[1.0]], [[1.0]], [[1.0]])
    0.5
    """
    M1, M2 = matrix("M1", M1), matrix("M2", M2)
    if M1.shape != M2.shape:
        raise expected("M2", f"of shape {M1.shape} as M1 is", M2.shape)
    n, p = M1.shape
    A1, A2 = (_covariance(name, one, n) for name, one in (("A1", A1), ("A2", A2)))
    B1, B2 = (_covariance(name, one, p) for name, one in (("B1", B1), ("B2", B2)))
    if choice("form", form, ("exact", "published")) == "published" and n != p:
        raise UserError(f"form='published' multiplies rows with columns and needs square matrices, got {n} x {p}")
    D = M2 - M1
    inner, outer = (A2, B2) if form == "exact" else (B2, A2)
    distance = np.trace(np.linalg.solve(outer, D.T) @ np.linalg.solve(inner, D))
    spread = np.trace(np.linalg.solve(A2, A1)) * np.trace(np.linalg.solve(B2, B1))
    volume = p * (_log_volume(A2) - _log_volume(A1)) + n * (_log_volume(B2) - _log_volume(B1))
    return float(volume - n * p + spread + distance) / 2


def _modes(U: Any, V: Any, W: Any, form: str) -> tuple[Float[np.ndarray, " modes"], Float[np.ndarray, " modes"]]:
    """Return |mu| and the height of J at lag 0 of every pair of eigenvalues."""
    choice("form", form, ("exact", "published"))
    (left, rows), (right, columns) = _eigen("U", U), _eigen("V", V)
    W = matrix("W", W)
    if W.shape != (len(left), len(right)):
        raise expected("W", f"of shape ({len(left)}, {len(right)}) to fit U and V", W.shape)
    energy = np.abs(rows.conj().T @ W @ columns.conj()) ** 2
    products = np.outer(left, right)
    limits = {"exact": products.max(), "published": max(left.max(), right.max())}
    if limits[form] >= 1:
        words = "rho(U) rho(V)" if form == "exact" else "the larger of rho(U) and rho(V)"
        raise expected(words, "below 1", float(limits[form]))
    gains = {"exact": 1 - products**2, "published": np.outer(1 - left**2, 1 - right**2)}
    return products.reshape(-1), (energy * gains[form]).reshape(-1)


def _eigen(name: str, value: Any) -> tuple[Float[np.ndarray, " n"], np.ndarray]:
    """Return the moduli of the eigenvalues of the transpose of a normal matrix, and orthonormal eigenvectors."""
    found = square(name, value)
    commutator = found @ found.T - found.T @ found
    if np.linalg.norm(commutator) > _NORMAL * np.linalg.norm(found) ** 2:
        raise UserError(
            f"{name} must be normal, got ||{name} {name}^T - {name}^T {name}|| = {np.linalg.norm(commutator):.3g}; "
            "mnemoscope.measures.matrix_fisher_memory takes any matrix"
        )
    form, vectors = scipy.linalg.schur(found.T, output="complex")
    return np.abs(np.diagonal(form)), vectors


def _gramian(step: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """Return sum_k U^kT U^k."""
    found: np.ndarray = scipy.linalg.solve_discrete_lyapunov(step.T, np.eye(len(step)))
    return found


def _radius(values: Float[np.ndarray, "n n"]) -> float:
    return float(np.abs(np.linalg.eigvals(values)).max())


def _variance(noise: tuple[float, float]) -> float:
    return positive("noise[0]", noise[0]) * positive("noise[1]", noise[1])


def _covariance(name: str, value: Any, size: int) -> Float[np.ndarray, "n n"]:
    found = square(name, value, size)
    if not np.allclose(found, found.T, rtol=1e-10) or np.linalg.eigvalsh(found)[0] <= 0:
        raise UserError(f"{name} must be a symmetric positive definite covariance")
    return found


def _log_volume(covariance: Float[np.ndarray, "n n"]) -> float:
    return float(np.linalg.slogdet(covariance)[1])
