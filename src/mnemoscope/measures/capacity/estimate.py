"""Memory capacity estimated by simulation: targets, readouts without bias, and their scores.

Targets are products of past inputs, an orthonormal basis of the functions of a white input's past. A readout is a ridge
regression on three quarters of the sequences, scored on the fourth, with the noise that the fit carries taken out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from mnemoscope.core.arrays import non_negative, positive, vector
from mnemoscope.core.errors import choice, expected, positive_int
from mnemoscope.core.memory import require
from mnemoscope.measures.capacity.network import Simulator

__all__ = [
    "CHUNK",
    "DISTRIBUTIONS",
    "Estimate",
    "EstimateSettings",
    "Readout",
    "count",
    "draw",
    "estimate",
    "longest_lag",
    "products",
    "table",
    "variance",
]

DISTRIBUTIONS = ("uniform", "gaussian")
"""What inputs are drawn from: uniform on [-1, 1], or the standard normal distribution."""


def draw(random: np.random.Generator, shape: tuple[int, ...], distribution: str) -> np.ndarray:
    """Return independent inputs of scale one."""
    return random.uniform(-1, 1, size=shape) if distribution == "uniform" else random.normal(size=shape)


def variance(distribution: str) -> float:
    """Return the variance of inputs of scale one."""
    return 1 / 3 if distribution == "uniform" else 1.0


def polynomials(
    u: Float[np.ndarray, "lags samples"], degree: int, distribution: str
) -> Float[np.ndarray, "degrees lags samples"]:
    """Return the polynomials of degree 0 .. `degree` that are orthonormal under the distribution of u.

    Legendre's, times sqrt(2 m + 1), for uniform inputs; Hermite's, over sqrt(m!), for normal ones.
    """
    uniform = distribution == "uniform"
    found = [np.ones_like(u), u]
    for m in range(1, degree):
        following = (2 * m + 1) * u * found[m] - m * found[m - 1] if uniform else u * found[m] - m * found[m - 1]
        found.append(following / (m + 1) if uniform else following)
    norms = [math.sqrt(2 * m + 1) if uniform else 1 / math.sqrt(math.factorial(m)) for m in range(degree + 1)]
    return np.stack([norm * polynomial for norm, polynomial in zip(norms, found, strict=True)])


def table(past: Float[np.ndarray, "samples lags"], degree: int, distribution: str) -> Float[np.ndarray, "rows samples"]:
    """Return P_m(u(t-k)) for every degree m and lag k, in row m * lags + k; `past` holds u(t-k)."""
    values = polynomials(np.ascontiguousarray(past.T), degree, distribution)
    return values.reshape(-1, past.shape[0])


def count(degree: int, lag: int) -> int:
    """Return how many products of total degree `degree` there are of the inputs at lags 0 .. `lag`."""
    return math.comb(lag + degree, degree)


def number_of_products(degree: int, lag: int) -> int:
    """Return about how many products there are up to a degree, as many as an estimate takes by itself at most."""
    return sum(min(count(each, lag), MOST_PRODUCTS) for each in range(1, degree + 1))


def products(degree: int, lag: int, lags: int) -> Int[np.ndarray, "products degree"]:
    """Return the factors of every product of total degree `degree` at lags 0 .. `lag`, as rows of `table`.

    A product is a multiset of lags; a lag that occurs m times gives the factor P_m(u(t-k)). Products with fewer factors
    than `degree` are filled with row 0, which is P_0 = 1. `lags` is the number of lags in the table.
    """
    found = np.zeros((count(degree, lag), degree), dtype=np.int64)
    for row, chosen in enumerate(itertools.combinations_with_replacement(range(lag + 1), degree)):
        for slot, (k, group) in enumerate(itertools.groupby(chosen)):
            found[row, slot] = len(list(group)) * lags + k
    return found


def longest_lag(factors: Int[np.ndarray, "products degree"], lags: int) -> Int[np.ndarray, " products"]:
    """Return the longest lag that takes part in each product."""
    return np.asarray((factors % lags).max(axis=1))


class _Fold(NamedTuple):
    """States of one part of the data, and a one for the intercept, as Q R."""

    Q: Float[np.ndarray, "samples units"]
    R: Float[np.ndarray, "units units"]


class _Scored(NamedTuple):
    """Score of one part: the readout that the others give, and what noise in each of their samples does to it."""

    inverse: Float[np.ndarray, "units others"]
    leverage: Float[np.ndarray, "parts samples"]


class Readout:
    r"""Linear readouts of given states, each trained on all parts of the data but one and scored on that one.

    A readout that was fitted to samples carries their noise: what is left of sample s of the target, e_s, moves the
    readout, and on the part that is scored this adds e_s^2 h_s to the squared error, where

    .. math:: h_s = \| X' (X^\top X + \rho I)^{-1} x_s \|^2

    (X the states it was trained on, X' those it is scored on). The squared error is therefore 1 + g times what it would
    be without, g the mean of h weighted by e^2, and the share recovered is estimated as 1 - error / variance / (1 + g).
    That is zero on average for a target that the states know nothing of, and one where it is recovered exactly.
    Products of inputs are large where states are, which is why h is weighted. States are factored by QR and never
    squared, so directions down to 1e-13 of the largest count.

    Parameters
    ----------
    states
        In parts that are independent of each other.
    regularisation
        Square root of the ridge rho, as a share of the largest singular value of the standardised states.
    """

    def __init__(self, states: Float[np.ndarray, "parts samples units"], regularisation: float) -> None:
        self.samples: int = states.shape[1]
        centred = states - states.mean(axis=(0, 1))
        spread = centred.std(axis=(0, 1))
        centred /= np.where(spread > 0, spread, 1.0)
        ones = np.ones((*states.shape[:2], 1))
        self.folds = [_Fold(*np.linalg.qr(part)) for part in np.concatenate([ones, centred], axis=2)]
        self.scored = [self._scored(index, regularisation) for index in range(len(self.folds))]

    def _scored(self, index: int, regularisation: float) -> _Scored:
        others = [fold for i, fold in enumerate(self.folds) if i != index]
        left, sizes, right = np.linalg.svd(np.concatenate([fold.R for fold in others]), full_matrices=False)
        floor = regularisation * sizes[0]
        damped = np.divide(sizes, sizes**2 + floor**2, out=np.zeros_like(sizes), where=sizes > 0)
        inverse = (right.T * damped) @ left.T
        moved = np.split(self.folds[index].R @ inverse, len(others), axis=1)
        leverage = [((fold.Q @ part.T) ** 2).sum(axis=1) for fold, part in zip(others, moved, strict=True)]
        return _Scored(inverse, np.stack(leverage))

    @property
    def chance(self) -> float:
        """Standard deviation of the mean estimate for a target that the states know nothing of.

        With K parts, m = K - 1 of them to train on, and p_g the covariance of states and target in part g, the mean is
        a sum of products p_g^T S^-1 p_h with weights (4/m - 2 (K-2)/m^2) / K for g < h and 1 / (m K) for g = h; the
        products are uncorrelated, of variances p / T'^2 and 2 p / T'^2, where p is the number of effective units.
        """
        parts = len(self.folds)
        train = parts - 1
        inflation = sum(float(each.leverage.sum()) for each in self.scored) / parts / self.samples
        share = 4 / train - 2 * (parts - 2) / (train * train)
        pairs = parts * train / 2 * share * share
        weight = (pairs + 2 * parts / (train * train)) / (parts * parts)
        return math.sqrt(weight * inflation * train / self.samples) / (1 + inflation)

    def recovered(self, targets: Float[np.ndarray, "parts samples targets"]) -> Float[np.ndarray, "parts targets"]:
        """Return, scored on each part, the share of the variance of targets of mean zero that is recovered."""
        seen = [fold.Q.T @ part for fold, part in zip(self.folds, targets, strict=True)]
        squares = np.empty_like(targets)
        for index, (fold, scored) in enumerate(zip(self.folds, self.scored, strict=True)):
            weights = scored.inverse @ np.concatenate([y for i, y in enumerate(seen) if i != index])
            squares[index] = targets[index] - fold.Q @ (fold.R @ weights)
        np.square(squares, out=squares)
        power, missed = (targets**2).sum(axis=1), squares.sum(axis=1)
        error = np.stack([missed[i] / (1 + self._inflation(i, squares, missed)) for i in range(len(missed))])
        found = 1 - error / power
        # The ratio of sums has less bias than the mean of ratios; the spread over parts is kept.
        return np.asarray(found - found.mean(axis=0) + 1 - error.sum(axis=0) / power.sum(axis=0))

    def _inflation(
        self,
        index: int,
        squares: Float[np.ndarray, "parts samples targets"],
        missed: Float[np.ndarray, "parts targets"],
    ) -> Float[np.ndarray, " targets"]:
        others = [i for i in range(len(squares)) if i != index]
        weighted = sum(h @ squares[i] for h, i in zip(self.scored[index].leverage, others, strict=True))
        total = missed[others].sum(axis=0)
        return np.asarray(np.divide(len(others) * weighted, total, out=np.zeros_like(total), where=total > 0))


PARTS = 4
SEQUENCES = 32
MOST_PRODUCTS = 4096
CHUNK = 256
SIGNIFICANT = 4.0
_SEARCHED = 512
"""Numbers in a state up to which all products are tried; beyond, until some hundreds in a row are chance."""


@dataclass(frozen=True)
class EstimateSettings:
    """Arguments of `memory_capacity`, checked; its docstring explains each."""

    degree: int
    lag: int | None
    horizon: int | None
    noise: float
    scale: float
    scales: tuple[float, ...] | None
    distribution: str
    samples: int | None
    washout: int | None
    regularisation: float
    threshold: bool
    seed: int

    def __post_init__(self) -> None:
        positive_int("degree", self.degree)
        for name in ("horizon", "samples"):
            if getattr(self, name) is not None:
                positive_int(name, getattr(self, name))
        for name in ("lag", "washout", "seed"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0):
                raise expected(name, "a whole number of at least 0", value)
        positive("scale", self.scale)
        non_negative("noise", self.noise)
        non_negative("regularisation", self.regularisation)
        choice("distribution", self.distribution, DISTRIBUTIONS)
        if self.scales is not None and not (vector("scales", self.scales) > 0).all():
            raise expected("scales", "positive numbers", self.scales)
        if self.horizon is not None and self.lag is not None and self.lag >= self.horizon:
            raise expected("lag", f"below horizon = {self.horizon}", self.lag)


class Estimate(NamedTuple):
    """Capacities by degree and longest lag, their sum, and what chance does to both."""

    profile: Float[np.ndarray, "degrees lags"]
    total: float
    stderr: float
    chance: float
    size: int
    settled: bool
    searched: bool
    """Whether all products were tried; else those beyond some hundreds that were chance are taken for zero."""


class _Plan(NamedTuple):
    """Sizes of one experiment: longest lag of each degree, steps before the first reading, readings, sequences."""

    lags: list[int]
    unread: int
    readings: int
    sequences: int


def estimate(simulator: Simulator, experiment: EstimateSettings, scale: float) -> Estimate:
    """Drive the network with inputs of this scale and estimate its capacities."""
    size = simulator(np.zeros((1, 1)), 0).shape[2]
    plan = _plan(experiment, size)
    _require_memory(plan, size, experiment.degree)
    random = np.random.default_rng(experiment.seed)
    inputs = draw(random, (plan.unread + plan.readings, plan.sequences), experiment.distribution)
    states = simulator(scale * inputs, plan.unread)
    states = states + np.sqrt(experiment.noise) * random.normal(size=states.shape) if experiment.noise else states
    readout = Readout(_parts(states), experiment.regularisation)
    lags = plan.lags[0] + 1
    values = _table(inputs, plan, experiment)
    profile = np.zeros((experiment.degree, PARTS, lags))
    over = 0
    for degree, factors, targets in _targets(values, plan, lags, ordered=size > _SEARCHED):
        if degree == over:
            continue
        found = readout.recovered(targets)
        if experiment.threshold:
            found = np.where(found.mean(axis=0) > SIGNIFICANT * readout.chance, found, 0.0)
            if size > _SEARCHED and not found.any():
                over = degree
        for part, row in enumerate(found):
            np.add.at(profile[degree - 1, part], longest_lag(factors, lags), row)
    totals = profile.sum(axis=(0, 2))
    # Each pair of parts is used twice, with the roles of training and scoring exchanged: half as many are independent.
    stderr = float(totals.std(ddof=1)) * np.sqrt(2 / PARTS)
    mean = profile.mean(axis=1)
    return Estimate(
        mean, float(totals.mean()), float(stderr), readout.chance, size, _settled(mean[0], readout.chance), not over
    )


def _plan(experiment: EstimateSettings, size: int) -> _Plan:
    samples = max(8192, 16 * size) if experiment.samples is None else experiment.samples
    least = 2 * PARTS * (size + 2)
    if samples < least:
        raise expected("samples", f"at least {least} for {size} units", samples)
    longest = min(2 * size, 512) if experiment.lag is None else experiment.lag
    if experiment.horizon is not None:
        longest = experiment.horizon - 1 if experiment.lag is None else experiment.lag
    lags = [longest] + [_affordable(degree, longest, experiment.lag) for degree in range(2, experiment.degree + 1)]
    if experiment.horizon is not None:
        return _Plan(lags, experiment.horizon - 1, 1, -(-samples // PARTS) * PARTS)
    washout = longest + 100 if experiment.washout is None else experiment.washout
    if washout < longest:
        raise expected("washout", f"at least lag = {longest}", washout)
    return _Plan(lags, washout, -(-samples // SEQUENCES), SEQUENCES)


def _affordable(degree: int, longest: int, asked: int | None) -> int:
    """Return the longest lag of products of a degree: what was asked for, else as far as `MOST_PRODUCTS` reach."""
    if asked is None:
        while longest > 0 and count(degree, longest) > MOST_PRODUCTS:
            longest -= 1
    return longest


def _require_memory(plan: _Plan, size: int, degree: int) -> None:
    samples = plan.readings * plan.sequences
    rows = (degree + 1) * (plan.lags[0] + 1)
    need = 8 * (samples * (5 * size + rows + 2 * CHUNK) + (plan.unread + plan.readings) * plan.sequences)
    products_of = sum(count(d, lag) * d * 8 for d, lag in enumerate(plan.lags, start=1))
    require(
        f"memory_capacity with {samples} samples of {size} units and lag {plan.lags[0]}",
        need + products_of,
        "fewer samples, a smaller degree or a shorter lag would fit",
    )


def _parts(series: Float[np.ndarray, "read batch *rest"]) -> Float[np.ndarray, "parts samples *rest"]:
    """Return the sequences in parts: no sequence is in two of them, so that parts are independent."""
    read, batch = series.shape[:2]
    moved = series.reshape(read, PARTS, batch // PARTS, *series.shape[2:]).swapaxes(0, 1)
    return moved.reshape(PARTS, read * (batch // PARTS), *series.shape[2:])


def _table(inputs: Float[np.ndarray, "time batch"], plan: _Plan, experiment: EstimateSettings) -> np.ndarray:
    lags = plan.lags[0] + 1
    past = np.stack([inputs[plan.unread - k : len(inputs) - k] for k in range(lags)], axis=2)
    flat = _parts(past).reshape(-1, lags)
    return table(flat, experiment.degree, experiment.distribution)


def _targets(values: np.ndarray, plan: _Plan, lags: int, ordered: bool) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Return all products of all degrees, some hundreds at a time: their degree, factors and values.

    `ordered` are those of short lags first: what fades is then at its end where some hundreds in a row are chance.
    """
    for degree, lag in enumerate(plan.lags, start=1):
        chosen = products(degree, lag, lags)
        if ordered:
            chosen = chosen[np.argsort(longest_lag(chosen, lags), kind="stable")]
        for start in range(0, len(chosen), CHUNK):
            factors = chosen[start : start + CHUNK]
            found = values[factors[:, 0]].copy()
            for slot in range(1, degree):
                found *= values[factors[:, slot]]
            yield degree, factors, np.ascontiguousarray(found.reshape(len(factors), PARTS, -1).transpose(1, 2, 0))


def _settled(curve: Float[np.ndarray, " lags"], chance: float) -> bool:
    """Whether the last tenth of the curve is what chance gives; its entries may err together."""
    return bool(curve[-max(1, len(curve) // 10) :].mean() <= 3 * chance)
