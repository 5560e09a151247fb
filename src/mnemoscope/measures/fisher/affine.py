"""Fisher memory of networks whose Jacobians are the same everywhere: closed forms, and sums over lags."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import UserError
from mnemoscope.measures.dynamics import Jacobians
from mnemoscope.measures.fisher.conventions import trusted_digits
from mnemoscope.measures.fisher.finding import WHAT, NetworkFisherMemory, exact
from mnemoscope.measures.fisher.linearised import BLOCK, best_direction, information, propagate
from mnemoscope.measures.fisher.vector import FisherMemory, fisher_memory
from mnemoscope.measures.spectral.eigenvalues import spectral_radius

__all__ = ["linear_memory", "stable_radius"]

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
        radius = stable_radius(fixed.state)
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
    digits = trusted_digits(found.error)
    return exact(curve, float(curve.sum()), along, noise, tail=found.tail, digits=digits, size=found.units)


def stable_radius(matrices: Float[Tensor, "*many n n"]) -> float:
    """Return the largest spectral radius of some matrices, or raise where one of them grows."""
    radius = float(torch.linalg.eigvals(matrices).abs().max())
    if radius > 1 - _ROUNDING:  # eigenvalues of strongly non-normal matrices are wrong in floats: exact ones decide
        radius = max(spectral_radius(each.cpu().numpy()) for each in matrices.reshape(-1, *matrices.shape[-2:]))
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
    size = len(recurrent)
    return exact(found.curve, found.total, direction, noise, tail=tail, digits=found.digits, size=size)


def _repeat(fixed: Jacobians, steps: int) -> Iterator[Jacobians]:
    for first in range(0, steps, BLOCK):
        count = min(BLOCK, steps - first)
        yield Jacobians(*(part.expand(count, *part.shape) for part in (fixed.state, fixed.input)))
