"""Fisher memory of vector networks, h = W h + v s + z: its trace, normal matrices, and the tables of Kerg's thesis."""

from __future__ import annotations

import numpy as np

from mnemoscope import measures, theory
from mnemoscope.core.numbers import number
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.draw import normal, stable
from mnemoscope.theory.theorems.view import NetworkView

_ROUNDING = 1e-9


@theorem(
    "kerg-fisher-trace",
    "ganguli2008",
    "restated in Kerg 2022, §2.6",
    "The spatial Fisher matrix has trace N / eps, so that no total exceeds N / eps for a unit input.",
)
def trace(seed: int) -> Verdict:
    """Twenty stable matrices of up to 11 units, noise 0.1 to 5, against the closed trace."""
    random = np.random.default_rng(seed)
    worst, exceeded, cases = 0.0, 0, 20
    for _ in range(cases):
        size, noise = int(random.integers(1, 12)), float(random.uniform(0.1, 5))
        v = random.standard_normal(size)
        found = measures.fisher_memory(stable(random, size), v / np.linalg.norm(v), noise)
        worst = max(worst, abs(float(np.trace(found.spatial)) * noise / size - 1))
        exceeded += found.total > size / noise * (1 + _ROUNDING)
    return Verdict(worst < _ROUNDING and not exceeded, cases, f"eps tr(J^s) / N differs from 1 by at most {worst:.1e}")


@trace.about("fisher", lambda s: s.linear or (s.first_order and not s.complex))
def _(s: NetworkView) -> Instance:
    # Along any trajectory sum_k tr(P_k^T C^-1 P_k) = tr(C^-1 C), so J_tot <= N max |b_t|^2.
    size = s.state_size or 0
    value = size * s.input_norm**2
    text = (
        f"Its total Fisher memory is at most N b^2 = {number(size)} x {number(s.input_norm**2)} = {number(value)} for "
        f"every unit input: one moves the state by at most b = {number(s.input_norm)}, and summed over all directions "
        f"of a state of N numbers the total is N, at noise 1."
    )
    return Instance(text, value, "bound")


@theorem(
    "kerg-fisher-normal",
    "ganguli2008",
    "restated in Kerg 2022, §2.6",
    "For normal W the total is 1 / eps, whatever the unit input.",
)
def of_normal(seed: int) -> Verdict:
    """Twenty scaled rotations of up to 10 units in random frames, random unit inputs, noise 0.1 to 5."""
    random = np.random.default_rng(seed)
    worst, cases = 0.0, 20
    for _ in range(cases):
        size, noise = int(random.integers(1, 11)), float(random.uniform(0.1, 5))
        v = random.standard_normal(size)
        total = measures.fisher_memory(normal(random, size, 0.99), v / np.linalg.norm(v), noise).total
        worst = max(worst, abs(total * noise - 1))
    return Verdict(worst < _ROUNDING, cases, f"eps J_tot differs from 1 by at most {worst:.1e}")


@of_normal.about("fisher", lambda s: s.linear and s.layers == 1 and s.normal)
def _(s: NetworkView) -> Instance:
    value = s.input_norm**2
    kept = "" if s.stays_orthogonal else " as these weights are; training may leave it"
    text = (
        f"Its recurrent matrix is normal{kept}, so its total Fisher memory is exactly |U u|^2, {number(value)} for the "
        f"best unit input, at any horizon: it only spreads over lags what one step takes in."
    )
    return Instance(text, value, "exact")


@theorem(
    "kerg-fisher-trajectory",
    "kerg2022thesis",
    "Eq. 3.4.3",
    "The Fisher memory matrix conditions on the whole trajectory of states.",
    severity="misprint",
    right="it conditions on the last state only: the trajectory holds |v|^2 / eps about every input, whatever lag "
    "and W",
)
def trajectory(seed: int) -> Verdict:
    """One network of 3 units over 8 steps: the joint Gaussian of all states, written out, against the last state."""
    random = np.random.default_rng(seed)
    size, steps, noise = 3, 8, 0.5
    W, v = stable(random, size), random.standard_normal(size)
    powers = [np.linalg.matrix_power(W, k) for k in range(steps)]
    zero = np.zeros((size, size))
    response = np.block([[powers[i - j] if i >= j else zero for j in range(steps)] for i in range(steps)])
    means = response @ np.kron(np.eye(steps), v[:, None])
    joint = np.diag(means.T @ np.linalg.solve(noise * response @ response.T, means))[::-1]
    last = measures.fisher_memory(W, v, noise, horizon=steps).curve
    flat = float(np.abs(joint * noise / (v @ v) - 1).max())
    return Verdict(
        bool(flat < _ROUNDING and last[-1] < 0.5 * joint[-1]),
        steps,
        f"lag {steps - 1}: the trajectory holds {joint[-1]:.6g} = |v|^2/eps, the last state {last[-1]:.6g}",
    )


