"""Memory of a network under sequences of one's own: what a linear readout recovers of each past input."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import UserError
from mnemoscope.measures.capacity.estimate import PARTS, SEQUENCES, SIGNIFICANT, EstimateSettings
from mnemoscope.measures.capacity.network import WHAT, input_direction
from mnemoscope.measures.capacity.readout import Readout
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.inputs import own_stream

__all__ = ["Recovered", "recovered"]

_SETTLE = 100
"""Steps before the first state is read, besides the longest lag."""

_RIDGE = 1e-7


class Recovered:
    """Shares of the variance of u(t-k) that are recovered, k = 0, 1, ..; their sum, its error, and chance."""

    def __init__(self, shares: Float[np.ndarray, "parts lags"], chance: float) -> None:
        totals = shares.sum(1)
        self.curve, self.total = shares.mean(0), float(totals.mean())
        self.stderr = float(totals.std(ddof=1) * np.sqrt(2 / PARTS))
        self.chance = chance


def recovered(dynamics: Dynamics, asked: EstimateSettings, direction: Any) -> Recovered:
    """Drive the network with the given sequences, and read each past input off its states.

    Readouts are fitted and scored on different sequences, or on different quarters where there are fewer than four.
    """
    assert dynamics.inputs is not None
    size = dynamics.size
    lag = min(2 * size, 512) if asked.lag is None else asked.lag
    samples = max(8192, 16 * size) if asked.samples is None else asked.samples
    unread = lag + _SETTLE if asked.washout is None else max(asked.washout, lag)
    each = SEQUENCES // PARTS
    readings = max(-(-samples // SEQUENCES), -(-2 * (size + 2) // each))
    along = input_direction(dynamics, direction)
    generator = torch.Generator().manual_seed(asked.seed)
    states, past = [], []
    for part in _parts(dynamics.inputs):
        x = own_stream(part, each, generator)(unread + readings).to(**dynamics.factory)
        driven = dynamics.drive(x, dynamics.start(each))[unread + 1 :]
        read = [dynamics.flatten(dynamics.network.readout_state(state)) for state in driven]
        states.append(torch.stack(read).flatten(0, 1).cpu().numpy())
        u = (x @ along).cpu().numpy()
        lags = [u[unread - k : len(u) - k].reshape(-1) for k in range(lag + 1)]
        past.append(np.stack(lags, axis=1))
    targets = np.stack(past)
    targets = targets - targets.mean((0, 1))
    if not (targets.std((0, 1)) > 0).all():
        raise UserError(f"{WHAT} needs inputs that move along its direction, and these are constant")
    readout = Readout(np.stack(states), _RIDGE if asked.regularisation is None else asked.regularisation)
    found = readout.recovered(np.ascontiguousarray(targets))
    if asked.threshold:
        found = np.where(found.mean(axis=0) > SIGNIFICANT * readout.chance, found, 0.0)
    return Recovered(found, readout.chance)


def _parts(sequences: Float[Tensor, "time batch input"]) -> list[Float[Tensor, "time some input"]]:
    """Return the sequences in parts of which no two share a step."""
    time, count, _ = sequences.shape
    if count >= PARTS:
        return [sequences[:, place::PARTS] for place in range(PARTS)]
    if time < PARTS:
        raise UserError(f"{WHAT} needs at least {PARTS} sequences or steps of inputs, got {count} of {time} steps")
    cuts = [time * place // PARTS for place in range(PARTS + 1)]
    return [sequences[first:last] for first, last in itertools.pairwise(cuts)]
