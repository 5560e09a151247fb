"""Delay lines and triangular networks: Fisher memory in closed form, and the bounds that they attain."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from mnemoscope import measures, theory
from mnemoscope.core.errors import UserError
from mnemoscope.core.numbers import number
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.draw import orthogonal, stable
from mnemoscope.theory.theorems.view import NetworkView

_ROUNDING = 1e-9
_LAG = 10


def _is_delay_line(s: NetworkView) -> bool:
    if not (s.linear and s.layers == 1 and s.first_order and s.n > 1) or np.iscomplexobj(s.V):
        return False
    below = s.V.diagonal(-1)
    shift = np.diag(below, -1)
    return bool(below[0] > 0 and np.array_equal(s.V, shift) and np.ptp(below) == 0 and not s.U[1:].any())


def _is_triangular(s: NetworkView) -> bool:
    if not (s.linear and s.layers == 1 and s.first_order) or _is_delay_line(s) or s.U[1:].any():
        return False
    try:
        theory.triangular_fisher_bounds(s.V)
    except (UserError, ValueError):
        return False
    return True


@theorem(
    "kerg-delay-line",
    "ganguli2008",
    "restated in Kerg 2022, §3.4.2",
    "A delay line with sub-diagonal sqrt(a) has J(k) = a^k (a-1) / (a^(k+1) - 1) for k < N and noise 1, then zero.",
)
def closed_form(seed: int) -> Verdict:
    """Twenty lines of 2 to 59 units with gains 0.3 to 3 against the measure, three lags beyond the last unit too."""
    random = np.random.default_rng(seed)
    worst, cases = 0.0, 20
    for _ in range(cases):
        size, gain = int(random.integers(2, 60)), float(random.uniform(0.3, 3))
        found = measures.fisher_memory(*theory.delay_line(size, gain), horizon=size + 3).curve
        worst = max(worst, float(np.abs(found - theory.delay_line_curve(size, gain, lags=size + 3)).max()))
    return Verdict(worst < _ROUNDING, cases, f"the curves differ by at most {worst:.1e}")


@closed_form.about("fisher", _is_delay_line)
def _(s: NetworkView) -> Instance:
    gain = float(s.V[1, 0]) ** 2
    value = float(theory.delay_line_curve(s.n, gain).sum()) * s.input_norm**2
    text = (
        f"It is a delay line of {s.n} units with gain a = {number(gain)}: J(k) = a^k (a - 1) / (a^(k+1) - 1) |U|^2 for "
        f"k < {s.n}, zero beyond, without interference between lags; in total {number(value)}."
    )
    return Instance(text, value, "exact")


@theorem(
    "kerg-delay-line-total",
    "kerg2022thesis",
    "§2.6",
    "For a > 1 the total of a long delay line is about (N / eps) (1 - 1 / eps).",
    severity="wrong constant",
    right="it is about (N / eps) (1 - 1 / a)",
)
def total_of_a_line(seed: int) -> Verdict:
    """One line of 4,000 units at noise 1/2, its gain drawn from 1.3 to 3: both forms against the sum of its curve."""
    gain, noise, size = float(np.random.default_rng(seed).uniform(1.3, 3)), 0.5, 4000
    total = float(theory.delay_line_curve(size, gain, noise).sum())
    right, published = theory.delay_line_limit(size, gain, noise), size / noise * (1 - 1 / noise)
    return Verdict(
        abs(total / right - 1) < 0.01 and abs(total / published - 1) > 0.1,
        1,
        f"N={size}, eps={noise}, a={gain:.4g}: total {total:.1f}, with 1/a {right:.1f}, with 1/eps {published:.1f}",
    )


@theorem(
    "kerg-delay-line-optimal",
    "kerg2022thesis",
    "§3.4.2",
    "The delay line has the highest possible J(k) for k <= N.",
    severity="missing condition",
    right="only at a given amplification A_m = |W^m v|^2: J(k) <= 1 / (eps sum_{m<=k} 1 / A_m)",
)
def not_optimal(_: int) -> Verdict:
    """The thesis's own matrix with d = 0.2 against its delay line, N = 100: the lags at which it is ahead."""
    line, other = (measures.fisher_memory(theory.kerg_matrix(100, 1.05, d=d), np.eye(100)[0]).curve for d in (0.0, 0.2))
    ahead = int((other[:100] > line).sum())
    return Verdict(
        ahead == 97,
        100,
        f"alpha=1.05, N=100: with d=0.2 J(k) is larger at {ahead} of 100 lags, at lag 50 {other[50]:.5f} against "
        f"{line[50]:.5f}",
    )


