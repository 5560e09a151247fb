"""Fisher memory of matrix networks, X = U^T X V + W s + Z, without and with a queue of past states that feeds back."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
from jaxtyping import Float

from mnemoscope import measures, theory
from mnemoscope.core.errors import UserError
from mnemoscope.measures.fisher.queue import queue_radius
from mnemoscope.theory.theorems.base import Verdict, theorem
from mnemoscope.theory.theorems.draw import general, normal

Square = Float[np.ndarray, "n n"]
_SLACK = 1 + 1e-9
"""By what factor rounding may break an inequality."""


def _drawn(seed: int, cases: int, *, kind: str = "general") -> list[tuple[Square, Square, Square]]:
    """Return U, V, W of sizes 2 to 5 with spectral radii below 0.95; kind ``"normal"``: normal U and V."""
    random = np.random.default_rng(seed)
    make = normal if kind == "normal" else general
    sizes = random.integers(2, 6, size=cases).tolist()
    radii = random.uniform(0.3, 0.95, size=(cases, 2)).tolist()
    return [
        (make(random, n, r), make(random, n, s), random.standard_normal((n, n)))
        for n, (r, s) in zip(sizes, radii, strict=True)
    ]


def _plain(U: Square, V: Square, W: Square) -> tuple[float, float]:
    """Return the exact and the published total by their definitions: stacked vectors, and Eq. 12 summed over lags."""
    step, w = np.kron(V.T, U.T), W.T.reshape(-1)
    stacked = scipy.linalg.solve_discrete_lyapunov(step, np.eye(W.size))
    psi, sigma = (scipy.linalg.solve_discrete_lyapunov(one.T, np.eye(len(one))) for one in (U, V))
    exact, published, D = 0.0, 0.0, W
    while np.linalg.norm(w) > 1e-9 * np.linalg.norm(W):  # squares: the rest is below 1e-16
        exact += float(w @ np.linalg.solve(stacked, w))
        published += float(np.trace(np.linalg.solve(sigma, D.T) @ np.linalg.solve(psi, D)))
        w, D = step @ w, U.T @ D @ V
    return exact, published


@theorem("matrix-covariance", "renanse2021", "Eq. 9, Theorem 1", severity="wrong result")
def covariance(seed: int) -> Verdict:
    """The covariance of the state is the product of sum_k U^kT U^k (rows) and sum_k V^kT V^k (columns).

    Right: it is sum_k (V^kT V^k) kron (U^kT U^k), without cross terms; the published information is at most the exact
    one.
    Check: one unit by hand, X = 0.5 X 0.5 + s + z; and twenty random networks against stacked vectors and Eq. 12.
    """
    one, printed = (measures.matrix_fisher_memory([[0.5]], [[0.5]], [[1.0]], form=f) for f in ("exact", "published"))
    witness = abs(one.curve[0] - 15 / 16) < 1e-12 and abs(printed.curve[0] - 9 / 16) < 1e-12
    worst, below = 0.0, 0
    for case in _drawn(seed, 20):
        exact, published = _plain(*case)
        worst = max(worst, abs(measures.matrix_fisher_memory(*case).total / exact - 1))
        below += published <= exact * _SLACK
    return Verdict(
        witness and worst < 1e-8 and below == 20,
        21,
        f"U = V = 1/2, W = 1: J(0) = {one.curve[0]:.6g} (published {printed.curve[0]:.6g}); the measure agrees with "
        f"stacked vectors to {worst:.1e}, the published total is below in {below} of 20",
    )


@theorem("matrix-normal-capacity", "renanse2021", "Corollary 2.1", severity="wrong result")
def normal_capacity(seed: int) -> Verdict:
    """Matrix networks with normal convergent U and V remember less than one input's information.

    Vector networks remember all of it.

    Right: their exact relative capacity is 1 for every normal U, V with rho(U) rho(V) < 1.
    Check: twenty pairs of normal matrices, symmetric or turning, from the stacked network's definition alone.
    """
    cases = _drawn(seed, 20, kind="normal")
    totals = [(_plain(*case), float((case[2] ** 2).sum())) for case in cases]
    worst = max(abs(exact / scale - 1) for (exact, _), scale in totals)
    lowest, highest = (choose(published / scale for (_, published), scale in totals) for choose in (min, max))
    return Verdict(
        worst < 1e-8 and highest < 1,
        20,
        f"|exact relative capacity - 1| <= {worst:.1e} where the published formula says {lowest:.4f} to {highest:.4f}",
    )


@theorem("matrix-normal-formula", "renanse2021", "Theorem 2, Eq. 17, 18")
def normal_formula(seed: int) -> Verdict:
    """The published total of normal networks is sum (1-|l|^2)(1-|n|^2)/(1-|l n|^2) |b|^2 (with |.|^2 in Eq. 17 and 19).

    Check: fifteen pairs of normal matrices: the formula against Eq. 12 with its covariances solved for, lag by lag.
    """
    cases = _drawn(seed, 15, kind="normal")
    pairs = [(_plain(*case)[1], theory.normal_matrix_fisher_total(*case, form="published")) for case in cases]
    worst = max(abs(a / b - 1) for a, b in pairs)
    return Verdict(worst < 1e-8, len(cases), f"Eq. 12 summed over lags and Eq. 18 agree to {worst:.1e}")


@theorem("matrix-gauge", "renanse2021", "Theorem 1", severity="wrong result")
def gauge(seed: int) -> Verdict:
    """The published information is a property of the network.

    Right: (U, V) and (c U, V / c) are the same network: the exact value stays, the published one changes.
    Check: one random network, written in two ways.
    """
    U, V, W = _drawn(seed, 1)[0]
    c = 0.5 / np.abs(np.linalg.eigvals(V)).max()  # so that the radius of V becomes 1/2
    first, second = (measures.matrix_fisher_memory(U * 0.5 / a, V * a, W) for a in (1.0, c))
    shown = [math.inf if f.published_total is None else f.published_total for f in (first, second)]
    return Verdict(
        abs(first.total / second.total - 1) < 1e-10 and abs(shown[1] / shown[0] - 1) > 1e-6,
        2,
        f"seed {seed}, c = {1 / c:.4f}: exact {first.total:.8g} and {second.total:.8g}, published {shown[0]:.6g} and "
        f"{shown[1]:.6g}",
    )


@theorem("matrix-stability", "renanse2021", "§2.4", severity="wrong result")
def stability(seed: int) -> Verdict:
    """Both U and V must have a spectral radius below 1.

    Right: rho(U) rho(V) < 1 is enough, and needed.
    Check: twenty pairs with one radius above 1, around rho(U) rho(V) = 1: variance after 400 and 800 steps.
    """
    random = np.random.default_rng(seed)
    wrong, cases = 0, 20
    for case in range(cases):
        product, large = (0.95, 1.0, 1.05)[case % 3], float(random.uniform(1.2, 4))
        U, V = normal(random, 3, 1.0), general(random, 3, product / large)
        U *= large / np.abs(np.linalg.eigvals(U)).max()
        early, late = (_variance(U, V, steps) for steps in (400, 800))
        try:
            measures.matrix_fisher_memory(U, V, np.eye(3))
            accepted = True
        except UserError:
            accepted = False
        finite = late < early * (1 + 1e-9)
        # At product 1 the variance grows by a constant each step. Rounding decides there whether the measure refuses.
        wrong += finite != (product < 1) or (product != 1 and accepted != finite) or (not finite and late < 1.5 * early)
    found = measures.matrix_fisher_memory(4 * np.diag([0.9, 0.3]), np.diag([0.2, 0.1]), np.eye(2))
    return Verdict(
        wrong == 0 and abs(found.relative - 1) < 1e-12,
        cases + 1,
        f"U = diag(3.6, 1.2), V = diag(0.2, 0.1): radius {found.radius:.2f}, relative capacity {found.relative:.6f}; "
        f"{wrong} exceptions among {cases} pairs with products 0.95, 1 and 1.05: finite below 1, growing from 1 on",
    )


def _variance(U: Square, V: Square, steps: int) -> float:
    """Return the summed variance of the state after so many steps of noise, by sum_k |U^k|_F^2 |V^k|_F^2."""
    total, left, right = 0.0, np.eye(len(U)), np.eye(len(V))
    for _ in range(steps):
        total += float((left**2).sum() * (right**2).sum())
        scale = float(np.linalg.norm(left @ U)) / float(np.linalg.norm(left))
        left, right = left @ U / scale, right @ V * scale
    return total


@theorem("matrix-memory-matrix", "renanse2021", "Eq. 13", severity="misprint")
def memory_matrix(seed: int) -> Verdict:
    """J_ij = Tr(Sigma^-1 V^iT W^T U^j Psi^-1 U^jT W V^j).

    Right: the first U^j must be U^i: only then is J_ij symmetric, and equal to Eq. 29.
    Check: one random network, lags 0 to 2: both forms against Eq. 29, and their asymmetry.
    """
    U, V, W = _drawn(seed, 1)[0]
    parts = {(i, j): theory.space_time_matrices(U, V, i, j) for i in range(3) for j in range(3)}
    psi, sigma = parts[0, 0].psi, parts[0, 0].sigma
    u, v = ([np.linalg.matrix_power(one, k) for k in range(3)] for one in (U, V))

    def entry(i: int, j: int, left: int) -> float:
        inner = v[i].T @ W.T @ u[left] @ np.linalg.solve(psi, u[j].T @ W @ v[j])
        return float(np.trace(np.linalg.solve(sigma, inner)))

    right = max(abs(entry(i, j, i) - np.trace(W @ p.J_V @ W.T @ p.J_U)) for (i, j), p in parts.items())
    printed, repaired = abs(entry(0, 1, 1) - entry(1, 0, 0)), abs(entry(0, 1, 0) - entry(1, 0, 1))
    scale = abs(entry(0, 0, 0))
    return Verdict(
        right < 1e-9 * scale and repaired < 1e-9 * scale < printed,
        9,
        f"seed {seed}: J_01 - J_10 = {printed:.4g} as printed, {repaired:.1e} with U^i",
    )


@theorem("matrix-source", "renanse2021", "§2.4.2", severity="wrong result")
def source(_: int) -> Verdict:
    """The published relative capacity does not depend on W.

    Right: it does; for normal U, V the exact one does not.
    Check: one network by hand with two sources.
    """
    U = np.diag([0.9, 0.1])
    found = [measures.matrix_fisher_memory(U, U, np.diag(one)) for one in ([1.0, 0.0], [0.0, 1.0])]
    shown, exact = [f.published_relative or 0.0 for f in found], max(abs(f.relative - 1) for f in found)
    return Verdict(
        abs(shown[0] - shown[1]) > 0.1 and exact < 1e-12,
        2,
        f"U = V = diag(0.9, 0.1): published {shown[0]:.4f} for W = e1 e1^T, {shown[1]:.4f} for e2 e2^T; exact 1",
    )


@theorem("matrix-bound", "renanse2021", "Theorem 3")
def bound(seed: int) -> Verdict:
    """The relative capacity is at most N^2, in the published and exact form.

    Check: fifteen random networks, and two delay lines with gain 5, which come near to it.
    """
    line, corner = 5 * np.eye(4, k=1), np.diag([1.0, 0, 0, 0])
    whole = np.random.default_rng(seed).standard_normal((4, 4))
    cases = [*_drawn(seed, 15), (line, line, whole), (line, line, corner)]
    found = [measures.matrix_fisher_memory(*case) for case in cases]
    share = max(f.total / f.bound for f in found)
    below = all((f.published_total or 0.0) <= f.bound for f in found)
    return Verdict(share <= _SLACK and below, len(cases), f"the largest total is {share:.4f} of its bound")


@theorem("matrix-trace", "renanse2021", "Eq. 28 ff.")
def trace(seed: int) -> Verdict:
    """eps2 sum_i Tr J_V(i,i) = eps1 sum_i Tr J_U(i,i) = N.

    Check: four random networks with noise (2, 1/2), summed over 160 lags.
    """
    worst, cases = 0.0, _drawn(seed, 4)
    for U, V, _ in cases:
        found = [theory.space_time_matrices(0.8 * U, 0.8 * V, i, i, noise=(2.0, 0.5)) for i in range(160)]
        sums = 0.5 * sum(np.trace(f.J_V) for f in found), 2.0 * sum(np.trace(f.J_U) for f in found)
        worst = max(worst, *(abs(one / len(U) - 1) for one in sums))
    return Verdict(worst < 1e-9, len(cases), f"both sums miss N by at most {worst:.1e}, relatively")


@theorem("matrix-dynamic-range", "renanse2021", "§2.5", severity="missing condition")
def dynamic_range(seed: int) -> Verdict:
    """With activity within +-sqrt(R) the capacity is below Tr(Sigma^-1) Tr(Psi^-1) N^2 R.

    Right: it bounds the published total of linear networks only; N^2 R / (eps1 eps2) bounds the exact one too.
    Check: one unit by hand, and twelve random networks at the least R that their mean square allows.
    """
    one = measures.matrix_fisher_memory([[0.9]], [[0.9]], [[1.0]])
    tight = 2 / (1 - 0.9**4)  # mean square of the state: signal and noise of variance 1
    bounds = theory.dynamic_range_bounds([[0.9]], [[0.9]], tight)
    held, cases = 0, _drawn(seed, 12)
    for U, V, W in cases:
        w = W.T.reshape(-1)
        square = scipy.linalg.solve_discrete_lyapunov(np.kron(V.T, U.T), np.eye(W.size) + np.outer(w, w))
        found, limit = (
            measures.matrix_fisher_memory(U, V, W),
            theory.dynamic_range_bounds(U, V, float(np.trace(square)) / W.size),
        )
        held += (found.published_total or 0.0) <= limit.published and found.total <= limit.sharper
    return Verdict(
        bounds.published < one.total <= bounds.sharper and held == len(cases),
        len(cases) + 1,
        f"U = V = 0.9, W = 1, R = {tight:.4f}: total {one.total:.4f} above {bounds.published:.4f}, below "
        f"{bounds.sharper:.4f}; the corrected statement held in {held} of {len(cases)}",
    )


@theorem("matrix-gaussian-kl", "renanse2021", "Lemma 1", severity="misprint")
def kl(seed: int) -> Verdict:
    """The KL divergence of matrix Gaussians as the main text has it, Sigma of the rows where that of columns belongs.

    Right: the form of Appendix A, which is the KL divergence of the stacked vectors.
    Check: one pair of 2 x 2 Gaussians against the divergence of their stacked vectors.
    """
    random = np.random.default_rng(seed)
    means, roots = random.standard_normal((2, 2, 2)), random.standard_normal((4, 2, 2))
    A1, A2, B1, B2 = (root @ root.T + 0.2 * np.eye(2) for root in roots)
    C1, C2, d = np.kron(B1, A1), np.kron(B2, A2), (means[1] - means[0]).T.reshape(-1)
    volume = np.linalg.slogdet(C2)[1] - np.linalg.slogdet(C1)[1]
    truth = (volume - 4 + np.trace(np.linalg.solve(C2, C1)) + d @ np.linalg.solve(C2, d)) / 2
    pair = (means[0], A1, B1, means[1], A2, B2)
    right, printed = (theory.matrix_gaussian_kl(*pair, form=form) for form in ("exact", "published"))
    return Verdict(
        abs(right / truth - 1) < 1e-10 and abs(printed / truth - 1) > 1e-6,
        1,
        f"seed {seed}, 2 x 2: stacked {truth:.6f}, appendix {right:.6f}, main text {printed:.6f}",
    )


@theorem("queue-stability", "renanse2021", "§3.2", severity="wrong result")
def queue_stability(seed: int) -> Verdict:
    """With one slot of weight 1 the network has an asymptotic memory.

    Right: no such network is stable: per eigenvalue mu the roots of z^2 - mu z - 1 have product -1; smaller weights can
    be.
    Check: twenty random networks and U = V = 0 with weight 1, and one with weight 0.3: radii of the companion matrix.
    """
    cases = _drawn(seed, 20)
    radii = [queue_radius(U, V, (1.0,)) for U, V, _ in cases]
    empty = queue_radius(np.zeros((2, 2)), np.zeros((2, 2)), (1.0,))
    stable = queue_radius(np.diag([0.5, 0.2]), np.diag([0.5, 0.2]), (0.3,))
    return Verdict(
        min(radii) >= 1 - 1e-12 and abs(empty - 1) < 1e-12 and stable < 1,
        len(cases) + 2,
        f"smallest radius of {len(cases)} drawn {min(radii):.6f}, of U = V = 0 {empty:.6f}; weight 0.3 with "
        f"U = V = diag(0.5, 0.2): {stable:.4f}",
    )


@theorem("queue-series", "renanse2021", "Theorem 4, Eq. 40, 42", severity="wrong result")
def queue_series(_: int) -> Verdict:
    """The memory with one slot is given by the infinite series over m.

    Right: its terms grow by 1 / (1 - rho^2) > 1 each, and Eq. 42 lacks the slot's time shift; the finite horizon is
    exact.
    Check: one network by hand: terms and totals of the series at m_max = 10, 20, 40, and 30 steps exactly.
    """
    U, V, W = np.diag([0.8, 0.3]), np.diag([0.7, 0.2]), np.ones((2, 2))
    found = [measures.queue_fisher_memory(U, V, W, form="published", m_max=m) for m in (10, 20, 40)]
    terms = found[-1].terms
    growing = terms is not None and bool((terms[:2, -1] > terms[:2, -2]).all())
    totals = ", ".join(f"{f.total:.4g}" for f in found)
    exact = measures.queue_fisher_memory(U, V, W, weights=(1.0,), horizon=30)
    return Verdict(
        growing and all(f.diverges for f in found) and not exact.stable,
        4,
        f"U = diag(.8, .3), V = diag(.7, .2), W = 1: totals at m_max = 10, 20, 40 are {totals} and fall on; 30 "
        f"steps, exactly: {exact.total:.4f}",
    )


@theorem("queue-figures", "renanse2021", "Fig. 3, 4", severity="wrong result")
def queue_figures(seed: int) -> Verdict:
    """By Theorem 4 a slot of memory raises the curve of normal networks.

    Right: the published form never exceeds the published curve without memory, by Cauchy-Schwarz.
    Check: twelve normal networks: the published curve with a slot against the one without, lag by lag.
    """
    held, cases = 0, _drawn(seed, 12, kind="normal")
    for case in cases:
        plain = measures.matrix_fisher_memory(*case, form="published").curve
        queue = measures.queue_fisher_memory(*case, form="published", m_max=8).curve
        length = min(len(plain), len(queue))
        held += bool((queue[:length] <= plain[:length] * _SLACK).all())
    return Verdict(
        held == len(cases), len(cases), f"at no lag above the curve without memory in {held} of {len(cases)}"
    )


@theorem("queue-gain", "renanse2021", "§3.2", severity="wrong result")
def queue_gain(seed: int) -> Verdict:
    """One slot of memory raises the capacity, by up to four times.

    Right: trace(J^s) = N^2 with or without the queue, so what one source gains others lose; normal networks gain
    nothing.
    Check: eight normal networks; and all nine sources of one general 3 x 3 network, with and without a slot of 0.3.
    """
    random = np.random.default_rng(seed)
    normal = [measures.queue_fisher_memory(0.6 * U, V, W) for U, V, W in _drawn(seed, 8, kind="normal")]
    worst = max(abs(f.relative - 1) for f in normal)
    U, V = general(random, 3, 0.5), general(random, 3, 0.8)
    sources = np.eye(9).reshape(9, 3, 3)
    sums = [sum(measures.queue_fisher_memory(U, V, W, weights=(a,)).total for W in sources) for a in (0.0, 0.3)]
    return Verdict(
        worst < 1e-10 and all(abs(one / 9 - 1) < 1e-9 for one in sums),
        len(normal) + 18,
        f"normal: |relative - 1| <= {worst:.1e}; general 3 x 3, all nine sources: {sums[0]:.9f} without, "
        f"{sums[1]:.9f} with a slot of 0.3",
    )


@theorem("queue-joint", "", "after Renanse et al. 2021, §3")
def queue_joint(seed: int) -> Verdict:
    """The last two states together hold more than the last one: summed over all sources, 2 N^2.

    Proof: the sum is the trace of C^-1 C, with C the covariance of both states (which has an inverse: the latest noise
    moves the last state alone, the one before it the other). More variables never hold less.

    Check: all six sources of one 3 x 2 network with a slot of 0.3.
    """
    random = np.random.default_rng(seed)
    U, V = general(random, 3, 0.5), general(random, 2, 0.8)
    found = [measures.queue_fisher_memory(U, V, W) for W in np.eye(6).reshape(6, 3, 2)]
    total = sum(f.joint_total or 0.0 for f in found)
    grows = all((f.joint_total or 0.0) >= f.total for f in found)
    evidence = f"3 x 2 units, all six sources: {total:.9f} of 12, each at least its own"
    return Verdict(grows and abs(total / 12 - 1) < 1e-9, 6, evidence)
