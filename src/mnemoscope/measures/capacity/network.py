"""Networks under a white scalar input: their states, and their matrices where they are linear."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.arrays import square, vector
from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.trajectory import affine
from mnemoscope.nn.state import State

__all__ = ["READS", "Simulator", "linear_matrices", "matrix_simulator", "network_simulator", "pair", "rest"]

READS = ("state", "output")
"""What the readout sees: `readout_state` (all of it: h and c of an LSTM), or what the network puts out."""

WHAT = "memory_capacity"
MOST_LINEAR_UNITS = 1024

Simulator = Callable[[Float[np.ndarray, "time batch"], int], Float[np.ndarray, "read batch units"]]
"""Takes scalar inputs and a number of steps not to be read, returns the states after each of the other steps."""


def pair(given: Any) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, " n"]] | None:
    """Return (W, v) checked if a pair was given, None for a network."""
    if isinstance(given, torch.nn.Module | Dynamics):
        return None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise expected("network", "a network, or a pair (W, v)", Description(f"a {type(given).__name__}"))
    W = square("W", given[0])
    return W, vector("v", given[1], len(W))


def input_direction(dynamics: Dynamics, direction: Any) -> Float[Tensor, " input"]:
    """Return the direction along which the input enters: the first channel unless one is given."""
    size = dynamics.input_size
    if direction is None:
        return torch.eye(size, **dynamics.factory)[0]
    found = vector("direction", direction, size)
    if not found.any():
        raise expected("direction", "a vector with an entry that is not zero", direction)
    return torch.as_tensor(found, **dynamics.factory)


def linear_matrices(
    dynamics: Dynamics, direction: Any, linearised: bool = False
) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, " n"]] | None:
    """Return (W, v) of a network whose next state is an affine function of state and input; None for all others.

    Linearised, every network is one, at rest.
    """
    like = rest(dynamics) if linearised else dynamics.start(1)
    size = dynamics.size
    read = dynamics.flatten(dynamics.network.readout_state(like)).shape[1]
    if size > MOST_LINEAR_UNITS or read != size or not (linearised or affine(dynamics)):
        return None
    along = input_direction(dynamics, direction)
    jacobians = dynamics.jacobians(torch.zeros(1, dynamics.input_size, **dynamics.factory), like)
    return jacobians.state[0].cpu().numpy(), (jacobians.input[0] @ along).cpu().numpy()


@torch.no_grad()
def rest(flow: Dynamics, steps: int = 100_000) -> State:
    """Return the state to which silence leads."""
    state, silence = flow.start(1), torch.zeros(1, flow.input_size, **flow.factory)
    for _ in range(steps):
        before, state = flow.flatten(state), flow.guarded(partial(flow.step, silence, state))[1]
        now = flow.flatten(state)
        if float((now - before).abs().max()) <= 1e-15 * float(now.abs().max()):
            return state
    raise UserError(f"{WHAT} with linearised=True needs a state of rest, and silence leads to none in {steps} steps")


def matrix_simulator(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]) -> Simulator:
    """Return the linear network of these matrices as a simulator."""

    def simulate(inputs: Float[np.ndarray, "time batch"], unread: int) -> Float[np.ndarray, "read batch units"]:
        state = np.zeros((inputs.shape[1], len(v)))
        found = np.empty((len(inputs) - unread, *state.shape))
        with np.errstate(over="ignore", invalid="ignore"):  # said below, in one line
            for t, u in enumerate(inputs):
                state = state @ W.T + u[:, None] * v
                if t >= unread:
                    found[t - unread] = state
        return _finite(found)

    return simulate


def network_simulator(dynamics: Dynamics, direction: Any, read: str) -> Simulator:
    """Return a network as a simulator: the scalar input enters along `direction`, nothing else does."""
    along = input_direction(dynamics, direction)

    @torch.no_grad()
    def simulate(inputs: Float[np.ndarray, "time batch"], unread: int) -> Float[np.ndarray, "read batch units"]:
        x = torch.as_tensor(inputs, **dynamics.factory)[..., None] * along
        drive = _outputs if read == "output" else _states
        return _finite(dynamics.guarded(lambda: drive(dynamics, x, unread)).cpu().numpy())

    return simulate


def _outputs(dynamics: Dynamics, x: Tensor, unread: int) -> Tensor:
    network = dynamics.network
    if not network.batch_first:
        output: Tensor = network(x)[0]
        return output[unread:]
    output = network(x.transpose(0, 1))[0]
    return output.transpose(0, 1)[unread:]


def _states(dynamics: Dynamics, x: Tensor, unread: int) -> Tensor:
    state = dynamics.start(x.shape[1])
    found = []
    for t, each in enumerate(x):
        state = dynamics.step(each, state)[1]
        if t >= unread:
            found.append(dynamics.flatten(dynamics.network.readout_state(state)))
    return torch.stack(found)


def _finite(states: Float[np.ndarray, "read batch units"]) -> Float[np.ndarray, "read batch units"]:
    if not np.isfinite(states).all():
        raise UserError(
            f"{WHAT} needs states that stay finite, and these overflow; take a shorter horizon or a smaller scale"
        )
    return states
