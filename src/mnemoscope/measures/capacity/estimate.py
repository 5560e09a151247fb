"""Memory capacity estimated by simulation: the experiment, its targets, and what readouts recover of them.

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
from mnemoscope.measures.capacity.readout import GramReadout, Linear, Readout

__all__ = [
    "CHUNK",
    "DISTRIBUTIONS",
    "QR",
    "SEQUENCES",
    "SUMS",
    "Estimate",
    "EstimateSettings",
    "count",
    "draw",
    "estimate",
    "longest_lag",
    "products",
    "read_of",
    "samples_for",
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


PARTS = 4
SEQUENCES = 32
MOST_PRODUCTS = 4096
CHUNK = 256
SIGNIFICANT = 4.0
QR = 512
"""Numbers in a state up to which it is factored by QR and all products are tried; beyond, by its Gram matrix, and until
some hundreds of products in a row are chance."""

_PRECISE = 1e-13
"""Square root of the ridge of states that are factored by QR."""

_GUIDES = 96
"""Products of each degree, those of short lags, by which the ridge is chosen."""

_THOROUGH = 1024
"""Numbers in a state up to which there are 16 samples for each of them; beyond, 8."""

_READ = 4096
"""Numbers in a state up to which all are read by default; beyond, `SUMS` sums of them."""
SUMS = 1024


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
    regularisation: float | None
    threshold: bool
    sums: int | None
    seed: int

    def __post_init__(self) -> None:
        positive_int("degree", self.degree)
        for name in ("horizon", "samples", "sums"):
            if getattr(self, name) is not None:
                positive_int(name, getattr(self, name))
        for name in ("lag", "washout", "seed"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0):
                raise expected(name, "a whole number of at least 0", value)
        positive("scale", self.scale)
        non_negative("noise", self.noise)
        if self.regularisation is not None:
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
    regularisation: float
    chosen: bool
    """Whether that ridge was chosen by how well it predicts."""
    whole: int
    """Numbers in the state: more than `size` where sums of them were read."""


class _Plan(NamedTuple):
    """Sizes of one experiment: longest lag of each degree, steps before the first reading, readings, sequences."""

    lags: list[int]
    unread: int
    readings: int
    sequences: int


def estimate(simulator: Simulator, experiment: EstimateSettings, scale: float) -> Estimate:
    """Drive the network with inputs of this scale and estimate its capacities."""
    whole = simulator(np.zeros((1, 1)), 0).shape[2]
    size = read_of(whole, experiment.sums)
    sums = None if size == whole else size
    plan = _plan(experiment, size)
    _require_memory(plan, size, experiment.degree)
    random = np.random.default_rng(experiment.seed)
    inputs = draw(random, (plan.unread + plan.readings, plan.sequences), experiment.distribution)
    states = simulator(scale * inputs, plan.unread, sums)
    states = states + np.sqrt(experiment.noise) * random.normal(size=states.shape) if experiment.noise else states
    lags = plan.lags[0] + 1
    values = _table(inputs, plan, experiment)
    readout, ridge = _readout(states, experiment, values, plan)
    chosen = experiment.regularisation is None and size > QR
    profile = np.zeros((experiment.degree, PARTS, lags))
    over: set[int] = set()
    for degree, factors, targets in _targets(values, plan, lags, over, ordered=size > QR):
        found = readout.recovered(targets)
        if experiment.threshold:
            found = np.where(found.mean(axis=0) > SIGNIFICANT * readout.chance, found, 0.0)
            if size > QR and not found.any():
                over.add(degree)
        for part, row in enumerate(found):
            np.add.at(profile[degree - 1, part], longest_lag(factors, lags), row)
    totals = profile.sum(axis=(0, 2))
    # Each pair of parts is used twice, with the roles of training and scoring exchanged: half as many are independent.
    stderr = float(totals.std(ddof=1)) * np.sqrt(2 / PARTS)
    mean = profile.mean(axis=1)
    settled = _settled(mean[0], readout.chance)
    return Estimate(
        mean, float(totals.mean()), float(stderr), readout.chance, size, settled, not over, ridge, chosen, whole
    )


def _readout(
    states: Float[np.ndarray, "read batch units"], experiment: EstimateSettings, values: np.ndarray, plan: _Plan
) -> tuple[Linear, float]:
    """Return the readouts of states, and their ridge: of large ones that which recovers most of some short products."""
    asked = experiment.regularisation
    if states.shape[2] <= QR:
        ridge = _PRECISE if asked is None else asked
        return Readout(_parts(states), ridge), ridge
    tried: set[int] = set()
    guide = []
    for degree, _, targets in _targets(values, plan, plan.lags[0] + 1, tried, ordered=True):
        tried.add(degree)
        guide.append(targets[:, :, :_GUIDES])
    found = GramReadout(states, PARTS, asked, np.concatenate(guide, axis=2))
    return found, found.regularisation


def read_of(size: int, sums: int | None = None) -> int:
    """Return how many numbers are read of a state: all of them, or so many sums where these are fewer."""
    return min(size, sums or (size if size <= _READ else SUMS))


def samples_for(size: int) -> int:
    """Return how many states are read by default."""
    return max(8192, 16 * size) if size <= _THOROUGH else 2 * PARTS * (size + 2)


def _plan(experiment: EstimateSettings, size: int) -> _Plan:
    samples = samples_for(size) if experiment.samples is None else experiment.samples
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
    held = 5 * samples * size if size <= QR else int(1.3 * samples * size) + 8 * size * size
    need = 8 * (held + samples * (rows + 3 * CHUNK) + (plan.unread + plan.readings) * plan.sequences)
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


def _targets(
    values: np.ndarray, plan: _Plan, lags: int, over: set[int], ordered: bool
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Return all products of all degrees, some hundreds at a time: their degree, factors and values.

    `ordered` are those of short lags first: what fades is then at its end where some hundreds in a row are chance, and
    its degree is `over`.
    """
    for degree, lag in enumerate(plan.lags, start=1):
        chosen = products(degree, lag, lags)
        if ordered:
            chosen = chosen[np.argsort(longest_lag(chosen, lags), kind="stable")]
        for start in range(0, len(chosen), CHUNK):
            if degree in over:
                break
            factors = chosen[start : start + CHUNK]
            found = values[factors[:, 0]].copy()
            for slot in range(1, degree):
                found *= values[factors[:, slot]]
            yield degree, factors, np.ascontiguousarray(found.reshape(len(factors), PARTS, -1).transpose(1, 2, 0))


def _settled(curve: Float[np.ndarray, " lags"], chance: float) -> bool:
    """Whether the last tenth of the curve is what chance gives; its entries may err together."""
    return bool(curve[-max(1, len(curve) // 10) :].mean() <= 3 * chance)
