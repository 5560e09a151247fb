"""Networks as memory capacity sees them: their states under a white input, and their matrices where they are linear."""

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
from mnemoscope.measures.dynamics import Transition, prepare
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.stack import Stack

__all__ = ["READS", "Simulator", "linear_matrices", "matrix_simulator", "network_simulator", "pair", "transition_of"]

READS = ("state", "output")
"""What the readout sees: `readout_state` (all of it: h and c of an LSTM), or what the network puts out."""

WHAT = "memory_capacity"
LINEAR = 1e-10
MOST_LINEAR_UNITS = 1024

Simulator = Callable[[Float[np.ndarray, "time batch"], int], Float[np.ndarray, "read batch units"]]
"""Takes scalar inputs and a number of steps not to be read, returns the states after each of the other steps."""


def pair(given: Any) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, " n"]] | None:
    """Return (W, v) checked if a pair was given, None for a network."""
    if isinstance(given, torch.nn.Module):
        return None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise expected("network", "a network, or a pair (W, v)", Description(f"a {type(given).__name__}"))
    W = square("W", given[0])
    return W, vector("v", given[1], len(W))


def transition_of(network: torch.nn.Module) -> Transition:
    """Return a copy of the network in float64, as pure functions; it need not be differentiable."""
    twin: Recurrent = prepare(network, what=WHAT)
    step = partial(twin.step, weights=twin.weights()) if isinstance(twin, Stack) else twin.step
    return Transition(twin, WHAT, step)


def input_direction(transition: Transition, direction: Any) -> Float[Tensor, " input"]:
    """Return the direction along which the input enters: the first channel unless one is given."""
    size = transition.input_size
    if direction is None:
        return torch.eye(size, **transition.factory)[0]
    found = vector("direction", direction, size)
    if not found.any():
        raise expected("direction", "a vector with an entry that is not zero", direction)
    return torch.as_tensor(found, **transition.factory)


def linear_matrices(
    transition: Transition, direction: Any
) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, " n"]] | None:
    """Return (W, v) of a network whose next state is an affine function of state and input; None for all others."""
    like = transition.start(1)
    size = transition.size
    read = transition.flatten(transition.network.readout_state(like)).shape[1]
    if size > MOST_LINEAR_UNITS or read != size or not _superposes(transition):
        return None
    along = input_direction(transition, direction)
    jacobians = transition.jacobians(torch.zeros(1, transition.input_size, **transition.factory), like)
    return jacobians.state[0].cpu().numpy(), (jacobians.input[0] @ along).cpu().numpy()


@torch.no_grad()
def _superposes(transition: Transition) -> bool:
    """Whether f(a + b) + f(0) = f(a) + f(b) for random states and inputs of several sizes."""
    generator = torch.Generator().manual_seed(0)
    sizes = torch.tensor([1e-2, 1e-1, 1.0, 10.0] * 2, dtype=torch.float64)[:, None]
    widths = (transition.size, transition.input_size)
    zero, a, b = (
        [
            (factor * sizes * torch.randn(8, n, generator=generator, dtype=torch.float64)).to(**transition.factory)
            for n in widths
        ]
        for factor in (0.0, 1.0, 1.0)
    )

    def after(state: Tensor, x: Tensor) -> Tensor:
        return transition.guarded(lambda: transition.advance(x, state))

    first, second, none = after(*a), after(*b), after(*zero)
    both = after(a[0] + b[0], a[1] + b[1])
    gap = (both + none - first - second).abs().amax(dim=1)
    return bool((gap <= LINEAR * (first.abs() + second.abs()).amax(dim=1)).all())


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


def network_simulator(transition: Transition, direction: Any, read: str) -> Simulator:
    """Return a network as a simulator: the scalar input enters along `direction`, nothing else does."""
    along = input_direction(transition, direction)

    @torch.no_grad()
    def simulate(inputs: Float[np.ndarray, "time batch"], unread: int) -> Float[np.ndarray, "read batch units"]:
        x = torch.as_tensor(inputs, **transition.factory)[..., None] * along
        drive = _outputs if read == "output" else _states
        return _finite(transition.guarded(lambda: drive(transition, x, unread)).cpu().numpy())

    return simulate


def _outputs(transition: Transition, x: Tensor, unread: int) -> Tensor:
    network = transition.network
    if not network.batch_first:
        output: Tensor = network(x)[0]
        return output[unread:]
    output = network(x.transpose(0, 1))[0]
    return output.transpose(0, 1)[unread:]


def _states(transition: Transition, x: Tensor, unread: int) -> Tensor:
    state = transition.start(x.shape[1])
    found = []
    for t, each in enumerate(x):
        state = transition.step(each, state)[1]
        if t >= unread:
            found.append(transition.flatten(transition.network.readout_state(state)))
    return torch.stack(found)


def _finite(states: Float[np.ndarray, "read batch units"]) -> Float[np.ndarray, "read batch units"]:
    if not np.isfinite(states).all():
        raise UserError(
            f"{WHAT} needs states that stay finite, and these overflow; take a shorter horizon or a smaller scale"
        )
    return states