@theorem(
    "kerg-amplification-bound",
    "ganguli2008",
    "restated in Kerg 2022, §2.6",
    "J(k) <= 1 / (eps sum_{m<=k} 1 / A_m), with equality for the delay line with gains sqrt(A_m / A_{m-1}).",
)
def bounded_by_amplification(seed: int) -> Verdict:
    """Twenty stable matrices of up to 9 units, 12 lags; and for each the delay line with the same amplification."""
    random = np.random.default_rng(seed)
    highest, gap, cases = 0.0, 0.0, 20
    for _ in range(cases):
        size, noise = int(random.integers(2, 10)), float(random.uniform(0.1, 5))
        W, v = stable(random, size), random.standard_normal(size)
        profile = theory.amplification(W, v, 12)
        bound = theory.amplification_bound(profile, noise)
        highest = max(highest, float((measures.fisher_memory(W, v, noise, horizon=40).curve[:12] / bound).max()))
        line = measures.fisher_memory(*theory.optimal_delay_line(profile), noise, horizon=12).curve
        gap = max(gap, float(np.abs(line / bound - 1).max()))
    return Verdict(
        highest <= 1 + _ROUNDING and gap < _ROUNDING,
        cases,
        f"random networks reach at most {highest:.6f} of the bound, the delay lines all of it (to {gap:.1e})",
    )


@bounded_by_amplification.about("fisher", lambda s: s.linear)
def _(s: NetworkView) -> Instance:
    assert s.matrices is not None
    state, signal = s.matrices
    gains = []
    for _ in range(_LAG + 1):  # A_m <= |W^m B|^2 for every unit direction
        gains.append(float(np.linalg.norm(signal, 2)) ** 2)
        signal = state @ signal
    value = float(theory.amplification_bound(gains)[-1])
    text = (
        f"An input of {_LAG} steps ago is amplified to at most |W^{_LAG} U|^2 = {number(gains[-1])}, so its Fisher "
        f"memory is at most {number(value)}; a delay line with the same amplification would reach that."
    )
    return Instance(text, value, "bound")


@theorem(
    "kerg-no-interference",
    "ganguli2008",
    "restated in Kerg 2022, §2.6",
    "Matrices that are orthogonally equivalent to delay lines have a diagonal Fisher memory matrix.",
)
def no_interference(seed: int) -> Verdict:
    """Ten turned delay lines of 3 to 11 units, and the same with 0.2 on the diagonal: their interference."""
    random = np.random.default_rng(seed)
    turned, perturbed, cases = 0.0, math.inf, 10
    for _ in range(cases):
        size = int(random.integers(3, 12))
        W, v = theory.optimal_delay_line(random.uniform(0.3, 3, size))
        Q = orthogonal(random, size)
        turned = max(turned, measures.fisher_memory(Q @ W @ Q.T, Q @ v).interference)
        perturbed = min(perturbed, measures.fisher_memory(W + 0.2 * np.eye(size), v).interference)
    return Verdict(
        turned < _ROUNDING < 1e-3 < perturbed,
        cases,
        f"interference at most {turned:.1e}; with 0.2 on the diagonal at least {perturbed:.3f}",
    )


