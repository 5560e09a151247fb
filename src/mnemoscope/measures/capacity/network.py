"""Networks under a white scalar input: their states, and their matrices where they are linear."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

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

_LOOKED = 8
"""Steps before the first reading whose states say how large each number of a state is."""


class Simulator(Protocol):
    """A network under scalar inputs."""

    def __call__(
        self, inputs: Float[np.ndarray, "time batch"], unread: int, sums: int | None = None
    ) -> Float[np.ndarray, "read batch units"]:
        """Return the states after every step but the first `unread` ones, or so many `sums` of their numbers."""


class _Sums:
    """Signed sums of the numbers of a large state, each number once and in units of its own deviation.

    Readouts of sums are readouts of the state: what they recover is a lower bound of what the state holds.
    """

    def __init__(self, before: Float[Tensor, "steps batch units"], count: int) -> None:
        generator, size = torch.Generator().manual_seed(0), before.shape[2]
        self.count = count
        self.places = (torch.randperm(size, generator=generator) % count).to(before.device)
        signs = 2.0 * torch.randint(2, (size,), generator=generator) - 1
        spread = before.flatten(0, 1).std(0)
        self.weights = torch.where(spread > 0, signs.to(before) / spread, 0.0)

    def __call__(self, states: Float[Tensor, "*any units"]) -> Float[Tensor, "*any sums"]:
        found = states.new_zeros(*states.shape[:-1], self.count)
        return found.index_add(-1, self.places, states * self.weights)


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

    def simulate(
        inputs: Float[np.ndarray, "time batch"], unread: int, sums: int | None = None
    ) -> Float[np.ndarray, "read batch units"]:
        def states() -> Iterator[Tensor]:
            state = np.zeros((inputs.shape[1], len(v)))
            with np.errstate(over="ignore", invalid="ignore"):  # said below, in one line
                for u in inputs:
                    state = state @ W.T + u[:, None] * v
                    yield torch.from_numpy(state)

        return _finite(_read(states(), len(inputs), unread, sums).numpy(), unread)

    return simulate


def network_simulator(dynamics: Dynamics, direction: Any, read: str) -> Simulator:
    """Return a network as a simulator: the scalar input enters along `direction`, nothing else does."""
    along = input_direction(dynamics, direction)

    @torch.no_grad()
    def simulate(
        inputs: Float[np.ndarray, "time batch"], unread: int, sums: int | None = None
    ) -> Float[np.ndarray, "read batch units"]:
        x = torch.as_tensor(inputs, **dynamics.factory)[..., None] * along
        flow, drive = dynamics.with_room(len(x)), _outputs if read == "output" else _states
        found = flow.guarded(lambda: _read(drive(flow, x), len(x), unread, sums))
        # States may have left the numbers before the first is read: gone through again, they say where, and from what.
        return _finite(found.cpu().numpy(), unread, lambda steps: flow.drive(x[:steps], flow.start(x.shape[1])))

    return simulate


def _outputs(dynamics: Dynamics, x: Tensor) -> Iterator[Tensor]:
    network = dynamics.network
    output: Tensor = network(x.transpose(0, 1) if network.batch_first else x)[0]
    yield from output.transpose(0, 1) if network.batch_first else output


def _states(dynamics: Dynamics, x: Tensor) -> Iterator[Tensor]:
    state = dynamics.start(x.shape[1])
    for each in x:
        state = dynamics.step(each, state)[1]
        yield dynamics.flatten(dynamics.network.readout_state(state))


def _read(
    states: Iterator[Float[Tensor, "batch units"]], steps: int, unread: int, sums: int | None
) -> Float[Tensor, "read batch units"]:
    """Return what is read, as it comes: neither a list of states nor a copy of them would fit beside it."""
    before: deque[Tensor] = deque(maxlen=_LOOKED)
    found: Tensor | None = None
    reduced: _Sums | None = None
    for t, state in enumerate(states):
        if t < unread:
            before.append(state)
            continue
        if sums is not None:
            reduced = reduced or _Sums(torch.stack(list(before) or [state]), sums)
            state = reduced(state)
        if found is None:
            found = state.new_empty(steps - unread, *state.shape)
        found[t - unread] = state
    assert found is not None
    return found


def _finite(
    states: Float[np.ndarray, "read batch units"], unread: int, again: Callable[[int], object] = lambda steps: None
) -> Float[np.ndarray, "read batch units"]:
    sizes = np.array([np.abs(each).max() for each in states])
    if np.isfinite(sizes).all():
        return states
    step = int(np.flatnonzero(~np.isfinite(sizes))[0])
    again(unread + step + 1)
    last = f", after numbers of up to {sizes[step - 1]:.3g}" if step else ""
    raise UserError(
        f"{WHAT} needs states that stay finite, and these overflow at step {unread + step + 1}{last}; take a shorter "
        "horizon or a smaller scale"
    )
