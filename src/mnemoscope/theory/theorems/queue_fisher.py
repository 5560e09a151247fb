"""Fisher memory of matrix networks with external state memory: a queue of past states that feeds back."""

from __future__ import annotations

import numpy as np

from mnemoscope import measures
from mnemoscope.measures.fisher.queue import queue_radius
from mnemoscope.theory.theorems.base import Verdict, theorem
from mnemoscope.theory.theorems.draw import general
from mnemoscope.theory.theorems.matrix_fisher import SLACK, drawn


@theorem(
    "queue-stability",
    "renanse2021",
    "§3.2",
    "With one slot of weight 1 the network has an asymptotic memory.",
    severity="wrong result",
    right="no such network is stable: per eigenvalue mu the roots of z^2 - mu z - 1 have product -1; smaller "
    "weights can "
    "be",
)
def stability(seed: int) -> Verdict:
    """Twenty random networks and U = V = 0 with weight 1, and one with weight 0.3: radii of the companion matrix."""
    cases = drawn(seed, 20)
    radii = [queue_radius(U, V, (1.0,)) for U, V, _ in cases]
    empty = queue_radius(np.zeros((2, 2)), np.zeros((2, 2)), (1.0,))
    stable = queue_radius(np.diag([0.5, 0.2]), np.diag([0.5, 0.2]), (0.3,))
    return Verdict(
        min(radii) >= 1 - 1e-12 and abs(empty - 1) < 1e-12 and stable < 1,
        len(cases) + 2,
        f"smallest radius of {len(cases)} drawn {min(radii):.6f}, of U = V = 0 {empty:.6f}; weight 0.3 with "
        f"U = V = diag(0.5, 0.2): {stable:.4f}",
    )


@theorem(
    "queue-series",
    "renanse2021",
    "Theorem 4, Eq. 40, 42",
    "The memory with one slot is given by the infinite series over m.",
    severity="wrong result",
    right="its terms grow by 1 / (1 - rho^2) > 1 each, and Eq. 42 lacks the slot's time shift; the finite horizon "
    "is exact",
)
def series(_: int) -> Verdict:
    """One network by hand: terms and totals of the series at m_max = 10, 20, 40, and 30 steps exactly."""
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


@theorem(
    "queue-figures",
    "renanse2021",
    "Fig. 3, 4",
    "By Theorem 4 a slot of memory raises the curve of normal networks.",
    severity="wrong result",
    right="the published form never exceeds the published curve without memory, by Cauchy-Schwarz",
)
def figures(seed: int) -> Verdict:
    """Twelve normal networks: the published curve with a slot against the one without, lag by lag."""
    held, cases = 0, drawn(seed, 12, kind="normal")
    for case in cases:
        plain = measures.matrix_fisher_memory(*case, form="published").curve
        queue = measures.queue_fisher_memory(*case, form="published", m_max=8).curve
        length = min(len(plain), len(queue))
        held += bool((queue[:length] <= plain[:length] * SLACK).all())
    return Verdict(
        held == len(cases), len(cases), f"at no lag above the curve without memory in {held} of {len(cases)}"
    )


@theorem(
    "queue-gain",
    "renanse2021",
    "§3.2",
    "One slot of memory raises the capacity, by up to four times.",
    severity="wrong result",
    right="trace(J^s) = N^2 with or without the queue, so what one source gains others lose; normal networks gain "
    "nothing",
)
def gain(seed: int) -> Verdict:
    """Eight normal networks; and all nine sources of one general 3 x 3 network, with and without a slot of 0.3."""
    random = np.random.default_rng(seed)
    normal = [measures.queue_fisher_memory(0.6 * U, V, W) for U, V, W in drawn(seed, 8, kind="normal")]
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


@theorem(
    "queue-joint",
    "",
    "after Renanse et al. 2021, §3",
    "The last two states together hold more than the last one: summed over all sources, 2 N^2.",
)
def joint(seed: int) -> Verdict:
    """All six sources of one 3 x 2 network with a slot of 0.3."""
    random = np.random.default_rng(seed)
    U, V = general(random, 3, 0.5), general(random, 2, 0.8)
    found = [measures.queue_fisher_memory(U, V, W) for W in np.eye(6).reshape(6, 3, 2)]
    total = sum(f.joint_total or 0.0 for f in found)
    grows = all((f.joint_total or 0.0) >= f.total for f in found)
    evidence = f"3 x 2 units, all six sources: {total:.9f} of 12, each at least its own"
    return Verdict(grows and abs(total / 12 - 1) < 1e-9, 6, evidence)
