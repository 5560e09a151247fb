"""The experiment behind an estimated memory capacity: inputs, states, targets, and their sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from mnemoscope.core.arrays import non_negative, positive, vector
from mnemoscope.core.errors import choice, expected, positive_int
from mnemoscope.core.memory import require
from mnemoscope.measures.capacity.basis import DISTRIBUTIONS, count, draw, longest_lag, products, table
from mnemoscope.measures.capacity.network import Simulator
from mnemoscope.measures.capacity.readout import Readout

__all__ = ["Estimate", "Experiment", "estimate"]

PARTS = 4
SEQUENCES = 32
MOST_PRODUCTS = 4096
CHUNK = 256
SIGNIFICANT = 4.0


@dataclass(frozen=True)
class Experiment:
    """What `memory_capacity` was asked for, checked; its docstring explains each."""

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


class _Plan(NamedTuple):
    """Sizes of one experiment: longest lag of each degree, steps before the first reading, readings, sequences."""

    lags: list[int]
    unread: int
    readings: int
    sequences: int


def estimate(simulator: Simulator, experiment: Experiment, scale: float) -> Estimate:
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
    for degree, factors, targets in _targets(values, plan, lags):
        found = readout.recovered(targets)
        if experiment.threshold:
            found = np.where(found.mean(axis=0) > SIGNIFICANT * readout.chance, found, 0.0)
        for part, row in enumerate(found):
            np.add.at(profile[degree - 1, part], longest_lag(factors, lags), row)
    totals = profile.sum(axis=(0, 2))
    # Each pair of parts is used twice, with the roles of training and scoring exchanged: half as many are independent.
    stderr = float(totals.std(ddof=1)) * np.sqrt(2 / PARTS)
    mean = profile.mean(axis=1)
    return Estimate(mean, float(totals.mean()), float(stderr), readout.chance, size, _settled(mean[0], readout.chance))


def _plan(experiment: Experiment, size: int) -> _Plan:
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


def _table(inputs: Float[np.ndarray, "time batch"], plan: _Plan, experiment: Experiment) -> np.ndarray:
    lags = plan.lags[0] + 1
    past = np.stack([inputs[plan.unread - k : len(inputs) - k] for k in range(lags)], axis=2)
    flat = _parts(past).reshape(-1, lags)
    return table(flat, experiment.degree, experiment.distribution)


def _targets(values: np.ndarray, plan: _Plan, lags: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Return all products of all degrees, some hundreds at a time: their degree, factors and values."""
    for degree, lag in enumerate(plan.lags, start=1):
        chosen = products(degree, lag, lags)
        for start in range(0, len(chosen), CHUNK):
            factors = chosen[start : start + CHUNK]
            found = values[factors[:, 0]].copy()
            for slot in range(1, degree):
                found *= values[factors[:, slot]]
            yield degree, factors, np.ascontiguousarray(found.reshape(len(factors), PARTS, -1).transpose(1, 2, 0))


def _settled(curve: Float[np.ndarray, " lags"], chance: float) -> bool:
    """Whether the last tenth of the curve is what chance gives; its entries may err together."""
    return bool(curve[-max(1, len(curve) // 10) :].mean() <= 3 * chance)
