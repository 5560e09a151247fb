"""Fisher memory of a network that turned out to be linear: that of its matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import UserError
from mnemoscope.measures.dynamics import Jacobians
from mnemoscope.measures.fisher.linearised import BLOCK, SETTLED, best_direction, information, propagate
from mnemoscope.measures.fisher.network_result import NetworkFisherMemory
from mnemoscope.measures.fisher.vector import FisherMemory, fisher_memory

__all__ = ["COST", "WHAT", "linear_memory", "rounded", "unsettled"]

WHAT = "network_fisher_memory"
COST = "O(trajectories T S^3) time, O(trajectories T S d) memory for S state numbers, d inputs, T lags"

_ROUNDING = 1e-5
"""By how much the spectral radius of an orthogonal matrix in single precision may exceed one."""

_ENOUGH = 1e-10
"""The rounding error up to which the sum over lags is taken as it is, without looking for a better one."""


def linear_memory(
    fixed: Jacobians,
    readout: Float[Tensor, "units size"],
    direction: Float[np.ndarray, " input"] | None,
    noise: float,
    horizon: int | None,
    steps: int,
) -> NetworkFisherMemory:
    """Return the memory of h = A h + B u s + z; `steps` are the horizon, or the longest one where that is None."""
    whole = readout.shape[0] == readout.shape[1]
    if horizon is None:
        radius = _radius(fixed)
        settles = -math.log(1e-12) < -2 * steps * math.log(max(radius, 1e-300))
        if whole:
            span = None if settles else steps
            return _of_matrices(fixed, direction, noise, span, 0.0 if settles else math.inf)
    found = propagate(_repeat(fixed, steps), readout, 1, until_settled=horizon is None)
    if found.error > _ENOUGH and whole:
        span = len(found.signals) if horizon is None else horizon
        return _of_matrices(fixed, direction, noise, span, found.tail)
    answers = found.answers()
    along = best_direction(answers) if direction is None else direction
    curve = information(answers, along)[:, 0] / noise
    return _result(curve, float(curve.sum()), along, noise, found.tail, _digits(found.error), found.units)


def _radius(fixed: Jacobians) -> float:
    radius = float(torch.linalg.eigvals(fixed.state[0]).abs().max())
    if radius > 1 + _ROUNDING:
        raise UserError(
            f"{WHAT} needs a stable network for an unlimited horizon, got a linear one of spectral radius "
            f"{radius:.6g}; give a horizon, such as horizon=100"
        )
    return radius


def _of_matrices(
    fixed: Jacobians, direction: Float[np.ndarray, " input"] | None, noise: float, horizon: int | None, tail: float
) -> NetworkFisherMemory:
    """Ask the vector measure, which sums in closed form and in extended precision where that is needed."""
    recurrent, entry = (part[0].cpu().numpy() for part in (fixed.state, fixed.input))

    def of(along: Float[np.ndarray, " input"]) -> FisherMemory:
        return fisher_memory(recurrent, entry @ along, noise=noise, horizon=horizon, matrix_lags=1)

    if direction is None:
        direction = np.ones(1)
        if entry.shape[1] > 1:
            _, vectors = np.linalg.eigh(entry.T @ of(np.eye(entry.shape[1])[0]).spatial @ entry)
            direction = vectors[:, -1] * np.sign(vectors[np.abs(vectors[:, -1]).argmax(), -1])
    found = of(direction)
    return _result(found.curve, found.total, direction, noise, tail, found.digits, len(recurrent))


def _repeat(fixed: Jacobians, steps: int) -> Iterator[Jacobians]:
    for first in range(0, steps, BLOCK):
        count = min(BLOCK, steps - first)
        yield Jacobians(*(part.expand(count, *part.shape) for part in (fixed.state, fixed.input)))


def _digits(error: float) -> int:
    return max(0, min(15, math.floor(-math.log10(error))))


def _result(
    curve: Float[np.ndarray, " lags"],
    total: float,
    direction: Float[np.ndarray, " input"],
    noise: float,
    tail: float,
    digits: int | None,
    size: int,
) -> NetworkFisherMemory:
    same = "the Jacobians, which were the same at all states that were tried, are the same everywhere"
    return NetworkFisherMemory(
        status="exact",
        digits=digits,
        assumptions=(same, *unsettled(tail)),
        cost=COST,
        curve=curve,
        total=total,
        stderr=0.0,
        curve_stderr=np.zeros_like(curve),
        direction=direction,
        totals=np.array([total]),
        horizon=len(curve),
        settled=tail < SETTLED,
        tail=tail,
        linear=True,
        noise=noise,
        size=size,
    )


def unsettled(tail: float) -> tuple[str, ...]:
    """Say what lies beyond the horizon, if anything does."""
    if tail < SETTLED:
        return ()
    share = "does not fall" if math.isinf(tail) else f"has a share of about {tail:.2g}"
    return (f"the curve is that of this horizon, and not settled: what older noise adds {share}",)


def rounded(error: float) -> tuple[str, ...]:
    """Say what rounding may have done, if that is more than a statistical error would hide."""
    if error < 1e-8:
        return ()
    return (f"rounding may have changed the numbers by a share of up to {min(error, 1.0):.1g}, as disturbances grow",)
