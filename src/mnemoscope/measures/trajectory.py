"""Trajectories under random inputs: where the measures of any network look at its Jacobians."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemoscope.core import memory
from mnemoscope.measures.dynamics import Jacobians, Transition
from mnemoscope.nn.state import State

__all__ = ["Path", "constant_jacobians", "drive"]

_ENTRIES = 2**22
"""Entries of the Jacobians that are computed in one call: enough to fill the machine, few enough for its cache."""

_PROBES = 24


@dataclass(frozen=True)
class Path:
    """Several trajectories, side by side.

    Attributes
    ----------
    transition
        Of the network.
    inputs
        What drove it.
    states
        Before the first input, and after each.
    """

    transition: Transition
    inputs: Float[Tensor, "time batch input"]
    states: list[State]

    def jacobians(self, first: int, last: int) -> Jacobians:
        """Return the derivatives of the steps `first` to `last` (not included): time before batch in front."""
        time, batch = last - first, self.inputs.shape[1]
        at_once = max(1, _ENTRIES // (batch * self.transition.size**2))
        parts = [self._together(a, min(a + at_once, last)) for a in range(first, last, at_once)]
        whole = (torch.cat([getattr(part, name) for part in parts]) for name in ("state", "input"))
        return Jacobians(*(part.reshape(time, batch, *part.shape[1:]) for part in whole))

    def _together(self, first: int, last: int) -> Jacobians:
        state = self.transition.join(self.states[first:last])
        return self.transition.jacobians(self.inputs[first:last].flatten(0, 1), state)

    def forwards(self, first: int, every: int) -> Iterator[Jacobians]:
        """Yield the derivatives of `every` steps after the other, from step `first` to the end."""
        steps = self.inputs.shape[0]
        for a in range(first, steps, every):
            yield self.jacobians(a, min(a + every, steps))

    def backwards(self, every: int) -> Iterator[Jacobians]:
        """Yield the derivatives of `every` steps after the other, from the end to the beginning, the last first."""
        for b in range(self.inputs.shape[0], 0, -every):
            part = self.jacobians(max(b - every, 0), b)
            yield Jacobians(part.state.flip(0), part.input.flip(0))


def drive(
    transition: Transition,
    *,
    steps: int,
    trajectories: int,
    scale: float,
    washout: int,
    generator: torch.Generator,
    inputs: Float[Tensor, "time batch input"] | None = None,
) -> Path:
    """Drive the network with Gaussian inputs, or after the washout with those given, each from a phase of its own.

    The washout takes between `washout` and twice as many steps, drawn for each trajectory, so that networks with a
    rhythm of their own are met at all its phases. Without inputs all trajectories would be one: then they start a
    thousandth apart.
    """
    needed = 8 * trajectories * (steps + 2 * washout) * (transition.size + transition.input_size)
    fits = steps * memory.allowance() // max(needed, 1)
    memory.require(f"{transition.what} with {steps} steps", needed, f"horizon={fits} would fit")

    def draw(count: int) -> Tensor:
        drawn = torch.randn(count, trajectories, transition.input_size, generator=generator, dtype=torch.float64)
        return (scale * drawn).to(**transition.factory)

    state = transition.start(trajectories)
    if scale == 0 and washout:
        flat = transition.flatten(state)
        apart = torch.randn(flat.shape, generator=generator, dtype=torch.float64).to(flat)
        state = transition.network.unflatten_state(flat + 1e-3 * apart, state)
    if washout:
        state = transition.drive(draw(washout), state)[-1]
        state = _phases(transition, transition.drive(draw(washout), state), generator)
    inputs = draw(steps) if inputs is None else inputs
    return Path(transition, inputs, transition.drive(inputs, state))


def _phases(transition: Transition, states: list[State], generator: torch.Generator) -> State:
    """Return one state for each trajectory, at a moment of its own."""
    axis = transition.network.batch_axis
    batch = transition.flatten(states[0]).shape[0]
    moments = torch.randint(len(states), (batch,), generator=generator).tolist()
    picked = [tree_map(lambda leaf, i=i: leaf.narrow(axis, i, 1), states[moment]) for i, moment in enumerate(moments)]
    return transition.join(picked)


def constant_jacobians(transition: Transition) -> Jacobians | None:
    """Return the derivatives of a step that are the same everywhere, or None where they differ: no linear network.

    They are compared at random states and inputs of sizes from 0.001 to 100, and along a short driven trajectory.
    """
    generator = torch.Generator().manual_seed(0)
    batch = _PROBES if transition.size <= 512 else 4
    path = drive(transition, steps=8, trajectories=batch // 4, scale=1.0, washout=0, generator=generator)
    like = transition.start(batch)
    flat = transition.flatten(like)
    sizes = torch.logspace(-3, 2, batch, dtype=torch.float64).to(flat).unsqueeze(1)
    states = flat + sizes * torch.randn(flat.shape, generator=generator, dtype=torch.float64).to(flat)
    inputs = sizes * torch.randn(batch, transition.input_size, generator=generator, dtype=torch.float64).to(flat)
    probed = transition.jacobians(inputs, transition.network.unflatten_state(states, like))
    first = Jacobians(probed.state[:1], probed.input[:1])
    return first if _alike(probed, first) and _alike(path.jacobians(4, 8), first) else None


def _alike(found: Jacobians, first: Jacobians) -> bool:
    for own, other in ((found.state, first.state), (found.input, first.input)):
        slack = 1e-13 * other.abs().amax()
        if not bool(((own - other).abs() <= slack).all()):
            return False
    return True
