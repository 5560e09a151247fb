"""Trajectories of a network under random inputs, with the Jacobians of their steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemoscope.core import memory
from mnemoscope.measures.dynamics import Dynamics, Jacobians
from mnemoscope.measures.inputs import own_stream
from mnemoscope.nn.state import State

__all__ = ["Path", "affine", "constant_jacobians", "drive", "output_jacobians"]

_ENTRIES = 2**22
"""Entries of the Jacobians that are computed in one call: enough to fill the machine, few enough for its cache."""

_PROBES = 24
_COMPARED = 512
"""Numbers in a state up to which Jacobians themselves are compared, to see whether they are the same everywhere."""

_LINEAR = 1e-10


@dataclass(frozen=True)
class Path:
    """Several trajectories, side by side.

    Attributes
    ----------
    dynamics
        Of the network.
    inputs
        What drove it.
    states
        Before the first input, and after each.
    """

    dynamics: Dynamics
    inputs: Float[Tensor, "time batch input"]
    states: list[State]

    def jacobians(self, first: int, last: int) -> Jacobians:
        """Return the derivatives of the steps `first` to `last` (not included): time before batch in front."""
        time, batch = last - first, self.inputs.shape[1]
        at_once = max(1, _ENTRIES // (batch * self.dynamics.size**2))
        parts = [self._together(a, min(a + at_once, last)) for a in range(first, last, at_once)]
        whole = (torch.cat([getattr(part, name) for part in parts]) for name in ("state", "input"))
        return Jacobians(*(part.reshape(time, batch, *part.shape[1:]) for part in whole))

    def output_jacobians(self, first: int, last: int) -> Float[Tensor, "time batch output size"]:
        """Return dy_t/dh_{t-1} of the steps `first` to `last` (not included)."""
        batch, size = self.inputs.shape[1], self.dynamics.size
        at_once = max(1, _ENTRIES // (batch * size**2))
        parts = []
        for a in range(first, last, at_once):
            b = min(a + at_once, last)
            state = self.dynamics.join(self.states[a:b])
            parts.append(output_jacobians(self.dynamics, self.inputs[a:b].flatten(0, 1), state)[0])
        return torch.cat(parts).reshape(last - first, batch, -1, size)

    def part(self, first: int, last: int) -> Path:
        """Return some of the trajectories."""
        axis = self.dynamics.network.batch_axis
        states = [tree_map(lambda leaf: leaf.narrow(axis, first, last - first), state) for state in self.states]
        return Path(self.dynamics, self.inputs[:, first:last], states)

    def _together(self, first: int, last: int) -> Jacobians:
        state = self.dynamics.join(self.states[first:last])
        return self.dynamics.jacobians(self.inputs[first:last].flatten(0, 1), state)

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
    dynamics: Dynamics,
    *,
    steps: int,
    trajectories: int,
    scale: float,
    washout: int,
    generator: torch.Generator,
    inputs: Float[Tensor, "time batch input"] | None = None,
) -> Path:
    """Drive the network with Gaussian inputs, or after the washout with those given, each from a phase of its own.

    A network that was prepared with sequences of the user's is driven by these from the first step on.

    The washout takes between `washout` and twice as many steps, drawn for each trajectory, so that networks with a
    rhythm of their own are met at all its phases. Without inputs all trajectories would be one: then each starts up
    to a thousandth of the way to another state that occurs.
    """
    needed = 8 * trajectories * (steps + 2 * washout) * (dynamics.size + dynamics.input_size)
    fits = steps * memory.allowance() // max(needed, 1)
    memory.require(f"{dynamics.what} with {steps} steps", needed, f"horizon={fits} would fit")

    drawn_alone = inputs is None and dynamics.inputs is None
    key = (steps, trajectories, scale, washout, generator.get_state().numpy().tobytes())
    last = dynamics.known.get("path")
    if drawn_alone and last is not None and last[0] == key:  # another measure looks at the same trajectories
        generator.set_state(last[1])
        path: Path = last[2]
        return replace(path, dynamics=dynamics)
    own = None if dynamics.inputs is None else own_stream(dynamics.inputs, trajectories, generator)

    def draw(count: int) -> Tensor:
        if own is not None:
            return own(count).to(**dynamics.factory)
        drawn = torch.randn(count, trajectories, dynamics.input_size, generator=generator, dtype=torch.float64)
        return (scale * drawn).to(**dynamics.factory)

    state = dynamics.start(trajectories)
    if scale == 0 and washout:
        flat, away = (dynamics.flatten(each) for each in (state, dynamics.probe_states(trajectories, generator)))
        part = 1e-3 * torch.rand(trajectories, 1, generator=generator, dtype=torch.float64).to(flat)
        state = dynamics.unflatten(flat + part * (away - flat), state)
    if washout:
        state = dynamics.drive(draw(washout), state)[-1]
        state = _phases(dynamics, dynamics.drive(draw(washout), state), generator)
    found = Path(dynamics, draw(steps) if inputs is None else inputs, [])
    found = replace(found, states=dynamics.drive(found.inputs, state))
    if drawn_alone:
        dynamics.known["path"] = key, generator.get_state(), found
    return found


def _phases(dynamics: Dynamics, states: list[State], generator: torch.Generator) -> State:
    """Return one state for each trajectory, at a moment of its own."""
    axis = dynamics.network.batch_axis
    batch = dynamics.flatten(states[0]).shape[0]
    moments = torch.randint(len(states), (batch,), generator=generator).tolist()
    picked = [tree_map(lambda leaf, i=i: leaf.narrow(axis, i, 1), states[moment]) for i, moment in enumerate(moments)]
    return dynamics.join(picked)


def constant_jacobians(dynamics: Dynamics) -> Jacobians | None:
    """Return the derivatives of a step that are the same everywhere, or None where they differ: no linear network.

    They are compared at states that occur: under inputs of sizes from 0.001 to 100, and as the network gives them. A
    memory that grows has none: it writes to another place at every step.
    """
    if "constant" not in dynamics.known:
        dynamics.known["constant"] = _constant_jacobians(dynamics)
    found: Jacobians | None = dynamics.known["constant"]
    return found


def _constant_jacobians(dynamics: Dynamics) -> Jacobians | None:
    if dynamics.network.grows:
        return None
    generator = torch.Generator().manual_seed(0)
    if dynamics.size > _COMPARED:
        # Several Jacobians of a large state do not fit: that it is linear is seen from its values, then one is enough.
        silence = torch.zeros(1, dynamics.input_size, **dynamics.factory)
        return dynamics.jacobians(silence, dynamics.start(1)) if affine(dynamics) else None
    batch = _PROBES
    inputs, state = dynamics.probes(batch, generator)
    if not bool(dynamics.flatten(state).isfinite().all()):
        return None  # what is linear does not overflow in a few steps
    probed = dynamics.jacobians(inputs, state)
    first = Jacobians(probed.state[:1], probed.input[:1])
    if not _alike(probed, first):
        return None
    own = dynamics.jacobians(inputs, dynamics.probe_states(batch, generator))
    return first if _alike(own, first) else None


@torch.no_grad()
def affine(dynamics: Dynamics, *, held: bool = False) -> bool:
    """Whether f is affine: f of a midpoint is the midpoint of f, between states that occur and inputs of many sizes.

    A midpoint of two states is a state, also where the numbers of a state have to sum to one. With the input `held` it
    is asked of the state alone. A memory that grows never is: it writes to another place at every step.
    """
    if dynamics.network.grows:
        return False
    generator = torch.Generator().manual_seed(0)
    (x, state), (other_x, other) = dynamics.probes(16, generator), dynamics.probes(16, generator)
    other_x = x if held else other_x

    def after(x: Tensor, flat: Tensor) -> Tensor:
        return dynamics.guarded(lambda: dynamics.advance(x, flat, state))

    flat, other_flat = dynamics.flatten(state), dynamics.flatten(other)
    first, second = after(x, flat), after(other_x, other_flat)
    between = after((x + other_x) / 2, (flat + other_flat) / 2)
    gap = (2 * between - first - second).abs().amax(dim=1)
    return bool((gap <= _LINEAR * (first.abs() + second.abs()).amax(dim=1)).all())  # NaN is not below anything


def _alike(found: Jacobians, first: Jacobians) -> bool:
    for own, other in ((found.state, first.state), (found.input, first.input)):
        slack = 1e-13 * other.abs().amax()
        if not bool(((own - other).abs() <= slack).all()):
            return False
    return True


def output_jacobians(dynamics: Dynamics, inputs: Float[Tensor, "batch input"], state: State) -> tuple[Tensor, Tensor]:
    """Return dy/dh and dy/dx of one step, for a batch of states and inputs: a pullback for each output, mapped."""
    flat = dynamics.flatten(state)

    def read(h: Tensor, x: Tensor) -> Tensor:
        return dynamics.step(x, dynamics.unflatten(h, state))[0].flatten(1)

    def mapped() -> tuple[Tensor, Tensor]:
        y, pull = cast(tuple[Tensor, Any], torch.func.vjp(read, flat, inputs))
        rows = torch.eye(y.shape[1], **dynamics.factory)[:, None].expand(-1, *y.shape)
        found: tuple[Tensor, Tensor] = torch.func.vmap(pull, chunk_size=max(1, _ENTRIES // flat.numel()))(rows)
        return found

    def repeated() -> tuple[Tensor, Tensor]:
        """Pull outputs back one by one, where torch.func has no rule for a step."""
        width = dynamics.guarded(lambda: read(flat[:1], inputs[:1])).shape[1]
        rows = torch.eye(width, **dynamics.factory)[:, None].expand(-1, len(flat), -1)
        found = [dynamics.pull_back(inputs, state, torch.zeros_like(flat), row) for row in rows]
        by_state, by_input = (torch.stack(each) for each in zip(*found, strict=True))
        return by_state, by_input

    known = dynamics.known.get("mapped outputs")
    if known is None:
        known = dynamics.known["mapped outputs"] = dynamics.can(mapped)
    by_state, by_input = dynamics.guarded(mapped if known else repeated)
    return by_state.transpose(0, 1), by_input.transpose(0, 1)
