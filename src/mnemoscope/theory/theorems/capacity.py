"""Memory capacity: the rank that it is, the eigenvalues that decide it, and what regression finds of it."""

from __future__ import annotations

import itertools

import numpy as np
from jaxtyping import Float

from mnemoscope import measures, theory
from mnemoscope.core.numbers import number
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.draw import orthogonal, stable
from mnemoscope.theory.theorems.view import NetworkView

_MOST = 512
"""Numbers in a state up to which the exact rank is computed."""


def _forgets(s: NetworkView) -> bool:
    return s.linear and s.radius < 1 and (s.state_size or 0) <= _MOST


@theorem("capacity-rank", "jaeger2001", "restated in Renanse et al. 2021, §2.1")
def capacity_rank(seed: int) -> Verdict:
    """The memory traces m(k) of a linear network add up to the rank of its controllability matrix, at most N.

    Without noise, and with the best readouts.

    Check: twelve networks of 4 to 40 units with a known number of modes hidden from the input: sums of their curves.
    """
    random = np.random.default_rng(seed)
    worst, cases = 0.0, 0
    for size in (4, 9, 20, 40):
        turn = orthogonal(random, size)
        for reached in (1, size // 2, size):
            v = turn[:, random.permutation(size)[:reached]].sum(axis=1)
            found = measures.memory_capacity((turn @ np.diag(np.linspace(-0.95, 0.9, size)) @ turn.T, v))
            worst = max(worst, abs(float(found.curve.sum()) - reached), abs(found.total - reached))
            cases += 1
    return Verdict(worst < 1e-8, cases, f"sum over lags and number of reached modes differ by at most {worst:.1e}")


@capacity_rank.about("capacity", _forgets)
def _(s: NetworkView) -> Instance:
    assert s.matrices is not None
    found = theory.controllability_rank(s.matrices[0], s.matrices[1][:, 0])
    text = (
        f"With these weights its linear memory capacity for the first input channel is exactly {found}: the rank of "
        f"[v, W v, W^2 v, ..], in exact arithmetic."
    )
    return Instance(text, found, "exact")


@theorem("capacity-eigenvalues", "", "after White et al. 2004")
def capacity_eigenvalues(seed: int) -> Verdict:
    """The curve MC_k of a linear network depends on nothing but the eigenvalues that its input reaches.

    On a ring of N units with weight rho it is rho^(2N floor(k/N)) (1 - rho^(2N)).

    Proof: readouts undo a change of coordinates, so W and v may be the companion form of the part that v reaches, which
    holds nothing but the characteristic polynomial there.

    Check: other coordinates and another input with the same eigenvalues; and rings against their closed form: 51 lags.
    """
    random = np.random.default_rng(seed)
    worst = 0.0
    for size in (3, 6, 12):
        W = stable(random, size, 0.9)
        change = random.normal(size=(size, size))
        other = measures.memory_capacity((change @ W @ np.linalg.inv(change), random.normal(size=size)), lag=50).curve
        ring = measures.memory_capacity((0.9 * np.roll(np.eye(size), 1, axis=0), np.eye(size)[0]), lag=50).curve
        gaps = [
            other - measures.memory_capacity((W, np.ones(size)), lag=50).curve,
            other - theory.capacity_from_eigenvalues(np.linalg.eigvals(W), 51),
            ring - theory.ring_capacity(size, 0.9, 51),
        ]
        worst = max(worst, float(np.abs(gaps).max()))
    return Verdict(worst < 1e-8, 9, f"curves differ by at most {worst:.1e}")


@capacity_eigenvalues.about("capacity", _forgets)
def _(s: NetworkView) -> Instance:
    size = s.state_size or 0
    curve = theory.capacity_from_eigenvalues(s.eigenvalues, 4 * size + 64)
    kept = np.flatnonzero(curve >= 0.5)
    reach = int(kept[-1]) if len(kept) else -1
    until = f"up to lag {reach}" if len(kept) else "at no lag"
    text = (
        f"How much it recovers at each lag depends on its {size} eigenvalues alone, where the input reaches all of "
        f"them: at least half of an input's variance {until}, and {number(float(curve[0]))} of the present input's."
    )
    return Instance(text, reach, "exact")


@theorem("capacity-by-regression", "jaeger2001", "as commonly computed", severity="missing condition")
def capacity_by_regression(seed: int) -> Verdict:
    """Regressing u(t-k) on simulated states, k < K, gives the total capacity of a linear network.

    Right: it estimates the sum over these K lags, which is the total only when the rest of the curve is negligible, and
    only where floats resolve the covariance of the states; the total is the rank of [v, W v, ..].
    Check: one network with a curve longer than K = 100, over equal lags, and one whose states floats cannot resolve.
    """
    random = np.random.default_rng(seed)
    v = random.normal(size=50)
    slow = 0.99 * orthogonal(random, 50)
    regressed, exact = _regression(slow, v, random, lags=100), measures.memory_capacity((slow, v))
    first = float(exact.curve[:100].sum())
    frame = orthogonal(random, 50)
    narrow = frame @ np.diag(np.linspace(0.3, 0.9, 50)) @ frame.T
    short, whole = _regression(narrow, v, random, lags=400), measures.memory_capacity((narrow, v))
    equal = abs(regressed - first) < 1 and 50 - first > 3 and abs(float(exact.curve.sum()) - 50) < 1e-8
    unresolved = 50 - short > 10 and abs(float(whole.curve[:400].sum()) - 50) < 1e-8
    return Verdict(
        equal and unresolved and exact.total == whole.total == 50,
        2,
        f"N = 50, seed {seed}: orthogonal at radius 0.99, 100 lags: regression {regressed:.1f}, exact sum over the "
        f"same "
        f"lags {first:.1f}, total 50; symmetric with eigenvalues 0.3 .. 0.9, 400 lags: regression {short:.1f}, "
        f"exact 50",
    )


def _regression(
    W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"], random: np.random.Generator, lags: int
) -> float:
    """Return the sum of the shares of variance that least squares explain, corrected for the number of units."""
    steps, start = 30_000, 1500
    u = random.uniform(-1, 1, size=steps)
    states = np.zeros((steps, len(v)))
    for t in range(1, steps):
        states[t] = W @ states[t - 1] + v * u[t]
    X = states[start:]
    Z = np.stack([u[start - k : steps - k] for k in range(lags)], axis=1)
    solution, _, rank, _ = np.linalg.lstsq(X, Z, rcond=None)
    left = ((Z - X @ solution) ** 2).sum(axis=0) / (len(Z) - rank)
    return float((1 - left / (Z**2).mean(axis=0)).sum())


@theorem("capacity-bound", "dambre2012", "")
def capacity_bound(seed: int) -> Verdict:
    """The capacities for all products of past inputs add up to at most the number of units.

    They add up to that number for a network with fading memory and independent units.

    Check: networks of 2 to 6 tanh units that forget after so many steps, exactly: all histories of signs, all products.
    """
    random = np.random.default_rng(seed)
    worst, above, sizes = 0.0, 0.0, range(2, 7)
    for size in sizes:
        W, v = np.tril(random.normal(size=(size, size)), -1), random.normal(size=size)
        histories = np.array(list(itertools.product((-1.0, 1.0), repeat=size)))
        h = np.zeros((len(histories), size))
        for u in histories.T:  # after `size` steps nothing is left of an earlier state: these are all states there are
            h = np.tanh(h @ W.T + np.outer(u, v) + 0.3)
        orthonormal = np.linalg.svd(h - h.mean(axis=0), full_matrices=False)[0]
        products = [histories[:, list(chosen)].prod(axis=1) for chosen in _subsets(size)]
        capacities = [float(((orthonormal.T @ z) ** 2).sum() / len(z)) for z in products]
        worst, above = max(worst, abs(sum(capacities) - size)), max(above, sum(capacities[: 2 * size]) - size)
    return Verdict(
        worst < 1e-9 and above < 1e-9,
        len(sizes),
        f"the capacities of all 2^N - 1 products of N signs add up to N units to {worst:.1e}; every part of them to "
        f"less",
    )


def _subsets(size: int) -> list[tuple[int, ...]]:
    return [chosen for count in range(1, size + 1) for chosen in itertools.combinations(range(size), count)]


@capacity_bound.about("capacity", lambda s: s.recurrent)
def _(s: NetworkView) -> Instance:
    size = s.state_size or 0
    text = (
        f"All that linear readouts of its state recover of independent past inputs, linear and nonlinear together, "
        f"adds up to at most {number(size)}: the numbers in its state."
    )
    return Instance(text, size, "bound")


@theorem("capacity-linear-only", "dambre2012", "")
def capacity_linear_only(seed: int) -> Verdict:
    """The states of a linear network are uncorrelated with every product of two or more independent inputs.

    Check: linear networks of 2 to 5 units over all histories of 6 signs, exactly: every product, and each input alone.
    """
    random = np.random.default_rng(seed)
    histories = np.array(list(itertools.product((-1.0, 1.0), repeat=6)))
    products, alone = 0.0, np.inf
    for size in range(2, 6):
        W, v, h = stable(random, size, 0.9), random.normal(size=size), np.zeros((64, size))
        for u in histories.T:
            h = h @ W.T + np.outer(u, v)
        for chosen in _subsets(6):
            covariance = float(np.abs(h.T @ histories[:, list(chosen)].prod(axis=1)).max() / 64)
            products = max(products, covariance) if len(chosen) > 1 else products
            alone = min(alone, covariance) if len(chosen) == 1 else alone
    return Verdict(
        products < 1e-12 < 1e-6 < alone,
        4,
        f"covariance with products at most {products:.1e}, with each input alone at least {alone:.3f}",
    )


@capacity_linear_only.about("capacity", lambda s: s.linear)
def _(_: NetworkView) -> Instance:
    text = (
        "Its nonlinear memory capacity is exactly 0: the states are linear in the inputs, and products of independent "
        "inputs are uncorrelated with them."
    )
    return Instance(text, 0.0, "exact")