@theorem(
    "kerg-feedback-line",
    "ganguli2008",
    "restated in Kerg 2022, §2.6",
    "A delay line with feedback amplifies and is stable for 1 - sqrt(a) < sqrt(b) < 1 / (4 sqrt(a)), and remembers for "
    "longer than N steps.",
)
def feedback(seed: int) -> Verdict:
    """Ten lines of 24 units inside the interval: numerical radius, spectral radius, and lags beyond N."""
    random = np.random.default_rng(seed)
    size, cases, good, beyond = 24, 10, 0, math.inf
    far = math.cos(math.pi / (size + 1))
    for _ in range(cases):
        gain = float(random.uniform(0.4, 0.95))
        low, high = theory.feedback_interval(gain)
        weight = low + float(random.uniform(0.2, 0.8)) * (high - low)
        W, v = theory.feedback_delay_line(size, gain, weight**2)
        widest = float(np.linalg.eigvalsh((W + W.T) / 2).max()) / far  # of an infinite line
        good += widest > 1 > 2 * math.sqrt(W[1, 0] * W[0, 1])
        beyond = min(beyond, float(measures.fisher_memory(W, v).curve[size:].sum()))
    evidence = f"{good} of {cases} amplify and are stable; beyond lag N at least {beyond:.1e}"
    return Verdict(good == cases and beyond > 0, cases, evidence)


@theorem(
    "kerg-proposition-3.4.1",
    "kerg2022thesis",
    "Prop. 3.4.1",
    "J(k) >= sigma^(-2(N-1)) a^k (a-1) / (a^(k+1) - 1) for strictly lower triangular matrices.",
    severity="wrong constant",
    right="a factor 1 / eps is missing; with it the bound holds, for the triangular factor of the proof (rows 2..N of "
    "Theta / sqrt(a), and e_N)",
)
def proposition(seed: int) -> Verdict:
    """A delay line at noise 4 against the published form, twenty random triangles against the right one."""
    random = np.random.default_rng(seed)
    published, truth = (
        theory.delay_line_curve(4, 1.2)[0],
        measures.fisher_memory(*theory.delay_line(4, 1.2), 4.0).curve[0],
    )
    broken, cases = 0, 20
    for _ in range(cases):
        theta, eps = _triangular(random), float(random.uniform(0.1, 5))
        bound = theory.triangular_fisher_bounds(theta, eps).corrected
        broken += bool((_curve(theta, eps) < bound * (1 - _ROUNDING)).any())
    return Verdict(
        published > truth and not broken,
        cases,
        f"delay line, eps=4: J(0) = {truth:.4g} < {published:.4g} as published; with 1/eps {broken} exceptions",
    )


@theorem(
    "sharper-triangular-bound",
    "",
    "after Kerg 2022, Prop. 3.4.1",
    "J(k) >= a^k / (eps sum_{m<=k} (a sigma^2)^m) for strictly lower triangular matrices, above Proposition 3.4.1.",
)
def sharper(seed: int) -> Verdict:
    """Twenty random triangular matrices of up to 11 units, noise 0.1 to 5, against their curves."""
    random = np.random.default_rng(seed)
    broken, below, gains, cases = 0, 0, [], 20
    for _ in range(cases):
        theta, eps = _triangular(random), float(random.uniform(0.1, 5))
        bounds = theory.triangular_fisher_bounds(theta, eps)
        broken += bool((_curve(theta, eps) < bounds.sharper * (1 - _ROUNDING)).any())
        below += bool((bounds.sharper < bounds.corrected * (1 - _ROUNDING)).any())
        gains.append(float(bounds.sharper.sum() / bounds.corrected.sum()))
    return Verdict(
        not broken and not below,
        cases,
        f"{broken} exceptions; the sum of the bound is larger by a factor of {min(gains):.3g} to {max(gains):.3g}",
    )


@sharper.about("fisher", _is_triangular)
def _(s: NetworkView) -> Instance:
    bounds = theory.triangular_fisher_bounds(s.V)
    value, corrected = (float(each.sum()) * s.input_norm**2 for each in (bounds.sharper, bounds.corrected))
    text = (
        f"Its recurrent matrix is strictly lower triangular with one weight along the sub-diagonal, so its total "
        f"Fisher memory is at least {number(value)} (Proposition 3.4.1, corrected, gives {number(corrected)})."
    )
    return Instance(text, value, "bound")


def _triangular(random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    size = int(random.integers(2, 12))
    below = np.tril(0.3 * random.standard_normal((size, size)), -2)
    return np.asarray(below + random.uniform(0.6, 1.4) * np.eye(size, k=-1))


def _curve(theta: Float[np.ndarray, "n n"], noise: float) -> Float[np.ndarray, " n"]:
    return measures.fisher_memory(theta, np.eye(len(theta))[0], noise=noise).curve[: len(theta)]
