"""Claims about the Fisher memory of vector networks: what it is, and Kerg's Table 5 (Kerg §2.6, §3.4, app. A.2)."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from mnemoscope.measures.fisher.vector import FisherMemory, fisher_memory
from mnemoscope.studies.claims.base import Verdict, claim
from mnemoscope.theory.formulas.fisher import (
    TABLE_5,
    delay_line,
    delay_line_curve,
    kerg_matrix,
)

__all__ = ["from_first", "stable", "turn"]

_ROUNDING = 1e-9


def stable(random: np.random.Generator, size: int) -> Float[np.ndarray, "n n"]:
    """Draw a stable matrix, far from normal or not so far."""
    W = random.standard_normal((size, size)) * random.choice([1.0, 4.0], size=(size, size))
    return np.asarray(W * random.uniform(0.2, 0.98) / np.abs(np.linalg.eigvals(W)).max())


def turn(random: np.random.Generator, size: int) -> Float[np.ndarray, "n n"]:
    """Draw an orthogonal matrix."""
    return np.linalg.qr(random.standard_normal((size, size)))[0]


def from_first(W: Float[np.ndarray, "n n"], noise: float = 1.0) -> FisherMemory:
    """Measure a network whose source is its first unit."""
    return fisher_memory(W, np.eye(len(W))[0], noise=noise)


@claim(
    "kerg-fisher-trace",
    "Kerg §2.6",
    "the spatial Fisher matrix has trace N / eps, so that no total exceeds N / eps for a unit input",
    "proved",
)
def trace(seed: int) -> Verdict:
    """Measure random networks."""
    random = np.random.default_rng(seed)
    worst, exceeded, cases = 0.0, 0, 20
    for _ in range(cases):
        size, noise = int(random.integers(1, 12)), float(random.uniform(0.1, 5))
        v = random.standard_normal(size)
        found = fisher_memory(stable(random, size), v / np.linalg.norm(v), noise)
        worst = max(worst, abs(float(np.trace(found.spatial)) * noise / size - 1))
        exceeded += found.total > size / noise * (1 + _ROUNDING)
    return Verdict(worst < _ROUNDING and not exceeded, cases, f"eps tr(J^s) / N differs from 1 by at most {worst:.1e}")


@claim(
    "kerg-fisher-normal",
    "Kerg §2.6",
    "for normal W the total is 1 / eps, whatever the unit input",
    "proved",
)
def normal(seed: int) -> Verdict:
    """Draw normal matrices: an orthogonal similarity of scaled rotations."""
    random = np.random.default_rng(seed)
    worst, cases = 0.0, 20
    for _ in range(cases):
        pairs, noise = int(random.integers(1, 6)), float(random.uniform(0.1, 5))
        Q, v = turn(random, 2 * pairs), random.standard_normal(2 * pairs)
        W = np.zeros((2 * pairs, 2 * pairs))
        for i in range(0, 2 * pairs, 2):
            (c, s), r = np.sin(random.uniform(0, 7) + np.array([math.pi / 2, 0])), random.uniform(0, 0.99)
            W[i : i + 2, i : i + 2] = r * np.array([[c, -s], [s, c]])
        worst = max(worst, abs(fisher_memory(Q @ W @ Q.T, v / np.linalg.norm(v), noise).total * noise - 1))
    return Verdict(worst < _ROUNDING, cases, f"eps J_tot differs from 1 by at most {worst:.1e}")


@claim(
    "kerg-fisher-trajectory",
    "Kerg Eq. 3.4.3",
    "the Fisher memory matrix conditions on the whole trajectory of states",
    "false",
    "it conditions on the last state only: the trajectory holds |v|^2 / eps about every input, whatever lag and W",
)
def trajectory(seed: int) -> Verdict:
    """Build the joint Gaussian of all states and of the last one, and compare what they hold."""
    random = np.random.default_rng(seed)
    size, steps, noise = 3, 8, 0.5
    W, v = stable(random, size), random.standard_normal(size)
    powers = [np.linalg.matrix_power(W, k) for k in range(steps)]
    zero = np.zeros((size, size))
    response = np.block([[powers[i - j] if i >= j else zero for j in range(steps)] for i in range(steps)])
    means = response @ np.kron(np.eye(steps), v[:, None])
    joint = np.diag(means.T @ np.linalg.solve(noise * response @ response.T, means))[::-1]
    last = fisher_memory(W, v, noise, horizon=steps).curve
    flat = float(np.abs(joint * noise / (v @ v) - 1).max())
    return Verdict(
        bool(flat < _ROUNDING and last[-1] < 0.5 * joint[-1]),
        steps,
        f"lag {steps - 1}: the trajectory holds {joint[-1]:.6g} = |v|^2/eps, the last state {last[-1]:.6g}",
    )


@claim(
    "kerg-fisher-input-noise",
    "Kerg §3.4.2",
    "the noise enters with the scalar input, x_t = s_t + xi_t",
    "false",
    "the delay line's closed form needs noise on every unit: with noise on the input alone J(k) is 1 / eps for k < N",
)
def input_noise(seed: int) -> Verdict:
    """Compute a delay line's curve with noise along v only."""
    gain = float(np.random.default_rng(seed).uniform(0.6, 1.6))
    W, v = delay_line(6, gain)
    signals = np.stack([np.linalg.matrix_power(W, k) @ v for k in range(6)], axis=1)
    alone = np.diag(signals.T @ np.linalg.solve(signals @ signals.T, signals))
    closed = delay_line_curve(6, gain)
    everywhere = fisher_memory(W, v).curve
    return Verdict(
        bool(np.allclose(alone, 1) and np.allclose(everywhere, closed, rtol=_ROUNDING)),
        6,
        f"a={gain:.4g}, lag 5: {alone[5]:.6g} with noise on the input, {everywhere[5]:.6g} on every unit (closed form "
        f"{closed[5]:.6g})",
    )