@theorem(
    "kerg-fisher-input-noise",
    "kerg2022thesis",
    "§3.4.2",
    "The noise enters with the scalar input, x_t = s_t + xi_t.",
    severity="misprint",
    right="the delay line's closed form needs noise on every unit: with noise on the input alone J(k) is 1 / eps, k "
    "< N",
)
def input_noise(seed: int) -> Verdict:
    """One delay line of 6 units with noise along v only, and with noise on every unit, against the closed form."""
    gain = float(np.random.default_rng(seed).uniform(0.6, 1.6))
    W, v = theory.delay_line(6, gain)
    signals = np.stack([np.linalg.matrix_power(W, k) @ v for k in range(6)], axis=1)
    alone = np.diag(signals.T @ np.linalg.solve(signals @ signals.T, signals))
    closed, everywhere = theory.delay_line_curve(6, gain), measures.fisher_memory(W, v).curve
    return Verdict(
        bool(np.allclose(alone, 1) and np.allclose(everywhere, closed, rtol=_ROUNDING)),
        6,
        f"a={gain:.4g}, lag 5: {alone[5]:.6g} with noise on the input, {everywhere[5]:.6g} on every unit (closed form "
        f"{closed[5]:.6g})",
    )


@theorem(
    "kerg-alpha",
    "kerg2022thesis",
    "§3.4, Table 5",
    "alpha of Eq. 3.4.2 and Table 5 is the alpha of the closed form of the delay line.",
    severity="misprint",
    right="Table 5 has alpha below the diagonal, the closed form and Proposition 3.4.1 sqrt(alpha): theirs is alpha^2",
)
def two_alphas(_: int) -> Verdict:
    """Both readings against the measured totals of the table's plain delay lines, alpha = 0.95 and 1.05."""
    gains = (0.95, 1.05)
    own = [measures.fisher_memory(theory.kerg_matrix(100, a), np.eye(100)[0]).total for a in gains]
    read, squared = ([float(theory.delay_line_curve(100, a**power).sum()) for a in gains] for power in (1, 2))
    return Verdict(
        bool(np.allclose(own, squared, rtol=_ROUNDING) and not np.allclose(own, read, rtol=0.01)),
        2,
        f"alpha=1.05: Table 5 {theory.TABLE_5[1.05, 0.0, 0.0]}, closed form with alpha {read[1]:.4f}, with alpha^2 "
        f"{squared[1]:.4f}",
    )


@theorem(
    "kerg-table-5",
    "kerg2022thesis",
    "Table 5",
    "The totals of the twelve triangular matrices with N = 100.",
    severity="wrong constant",
    right="seven rows are right; with d = 0.2 the totals are 11.93939, 16.29823, 20.83706 (beta = 0) and 12.08953, "
    "16.39095, 20.88466 (beta = 0.005): the covariance's condition number is up to 1e24 there, and must not be "
    "inverted",
)
def table_5(_: int) -> Verdict:
    """All twelve rows, each to at least ten digits, rounded as the table is."""
    found = {row: measures.fisher_memory(theory.kerg_matrix(100, *row), np.eye(100)[0]) for row in theory.TABLE_5}
    wrong = {row: one.total for row, one in found.items() if float(f"{one.total:.3g}") != theory.TABLE_5[row]}
    sure = all((one.digits or 0) >= 10 for one in found.values())
    shown = ", ".join(f"{total:.5f} (published {theory.TABLE_5[row]:g})" for row, total in wrong.items())
    expected = len(wrong) == 5 and all(d == 0.2 for _, _, d in wrong)
    return Verdict(sure and expected, len(found), f"{len(wrong)} of 12 rows differ in three digits: {shown}")
