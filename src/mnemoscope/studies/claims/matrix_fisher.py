"""Claims of the matrix-network document on Fisher memory and its bounds (Matrix §2)."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from jaxtyping import Float

from mnemoscope.measures.fisher.matrix import matrix_fisher_memory
from mnemoscope.studies.claims.base import Verdict, claim
from mnemoscope.theory.formulas.matrix_fisher import (
    dynamic_range_bounds,
    matrix_gaussian_kl,
    normal_matrix_fisher_total,
    space_time_matrices,
)

__all__ = ["SLACK", "drawn", "general"]

Square = Float[np.ndarray, "n n"]
SLACK = 1 + 1e-9
"""By what factor rounding may break an inequality."""


def general(random: np.random.Generator, n: int, radius: float) -> Square:
    """Draw a Gaussian matrix of a given spectral radius."""
    found = random.standard_normal((n, n))
    scaled: np.ndarray = found * (radius / np.abs(np.linalg.eigvals(found)).max())
    return scaled


def _normal(random: np.random.Generator, n: int, radius: float) -> Square:
    frame = scipy.linalg.qr(random.standard_normal((n, n)))[0]
    found: np.ndarray = frame @ np.diag(random.uniform(-radius, radius, n)) @ frame.T
    return found


def drawn(seed: int, cases: int, *, normal: bool = False) -> list[tuple[Square, Square, Square]]:
    """Draw U, V, W of sizes 2 to 5 with spectral radii below 0.95."""
    random = np.random.default_rng(seed)
    make = _normal if normal else general
    sizes = random.integers(2, 6, size=cases)
    return [
        (make(random, n, random.uniform(0.3, 0.95)), make(random, n, random.uniform(0.3, 0.95)), _source(random, n))
        for n in sizes.tolist()
    ]


def _source(random: np.random.Generator, n: int) -> Square:
    return random.standard_normal((n, n))


@claim(
    "matrix-covariance",
    "Matrix Eq. 9, Theorem 1",
    "the covariance of the state is the product of sum_k U^kT U^k (rows) and sum_k V^kT V^k (columns)",
    "false",
    "it is sum_k (V^kT V^k) kron (U^kT U^k), without cross terms; the published information is at most the exact one",
)
def _covariance(seed: int) -> Verdict:
    """Witness of one unit: X = 0.5 X 0.5 + s + z has variance 1 / (1 - 1/16), not (4/3)^2."""
    one = matrix_fisher_memory([[0.5]], [[0.5]], [[1.0]])
    printed = matrix_fisher_memory([[0.5]], [[0.5]], [[1.0]], form="published")
    witness = abs(one.curve[0] - 15 / 16) < 1e-12 and abs(printed.curve[0] - 9 / 16) < 1e-12
    found = [matrix_fisher_memory(*case) for case in drawn(seed, 20)]
    below = sum((f.published_total or 0.0) <= f.total * SLACK for f in found)
    return Verdict(
        witness and below == 20,
        21,
        f"U = V = 1/2, W = 1: J(0) = {one.curve[0]:.6g} (published {printed.curve[0]:.6g}); published below in {below} "
        "of 20",
    )


@claim(
    "matrix-normal-capacity",
    "Matrix Corollary 2.1",
    "matrix networks with normal convergent U and V remember less than one input's information, unlike vector networks",
    "false",
    "their exact relative capacity is 1 for every normal U, V with rho(U) rho(V) < 1",
)
def _normal_capacity(seed: int) -> Verdict:
    found = [matrix_fisher_memory(*case) for case in drawn(seed, 20, normal=True)]
    worst = max(abs(f.relative - 1) for f in found)
    lowest = min(f.published_relative or 1.0 for f in found)
    return Verdict(
        worst < 1e-11 and lowest < 1,
        20,
        f"|exact relative capacity - 1| <= {worst:.1e} where the published formula says as little as {lowest:.4f}",
    )


@claim(
    "matrix-normal-formula",
    "Matrix Theorem 2, Eq. 17, 18",
    "the published total of normal networks is sum (1-|l|^2)(1-|n|^2)/(1-|l n|^2) |b|^2 (with |.|^2 in Eq. 17 and 19)",
    "proved",
)
def _normal_formula(seed: int) -> Verdict:
    cases = drawn(seed, 15, normal=True)
    pairs = [
        (matrix_fisher_memory(*case, form="published").total, normal_matrix_fisher_total(*case, form="published"))
        for case in cases
    ]
    worst = max(abs(a / b - 1) for a, b in pairs)
    return Verdict(worst < 1e-10, len(cases), f"Eq. 12 summed and Eq. 18 agree to {worst:.1e}")


@claim(
    "matrix-gauge",
    "Matrix Theorem 1",
    "the published information is a property of the network",
    "false",
    "(U, V) and (c U, V / c) are the same network: the exact value stays, the published one changes",
)
def _gauge(seed: int) -> Verdict:
    U, V, W = drawn(seed, 1)[0]
    c = 0.5 / np.abs(np.linalg.eigvals(V)).max()  # so that the radius of V becomes 1/2
    first, second = matrix_fisher_memory(U * 0.5, V, W), matrix_fisher_memory(U * 0.5 / c, V * c, W)
    same = abs(first.total / second.total - 1) < 1e-10
    shown = [f.published_total if f.published_total is not None else float("inf") for f in (first, second)]
    return Verdict(
        same and abs(shown[1] / shown[0] - 1) > 1e-6,
        2,
        f"seed {seed}, c = {1 / c:.4f}: exact {first.total:.8g} and {second.total:.8g}, published {shown[0]:.6g} and "
        f"{shown[1]:.6g}",
    )


@claim(
    "matrix-stability",
    "Matrix §2.4",
    "both U and V must have a spectral radius below 1",
    "false",
    "rho(U) rho(V) < 1 is enough, and needed",
)
def _stability(seed: int) -> Verdict:
    found = matrix_fisher_memory(4 * np.diag([0.9, 0.3]), np.diag([0.2, 0.1]), np.eye(2))
    finite = abs(found.relative - 1) < 1e-12
    return Verdict(
        finite,
        1,
        f"U = diag(3.6, 1.2), V = diag(0.2, 0.1): radius {found.radius:.2f}, relative capacity {found.relative:.6f}",
    )


@claim(
    "matrix-memory-matrix",
    "Matrix Eq. 13",
    "J_ij = Tr(Sigma^-1 V^iT W^T U^j Psi^-1 U^jT W V^j)",
    "false",
    "the first U^j must be U^i: only then is J_ij symmetric, and equal to Eq. 29",
)
def _memory_matrix(seed: int) -> Verdict:
    U, V, W = drawn(seed, 1)[0]
    parts = {(i, j): space_time_matrices(U, V, i, j) for i in range(3) for j in range(3)}
    psi, sigma = parts[0, 0].psi, parts[0, 0].sigma
    u, v = ([np.linalg.matrix_power(one, k) for k in range(3)] for one in (U, V))

    def entry(i: int, j: int, left: int) -> float:
        inner = v[i].T @ W.T @ u[left] @ np.linalg.solve(psi, u[j].T @ W @ v[j])
        return float(np.trace(np.linalg.solve(sigma, inner)))

    right = max(abs(entry(i, j, i) - np.trace(W @ p.J_V @ W.T @ p.J_U)) for (i, j), p in parts.items())
    printed = abs(entry(0, 1, 1) - entry(1, 0, 0))
    repaired = abs(entry(0, 1, 0) - entry(1, 0, 1))
    scale = abs(entry(0, 0, 0))
    return Verdict(
        right < 1e-9 * scale and repaired < 1e-9 * scale < printed,
        9,
        f"seed {seed}: J_01 - J_10 = {printed:.4g} as printed, {repaired:.1e} with U^i",
    )


@claim(
    "matrix-source",
    "Matrix §2.4.2",
    "the published relative capacity does not depend on W",
    "false",
    "it does; for normal U, V the exact one does not",
)
def _source_matters(seed: int) -> Verdict:
    U, V = np.diag([0.9, 0.1]), np.diag([0.9, 0.1])
    found = [matrix_fisher_memory(U, V, np.diag(one)) for one in ([1.0, 0.0], [0.0, 1.0])]
    shown = [f.published_relative or 0.0 for f in found]
    exact = max(abs(f.relative - 1) for f in found)
    return Verdict(
        abs(shown[0] - shown[1]) > 0.1 and exact < 1e-12,
        2,
        f"U = V = diag(0.9, 0.1): published {shown[0]:.4f} for W = e1 e1^T, {shown[1]:.4f} for e2 e2^T; exact 1",
    )


@claim(
    "matrix-bound",
    "Matrix Theorem 3",
    "the relative capacity is at most N^2, in the published and exact form",
    "proved",
)
def _bound(seed: int) -> Verdict:
    random = np.random.default_rng(seed)
    line = 5 * np.eye(4, k=1)
    cases = [*drawn(seed, 15), (line, line, _source(random, 4)), (line, line, np.eye(4)[:, :1] @ np.eye(4)[:1])]
    found = [matrix_fisher_memory(*case) for case in cases]
    share = max(f.total / f.bound for f in found)
    below = all((f.published_total or 0.0) <= f.bound for f in found)
    return Verdict(share <= SLACK and below, len(cases), f"the largest total is {share:.4f} of its bound")


@claim(
    "matrix-trace",
    "Matrix Eq. 28 ff.",
    "eps2 sum_i Tr J_V(i,i) = eps1 sum_i Tr J_U(i,i) = N",
    "proved",
)
def _trace(seed: int) -> Verdict:
    worst = 0.0
    cases = drawn(seed, 4)
    for U, V, _ in cases:
        found = [space_time_matrices(0.8 * U, 0.8 * V, i, i, noise=(2.0, 0.5)) for i in range(160)]
        sums = 0.5 * sum(np.trace(f.J_V) for f in found), 2.0 * sum(np.trace(f.J_U) for f in found)
        worst = max(worst, *(abs(one / len(U) - 1) for one in sums))
    return Verdict(worst < 1e-9, len(cases), f"both sums miss N by at most {worst:.1e}, relatively")


@claim(
    "matrix-dynamic-range",
    "Matrix §2.5",
    "with activity within +-sqrt(R) the capacity is below Tr(Sigma^-1) Tr(Psi^-1) N^2 R",
    "false",
    "it bounds the published total of linear networks only; N^2 R / (eps1 eps2) bounds the exact one too",
)
def _dynamic_range(seed: int) -> Verdict:
    one = matrix_fisher_memory([[0.9]], [[0.9]], [[1.0]])
    tight = 2 / (1 - 0.9**4)  # mean square of the state: signal and noise of variance 1
    bounds = dynamic_range_bounds([[0.9]], [[0.9]], tight)
    witness = one.total > bounds.published and one.total <= bounds.sharper
    held = 0
    cases = drawn(seed, 12)
    for U, V, W in cases:
        found = matrix_fisher_memory(U, V, W)
        limit = dynamic_range_bounds(U, V, _mean_square(U, V, W))
        held += (found.published_total or 0.0) <= limit.published and found.total <= limit.sharper
    return Verdict(
        witness and held == len(cases),
        len(cases) + 1,
        f"U = V = 0.9, W = 1, R = {tight:.4f}: total {one.total:.4f} above {bounds.published:.4f}, below "
        f"{bounds.sharper:.4f}; the corrected statement held in {held} of {len(cases)}",
    )


def _mean_square(U: Square, V: Square, W: Square) -> float:
    """Return the mean square of a unit for signal and noise of variance 1: the least R that a network can have."""
    step, w = np.kron(V.T, U.T), W.T.reshape(-1)
    start = np.eye(W.size) + np.outer(w, w)
    return float(np.trace(scipy.linalg.solve_discrete_lyapunov(step, start))) / W.size


@claim(
    "matrix-gaussian-kl",
    "Matrix Lemma 1",
    "as the main text states it, with the row covariance Sigma where the column covariance belongs",
    "false",
    "the form of Appendix A, which is the KL divergence of the stacked vectors",
)
def _kl(seed: int) -> Verdict:
    random = np.random.default_rng(seed)
    means = random.standard_normal((2, 2, 2))
    roots = random.standard_normal((4, 2, 2))
    A1, A2, B1, B2 = (root @ root.T + 0.2 * np.eye(2) for root in roots)
    C1, C2, d = np.kron(B1, A1), np.kron(B2, A2), (means[1] - means[0]).T.reshape(-1)
    volume = np.linalg.slogdet(C2)[1] - np.linalg.slogdet(C1)[1]
    truth = (volume - 4 + np.trace(np.linalg.solve(C2, C1)) + d @ np.linalg.solve(C2, d)) / 2
    right = matrix_gaussian_kl(means[0], A1, B1, means[1], A2, B2)
    printed = matrix_gaussian_kl(means[0], A1, B1, means[1], A2, B2, form="published")
    return Verdict(
        abs(right / truth - 1) < 1e-10 and abs(printed / truth - 1) > 1e-6,
        1,
        f"seed {seed}, 2 x 2: stacked {truth:.6f}, appendix {right:.6f}, main text {printed:.6f}",
    )