@claim(
    "kerg-alpha",
    "Kerg §3.4, Table 5",
    "alpha of Eq. 3.4.2 and Table 5 is the alpha of the closed form of the delay line",
    "false",
    "Table 5 has alpha below the diagonal, the closed form and Proposition 3.4.1 sqrt(alpha): theirs is alpha^2",
)
def two_alphas(seed: int) -> Verdict:
    """Compare both readings with the table's rows of plain delay lines."""
    del seed
    own = [from_first(kerg_matrix(100, alpha)).total for alpha in (0.95, 1.05)]
    read = [float(delay_line_curve(100, alpha).sum()) for alpha in (0.95, 1.05)]
    squared = [float(delay_line_curve(100, alpha**2).sum()) for alpha in (0.95, 1.05)]
    return Verdict(
        bool(np.allclose(own, squared, rtol=_ROUNDING) and not np.allclose(own, read, rtol=0.01)),
        2,
        f"alpha=1.05: Table 5 {TABLE_5[1.05, 0.0, 0.0]}, closed form with alpha {read[1]:.4f}, with alpha^2 "
        f"{squared[1]:.4f}",
    )


@claim(
    "kerg-table-5",
    "Kerg Table 5",
    "the totals of the twelve triangular matrices with N = 100",
    "false",
    "seven rows are right; with d = 0.2 the totals are 11.93939, 16.29823, 20.83706 (beta = 0) and 12.08953, 16.39095, "
    "20.88466 (beta = 0.005): the covariance's condition number is up to 1e24 there, and must never be inverted",
)
def table_5(seed: int) -> Verdict:
    """Compute all rows, to at least ten digits, and round them as the table does."""
    del seed
    found = {row: from_first(kerg_matrix(100, *row)) for row in TABLE_5}
    wrong = {row: one.total for row, one in found.items() if float(f"{one.total:.3g}") != TABLE_5[row]}
    sure = all((one.digits or 0) >= 10 for one in found.values())
    shown = ", ".join(f"{total:.5f} (published {TABLE_5[row]:g})" for row, total in wrong.items())
    expected = len(wrong) == 5 and all(d == 0.2 for _, _, d in wrong)
    return Verdict(sure and expected, len(found), f"{len(wrong)} of 12 rows differ in three digits: {shown}")
