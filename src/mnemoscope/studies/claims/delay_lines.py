"""Claims about delay lines and triangular networks: Fisher memory and its bounds (Kerg §2.6, §3.4.2, app. A.2)."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from mnemoscope.measures.fisher.vector import fisher_memory
from mnemoscope.studies.claims.base import Verdict, claim
from mnemoscope.studies.claims.vector_fisher import from_first, stable, turn
from mnemoscope.theory.formulas.fisher import (
    amplification,
    amplification_bound,
    delay_line,
    delay_line_curve,
    delay_line_limit,
    feedback_delay_line,
    feedback_interval,
    kerg_matrix,
    optimal_delay_line,
    triangular_fisher_bounds,
)

__all__: list[str] = []

_ROUNDING = 1e-9


@claim(
    "kerg-delay-line",
    "Kerg §3.4.2",
    "a delay line with sub-diagonal sqrt(a) has J(k) = a^k (a-1) / (a^(k+1) - 1) for k < N and noise 1, then zero",
    "proved",
)
def closed_form(seed: int) -> Verdict:
    """Compare the closed form with the measure on random lines."""
    random = np.random.default_rng(seed)
    worst, cases = 0.0, 20
    for _ in range(cases):
        size, gain = int(random.integers(2, 60)), float(random.uniform(0.3, 3))
        W, v = delay_line(size, gain)
        found = fisher_memory(W, v, horizon=size + 3).curve
        worst = max(worst, float(np.abs(found - delay_line_curve(size, gain, lags=size + 3)).max()))
    return Verdict(worst < _ROUNDING, cases, f"the curves differ by at most {worst:.1e}")


@claim(
    "kerg-delay-line-total",
    "Kerg §2.6",
    "for a > 1 the total of a long delay line is about (N / eps) (1 - 1 / eps)",
    "false",
    "it is about (N / eps) (1 - 1 / a)",
)
def total_of_a_line(seed: int) -> Verdict:
    """Compare both with the sum of the curve at N = 4000."""
    gain, noise, size = float(np.random.default_rng(seed).uniform(1.3, 3)), 0.5, 4000
    total = float(delay_line_curve(size, gain, noise).sum())
    right, published = delay_line_limit(size, gain, noise), size / noise * (1 - 1 / noise)
    return Verdict(
        abs(total / right - 1) < 0.01 and abs(total / published - 1) > 0.1,
        1,
        f"N={size}, eps={noise}, a={gain:.4g}: total {total:.1f}, with 1/a {right:.1f}, with 1/eps {published:.1f}",
    )


@claim(
    "kerg-delay-line-optimal",
    "Kerg §3.4.2",
    "the delay line has the highest possible J(k) for k <= N",
    "false",
    "only at a given amplification A_m = |W^m v|^2: J(k) <= 1 / (eps sum_{m<=k} 1 / A_m)",
)
def not_optimal(seed: int) -> Verdict:
    """Count the lags at which a matrix of the document's own beats its delay line."""
    del seed
    line, other = from_first(kerg_matrix(100, 1.05)), from_first(kerg_matrix(100, 1.05, d=0.2))
    ahead = int((other.curve[:100] > line.curve).sum())
    return Verdict(
        ahead == 97,
        100,
        f"alpha=1.05, N=100: with d=0.2 J(k) is larger at {ahead} of 100 lags, at lag 50 {other.curve[50]:.5f} against "
        f"{line.curve[50]:.5f}",
    )


@claim(
    "kerg-amplification-bound",
    "Kerg §2.6",
    "J(k) <= 1 / (eps sum_{m<=k} 1 / A_m), with equality for the delay line with gains sqrt(A_m / A_{m-1})",
    "proved",
)
def bounded_by_amplification(seed: int) -> Verdict:
    """Try random networks, and the delay line that has the amplification of each."""
    random = np.random.default_rng(seed)
    highest, gap, cases = 0.0, 0.0, 20
    for _ in range(cases):
        size, noise = int(random.integers(2, 10)), float(random.uniform(0.1, 5))
        W, v = stable(random, size), random.standard_normal(size)
        profile = amplification(W, v, 12)
        bound = amplification_bound(profile, noise)
        highest = max(highest, float((fisher_memory(W, v, noise, horizon=40).curve[:12] / bound).max()))
        line = optimal_delay_line(profile)
        gap = max(gap, float(np.abs(fisher_memory(*line, noise, horizon=12).curve / bound - 1).max()))
    return Verdict(
        highest <= 1 + _ROUNDING and gap < _ROUNDING,
        cases,
        f"random networks reach at most {highest:.6f} of the bound, the delay lines all of it (to {gap:.1e})",
    )


