"""Claims about the memory capacity of Jaeger, White and Dambre (Matrix §2.1, Eq. 3 and 4)."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float

from mnemoscope.measures.capacity.memory import memory_capacity
from mnemoscope.nn.networks.elman import RNN
from mnemoscope.studies.claims.base import Verdict, claim
from mnemoscope.theory.formulas.capacity import capacity_from_eigenvalues, ring_capacity

__all__: list[str] = []


@claim(
    "capacity-rank",
    "Matrix §2.1, Eq. 3-4 (Jaeger 2001, White et al. 2004)",
    "with the best readouts, the memory traces m(k) of a linear network without noise add up to the rank of its "
    "controllability matrix, at most N",
    "proved",
)
def capacity_rank(seed: int) -> Verdict:
    """Hide a known number of modes from the input, and add up the curve."""
    random = np.random.default_rng(seed)
    worst, cases = 0.0, 0
    for size in (4, 9, 20, 40):
        turn = _orthogonal(random, size)
        for reached in (1, size // 2, size):
            modes = np.linspace(-0.95, 0.9, size)
            v = turn[:, random.permutation(size)[:reached]].sum(axis=1)
            found = memory_capacity((turn @ np.diag(modes) @ turn.T, v))
            worst = max(worst, abs(float(found.curve.sum()) - reached), abs(found.total - reached))
            cases += 1
    return Verdict(worst < 1e-8, cases, f"sum over lags and number of reached modes differ by at most {worst:.1e}")


@claim(
    "capacity-eigenvalues",
    "Mnemoscope",
    "the curve MC_k of a linear network depends on nothing but the eigenvalues that its input reaches; on a ring of N "
    "units with weight rho it is rho^(2N floor(k/N)) (1 - rho^(2N))",
    "proved",
)
def capacity_eigenvalues(seed: int) -> Verdict:
    """Change coordinates and input, keep the eigenvalues; and compare a ring with its closed form."""
    random = np.random.default_rng(seed)
    worst = 0.0
    for size in (3, 6, 12):
        W = random.normal(size=(size, size))
        W *= 0.9 / np.abs(np.linalg.eigvals(W)).max()
        change = random.normal(size=(size, size))
        other = memory_capacity((change @ W @ np.linalg.inv(change), random.normal(size=size)), lag=50).curve
        worst = max(worst, float(np.abs(other - memory_capacity((W, np.ones(size)), lag=50).curve).max()))
        worst = max(worst, float(np.abs(other - capacity_from_eigenvalues(np.linalg.eigvals(W), 51)).max()))
        ring = memory_capacity((0.9 * np.roll(np.eye(size), 1, axis=0), np.eye(size)[0]), lag=50).curve
        worst = max(worst, float(np.abs(ring - ring_capacity(size, 0.9, 51)).max()))
    return Verdict(worst < 1e-8, 9, f"curves differ by at most {worst:.1e}")


@claim(
    "capacity-by-regression",
    "common practice (Jaeger 2001)",
    "regressing u(t-k) on simulated states, or inverting their covariance, gives the capacity of a linear network",
    "false",
    "the covariance is too ill conditioned, and the curve too long; the leverages of the columns of [v, W v, ..] in an "
    "orthonormal basis give every MC_k, and the rank gives their sum",
)
def capacity_by_regression(seed: int) -> Verdict:
    """Take an orthogonal matrix at radius 0.99, whose capacity is 50."""
    random = np.random.default_rng(seed)
    W, v = 0.99 * _orthogonal(random, 50), random.normal(size=50)
    found = memory_capacity((W, v))
    regression = _regression(W, v, random, lags=100)
    # A slower matrix of fewer eigenvalues shows what inverting the covariance does.
    narrow = _orthogonal(random, 50)
    W = narrow @ np.diag(np.linspace(0.3, 0.9, 50)) @ narrow.T
    inverted = _inverted(W, v)
    right = memory_capacity((W, v))
    wrong = abs(regression - 50) > 1 and abs(inverted - 50) > 1
    exact = found.total == right.total == 50 and abs(float(found.curve.sum()) - 50) < 1e-8
    return Verdict(
        wrong and exact,
        2,
        f"N=50, seed {seed}: orthogonal at 0.99, regression on 100 lags {regression:.1f}; symmetric with eigenvalues "
        f"0.3 .. 0.9, inverted covariance {inverted:.1f}; both are 50",
    )


@claim(
    "capacity-bound",
    "Dambre et al. 2012",
    "the capacities for all products of past inputs add up to at most the number of units, and to that number for a "
    "network with fading memory and independent units",
    "proved",
)
def capacity_bound(seed: int) -> Verdict:
    """Add up all products up to degree 5 for small tanh networks."""
    random = np.random.default_rng(seed)
    totals, bounds = [], []
    for size in (2, 3):
        layer = RNN(1, size, bias=False, dtype=torch.float64)
        weights = {
            "weight_hh_l0": 0.4 * _orthogonal(random, size),  # memory that fades within the lags that are looked at
            "weight_ih_l0": random.uniform(0.4, 1.0, size=(size, 1)),
        }
        layer.load_state_dict({name: torch.as_tensor(each) for name, each in weights.items()})
        found = memory_capacity(layer, degree=5, lag=6, scale=1.0, threshold=True, samples=6000, seed=seed)
        totals.append(found.total)
        bounds.append(size)
    good = all(bound - 0.25 < total < bound + 0.1 for total, bound in zip(totals, bounds, strict=True))
    shown = ", ".join(f"{total:.3f} of {bound}" for total, bound in zip(totals, bounds, strict=True))
    return Verdict(good, len(totals), f"up to degree 5: {shown}")


def _orthogonal(random: np.random.Generator, size: int) -> Float[np.ndarray, "n n"]:
    return np.asarray(np.linalg.qr(random.normal(size=(size, size)))[0])


def _regression(
    W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"], random: np.random.Generator, lags: int
) -> float:
    steps = 6000
    u = random.uniform(-1, 1, size=steps)
    states = np.zeros((steps, len(v)))
    for t in range(1, steps):
        states[t] = W @ states[t - 1] + v * u[t]
    X = states[lags:]
    Z = np.stack([u[lags - k : steps - k] for k in range(lags)], axis=1)
    fitted = X @ np.linalg.lstsq(X, Z, rcond=1e-6)[0]
    return float((1 - ((Z - fitted) ** 2).sum(axis=0) / (Z**2).sum(axis=0)).sum())


def _inverted(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]) -> float:
    columns = [v]
    for _ in range(500):
        columns.append(W @ columns[-1])
    K = np.stack(columns, axis=1)
    return float((K * (np.linalg.pinv(K @ K.T) @ K)).sum())
