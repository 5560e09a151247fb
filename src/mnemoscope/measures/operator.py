"""Operator from all inputs of a sequence to all its outputs, and the singular values of its past-to-future blocks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core import memory
from mnemoscope.measures.dynamics import Dynamics, in_double_precision
from mnemoscope.measures.trajectory import Path, drive
from mnemoscope.nn.network import Network
from mnemoscope.nn.sequence import SequenceNetwork
from mnemoscope.nn.state import State

__all__ = ["Stateless", "Values", "can_push", "dense_operator", "dense_values", "factored_values", "step_runner"]

Runner = Callable[[Float[Tensor, "time batch input"], int], Float[Tensor, "time batch output"]]
"""Runs a batch of sequences that is so many times as large as the one it was made for."""

_OUTPUTS = {64: 32, 256: 8}
_FEW_OUTPUTS = 2
"""Outputs that are looked at alone, by the largest state; beyond it few."""

_ENTRIES = 2**22
_GRAPH = 24
"""Numbers that autograd keeps of one step for each number of a state."""
_PUSHED = 128
"""Numbers in a state beyond which no Jacobian is formed."""


class Values(NamedTuple):
    """Singular values of T[i:, :i] at every cut, (cut, batch, value); those of outputs alone, and which these are."""

    whole: Float[Tensor, "cut batch value"]
    alone: Float[Tensor, "cut batch output value"]
    chosen: list[int]


def factored_values(path: Path, places: list[int]) -> Values:
    """Find the values through the state: T[i:, :i] = O_i R_i.

    Going forwards, an orthonormal basis Q of what the inputs have reached so far is carried, as long as it is smaller
    than the state, with the factor F of R = Q F and the derivatives of every step in these bases; going backwards, a
    factor of what the outputs see of it. Orthogonal maps keep all of them no larger than the state.
    """
    reached, moves, reads = _forwards(path, set(places))
    chosen = _chosen(reads[-1].shape[1], path.dynamics.size)
    seen = rows = None
    values, alone = {}, {}
    for t in reversed(range(1, len(path.inputs))):
        move, read = moves[t], reads[t]
        own = read[:, None, chosen]
        seen = read.mT if seen is None else torch.cat([move.mT @ seen, read.mT], dim=-1)
        seen = _narrowed(seen, slack=2)
        rows = own if rows is None else torch.cat([own, (rows.flatten(1, 2) @ move).reshape(*rows.shape[:3], -1)], 1)
        if t in reached:
            values[t] = torch.linalg.svdvals(_narrowed(seen).mT @ reached[t])
            alone[t] = torch.linalg.svdvals(rows.transpose(1, 2) @ reached[t][:, None])
    return Values(_padded([values[t] for t in places]), _padded([alone[t] for t in places]), chosen)


def _forwards(path: Path, places: set[int]) -> tuple[dict[int, Tensor], list[Tensor], list[Tensor]]:
    """Return the factors F at the cuts, and of every step the derivatives of state and output in the bases."""
    size, moves, reads, reached = path.dynamics.size, [], [], {}
    # Nothing is reached before the first step; None: all of the state.
    basis: Tensor | None = torch.zeros(path.inputs.shape[1], size, 0, **path.dynamics.factory)
    factor = torch.zeros(0)
    for t, step in enumerate(_linearised(path)):
        move, entry, read = step(basis)
        moves.append(move)
        reads.append(read)
        if t in places:
            factor = _narrowed(factor)
            reached[t] = factor
        grown = torch.cat([move, entry], dim=-1)
        if grown.shape[-1] < size and basis is not None:
            basis, grown = torch.linalg.qr(grown)
            moves[-1], entry = grown[..., : move.shape[-1]], grown[..., move.shape[-1] :]
        else:
            basis = None
        factor = _narrowed(torch.cat([moves[-1] @ factor, entry], dim=-1), slack=2) if t else entry
    return reached, moves, reads


_Linearised = Callable[[Tensor | None], tuple[Tensor, Tensor, Tensor]]
"""Takes directions of the state, (batch, size, directions), None for all; returns what a step makes of them, what it
makes of its input, and what its output makes of the directions."""


def _linearised(path: Path) -> Iterator[_Linearised]:
    """Give every step of a path, linearised: by its Jacobians, or of large states by pushing directions through it."""
    steps = len(path.inputs)
    if path.dynamics.size > _PUSHED and _pushable(path):
        for t in range(steps):
            yield partial(_pushed, path, t)
        return
    at_once = max(1, _ENTRIES // (path.inputs.shape[1] * path.dynamics.size**2))
    for first in range(0, steps, at_once):
        last = min(first + at_once, steps)
        found, outputs = path.jacobians(first, last), path.output_jacobians(first, last)
        for state, entry, output in zip(found.state, found.input, outputs, strict=True):
            yield partial(_applied, state, entry, output)


def can_push(dynamics: Dynamics) -> bool:
    """Whether directions of a state can be pushed through a step, without its Jacobian."""
    generator = torch.Generator().manual_seed(0)
    return _pushable(drive(dynamics, steps=1, trajectories=1, scale=1.0, washout=0, generator=generator))


def _pushable(path: Path) -> bool:
    return path.dynamics.can(lambda: _push(path, 0, None, 1))


def _applied(state: Tensor, entry: Tensor, output: Tensor, basis: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    return (state, entry, output) if basis is None else (state @ basis, entry, output @ basis)


def _pushed(path: Path, t: int, basis: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    return path.dynamics.guarded(lambda: _push(path, t, basis, None))


def _push(path: Path, t: int, basis: Tensor | None, most: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """Push directions of the state, and each input, through a step by forward differentiation."""
    flow, state, x = path.dynamics, path.states[t], path.inputs[t]
    flat = flow.flatten(state)

    def step(h: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        y, after = flow.step(u, flow.unflatten(h, state))
        return flow.flatten(after), y.flatten(1)

    def push(v: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = torch.func.jvp(step, (flat, x), (v, w))[1]
        return found

    size, width, batch = flat.shape[1], x.shape[1], len(flat)
    if basis is None:
        along = torch.eye(most or size, size, **flow.factory)[:, None].expand(-1, batch, size)
    else:
        along = basis.permute(2, 0, 1)[:most]
    count = len(along)
    v = torch.cat([along, along.new_zeros(width, batch, size)])
    w = x.new_zeros(count + width, batch, width)
    w[count:] = torch.eye(width, **flow.factory)[:, None]
    moved, read = torch.func.vmap(push)(v, w)
    return moved[:count].permute(1, 2, 0), moved[count:].permute(1, 2, 0), read[:count].permute(1, 2, 0)


def dense_values(run: Runner, x: Float[Tensor, "time batch input"], places: list[int], size: int = 1) -> Values:
    """Find the values from the operator itself, of a network with so many numbers in its state."""
    whole = dense_operator(run, x, size)
    chosen = _chosen(whole.shape[2], 0)
    values = [torch.linalg.svdvals(whole[:, i:, :, :i].flatten(3).flatten(1, 2)) for i in places]
    alone = [torch.linalg.svdvals(whole[:, i:, chosen, :i].flatten(3).transpose(1, 2)) for i in places]
    return Values(_padded(values), _padded(alone), chosen)


def dense_operator(
    run: Runner, x: Float[Tensor, "time batch input"], size: int = 1
) -> Float[Tensor, "batch time output time_in input"]:
    """Return dy_t/dx_s for all t and s, by plain backward passes: each of a batch asks for another output."""
    steps, batch, _ = x.shape
    with torch.no_grad():
        width = run(x, 1).shape[2]
    wanted = [(t, o) for t in range(steps) for o in range(width)]
    room = memory.allowance() // (32 * _GRAPH * steps * batch * size)  # a quarter of it, of numbers in double precision
    at_once = max(1, min(len(wanted), _ENTRIES // (x.numel() * 8), room))
    rows = []
    for first in range(0, len(wanted), at_once):
        part = wanted[first : first + at_once]
        many = x.repeat(1, len(part), 1).requires_grad_()
        with torch.enable_grad():
            y = run(many, len(part)).reshape(steps, len(part), batch, width)
            picked = torch.stack([y[t, k, :, o] for k, (t, o) in enumerate(part)])
            found = torch.autograd.grad(picked.sum(), many, materialize_grads=True)[0]
        rows.append(found.reshape(steps, len(part), batch, -1).permute(1, 2, 0, 3))
    return torch.cat(rows).reshape(steps, width, batch, steps, -1).permute(2, 0, 1, 3, 4)


def step_runner(dynamics: Dynamics, start: State) -> Runner:
    """Return a recurrent network as a map of whole sequences, step by step from a state."""

    def run(x: Tensor, times: int) -> Tensor:
        state, outputs = dynamics.join([start] * times), []
        for each in x:
            y, state = dynamics.step(each, state)
            outputs.append(y.flatten(1))
        return torch.stack(outputs)

    return run


@dataclass(frozen=True)
class Stateless:
    """A network without a state, prepared for measures: a copy in float64, in eval mode.

    Attributes
    ----------
    network
        The copy.
    factory
        Its device and type.
    """

    network: SequenceNetwork
    factory: dict[str, Any]
    size: None = None

    @classmethod
    def of(cls, network: nn.Module | Dynamics, what: str, device: str | None) -> Stateless | None:
        """Prepare a network without a state, a stranger's module too; None for all others."""
        adapted: Any = network
        if isinstance(network, nn.Module) and not isinstance(network, Network):
            from mnemoscope.nn.adapt import adapt  # only strangers need it

            adapted = adapt(network)
        if not isinstance(adapted, SequenceNetwork):
            return None
        adapted.require_causal(what)
        twin: Any = copy.deepcopy(adapted).eval().requires_grad_(False)
        twin._apply(in_double_precision)
        twin = twin if device is None else twin.to(device)
        like = next(iter(twin.parameters()), torch.zeros(()))
        return cls(twin, {"device": like.device, "dtype": torch.float64})

    @property
    def input_size(self) -> int:
        """Numbers per step of the input."""
        return self.network.input_size

    def run(self, x: Float[Tensor, "time batch input"], _: int) -> Float[Tensor, "time batch output"]:
        """Run whole sequences of flat inputs."""
        shape = tuple(self.network.input_shape)
        x = x.reshape(*x.shape[:2], *shape)
        batch_first = self.network.batch_first
        y: Tensor = self.network(x.transpose(0, 1) if batch_first else x)
        return (y.transpose(0, 1) if batch_first else y).flatten(2)


def _chosen(width: int, size: int) -> list[int]:
    most = next((count for limit, count in _OUTPUTS.items() if size <= limit), _FEW_OUTPUTS)
    found: list[int] = torch.linspace(0, width - 1, min(width, most)).round().long().tolist()
    return found


def _padded(values: list[Tensor]) -> Tensor:
    longest = max(each.shape[-1] for each in values)
    return torch.stack([nn.functional.pad(each, (0, longest - each.shape[-1])) for each in values])


def _narrowed(factor: Float[Tensor, "batch size columns"], slack: int = 1) -> Float[Tensor, "batch size columns"]:
    """Return a factor of the same L L^T with no more columns than rows, once it has `slack` times as many."""
    if factor.shape[-1] <= slack * factor.shape[-2]:
        return factor
    narrow: Tensor = torch.linalg.qr(factor.mT, mode="r").R.mT
    return narrow