@claim(
    "kerg-no-interference",
    "Kerg §2.6",
    "matrices that are orthogonally equivalent to delay lines have a diagonal Fisher memory matrix",
    "proved",
)
def no_interference(seed: int) -> Verdict:
    """Turn delay lines, and perturb them: the off-diagonal part is zero, then not."""
    random = np.random.default_rng(seed)
    turned, perturbed, cases = 0.0, math.inf, 10
    for _ in range(cases):
        size = int(random.integers(3, 12))
        W, v = optimal_delay_line(random.uniform(0.3, 3, size))
        Q = turn(random, size)
        turned = max(turned, fisher_memory(Q @ W @ Q.T, Q @ v).interference)
        perturbed = min(perturbed, fisher_memory(W + 0.2 * np.eye(size), v).interference)
    return Verdict(
        turned < _ROUNDING < 1e-3 < perturbed,
        cases,
        f"interference at most {turned:.1e}; with 0.2 on the diagonal at least {perturbed:.3f}",
    )


@claim(
    "kerg-feedback-line",
    "Kerg §2.6",
    "a delay line with feedback amplifies and is stable for 1 - sqrt(a) < sqrt(b) < 1 / (4 sqrt(a)), and remembers for "
    "longer than N steps",
    "proved",
)
def feedback(seed: int) -> Verdict:
    """Check both ends of the interval on the symmetric forms of the chain, and what lies beyond lag N."""
    random = np.random.default_rng(seed)
    size, cases, good, beyond = 24, 10, 0, math.inf
    far = math.cos(math.pi / (size + 1))
    for _ in range(cases):
        gain = float(random.uniform(0.4, 0.95))
        low, high = feedback_interval(gain)
        weight = low + float(random.uniform(0.2, 0.8)) * (high - low)
        W, v = feedback_delay_line(size, gain, weight**2)
        widest = float(np.linalg.eigvalsh((W + W.T) / 2).max()) / far  # of an infinite line
        radius = 2 * math.sqrt(W[1, 0] * W[0, 1])
        good += widest > 1 > radius
        beyond = min(beyond, float(fisher_memory(W, v).curve[size:].sum()))
    return Verdict(
        good == cases and beyond > 0,
        cases,
        f"{good} of {cases} amplify and are stable; beyond lag N at least {beyond:.1e}",
    )


@claim(
    "kerg-proposition-3.4.1",
    "Kerg Prop. 3.4.1",
    "J(k) >= sigma^(-2(N-1)) a^k (a-1) / (a^(k+1) - 1) for strictly lower triangular matrices",
    "false",
    "a factor 1 / eps is missing; with it the bound holds, for the triangular factor of the proof (rows 2..N of "
    "Theta / sqrt(a), and e_N)",
)
def proposition(seed: int) -> Verdict:
    """Try random triangular matrices, and noise 4 against the published form."""
    random = np.random.default_rng(seed)
    line, noise = delay_line(4, 1.2), 4.0
    published, truth = delay_line_curve(4, 1.2)[0], fisher_memory(*line, noise).curve[0]
    broken, cases = 0, 20
    for _ in range(cases):
        theta, eps = _triangular(random), float(random.uniform(0.1, 5))
        bound = triangular_fisher_bounds(theta, eps).corrected
        broken += bool((from_first(theta, eps).curve[: len(theta)] < bound * (1 - _ROUNDING)).any())
    return Verdict(
        published > truth and not broken,
        cases,
        f"delay line, eps=4: J(0) = {truth:.4g} < {published:.4g} as published; with 1/eps {broken} exceptions",
    )


@claim(
    "sharper-triangular-bound",
    "Mnemoscope, after Kerg Prop. 3.4.1",
    "J(k) >= a^k / (eps sum_{m<=k} (a sigma^2)^m) for strictly lower triangular matrices, above Proposition 3.4.1",
    "proved",
)
def sharper(seed: int) -> Verdict:
    """Try random triangular matrices, and say how much is gained."""
    random = np.random.default_rng(seed)
    broken, below, gains, cases = 0, 0, [], 20
    for _ in range(cases):
        theta, eps = _triangular(random), float(random.uniform(0.1, 5))
        bounds = triangular_fisher_bounds(theta, eps)
        curve = from_first(theta, eps).curve[: len(theta)]
        broken += bool((curve < bounds.sharper * (1 - _ROUNDING)).any())
        below += bool((bounds.sharper < bounds.corrected * (1 - _ROUNDING)).any())
        gains.append(float(bounds.sharper.sum() / bounds.corrected.sum()))
    return Verdict(
        not broken and not below,
        cases,
        f"{broken} exceptions; the sum of the bound is larger by a factor of {min(gains):.3g} to {max(gains):.3g}",
    )


def _triangular(random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    size = int(random.integers(2, 12))
    return np.asarray(
        np.tril(0.3 * random.standard_normal((size, size)), -2) + random.uniform(0.6, 1.4) * np.eye(size, k=-1)
    )
