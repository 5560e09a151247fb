"""Derivatives along a trajectory applied to blocks of vectors, without the Jacobian of a step ever being formed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core import memory
from mnemoscope.measures.trajectory import Path

__all__ = ["Tangents"]

_GRAPH = 24
"""Numbers that autograd keeps of one step for each number of a state: what gates and their products need."""

_APART = 1e-5
"""How far to both sides of a state differences are taken."""

Pull = Callable[[Tensor], tuple[Tensor, Tensor]]
Push = Callable[[Tensor, Tensor], Tensor]


@dataclass
class Tangents:
    r"""The steps of a path, linearised.

    .. math:: \text{pull: } (A_t^\top c,\ B_t^\top c), \qquad \text{push: } A_t v + B_t w

    with :math:`A_t` the derivative of a step by the state and :math:`B_t` that by the input. A pull is a vector-
    Jacobian product; a push is the derivative of a pull by its cotangent, and needs no forward mode. A
    step is linearised once and then applied to as many blocks as come, each in one call.

    A step that torch.func cannot map (an autograd function without rules for it) is taken by autograd with its states
    repeated instead; one whose derivative cannot be differentiated again (a custom autograd function) is pushed by
    central differences of its values, right to about nine digits, and `differenced` says so.

    Attributes
    ----------
    path
        The trajectories.
    keep
        Whether linearised steps are kept for the next sweep.
    """

    path: Path
    keep: bool = True
    _pulls: dict[int, Pull] = field(default_factory=dict, repr=False)
    _pushes: dict[int, Push] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        steps, batch = self.path.inputs.shape[:2]
        held = 8 * _GRAPH * steps * batch * self.path.dynamics.size
        self.keep = self.keep and 4 * held < memory.allowance()
        self.mapped = self.path.dynamics.can(lambda: self._mapped_pull(0)(self._probe(1)))

    def pull(
        self, t: int, block: Float[Tensor, "block batch size"]
    ) -> tuple[Float[Tensor, "block batch size"], Float[Tensor, "block batch input"]]:
        """Return the gradients at state and input of step t, from those at the state after it."""
        return self.path.dynamics.guarded(lambda: self._pull(t)(block))

    def push(
        self,
        t: int,
        block: Float[Tensor, "block batch size"],
        entry: Float[Tensor, "block batch input"] | None = None,
    ) -> Float[Tensor, "block batch size"]:
        """Return what step t makes of disturbances of the state, and of its input where they are given."""
        own = self._silent(block) if entry is None else entry
        return self.path.dynamics.guarded(lambda: self._push(t)(block, own))

    def _silent(self, block: Tensor) -> Tensor:
        return block.new_zeros(*block.shape[:2], self.path.dynamics.input_size)

    @cached_property
    def differenced(self) -> bool:
        """Whether disturbances are taken forward by differences, since derivatives cannot be differentiated again."""
        push, probe = self._mapped_push if self.mapped else self._repeated_push, self._probe(1)
        return not self.path.dynamics.can(lambda: push(0)(probe, self._silent(probe)))

    def _probe(self, count: int) -> Tensor:
        flat = self.path.dynamics.flatten(self.path.states[0])
        return flat.new_ones(count, *flat.shape)

    def _pull(self, t: int) -> Pull:
        found = self._pulls.get(t)
        if found is None:
            found = self._mapped_pull(t) if self.mapped else self._repeated_pull(t)
            if self.keep:
                self._pulls[t] = found
        return found

    def _push(self, t: int) -> Push:
        found = self._pushes.get(t)
        if found is None:
            exact = self._mapped_push if self.mapped else self._repeated_push
            found = self._differenced_push(t) if self.differenced else exact(t)
            if self.keep:
                self._pushes[t] = found
        return found

    def _step(self, t: int) -> tuple[Callable[[Tensor, Tensor], Tensor], Tensor, Tensor]:
        flow, state = self.path.dynamics, self.path.states[t]
        return (lambda h, x: flow.advance(x, h, state)), flow.flatten(state), self.path.inputs[t]

    def _mapped_pull(self, t: int) -> Pull:
        pull: Any = torch.func.vjp(*self._step(t))[1]
        return torch.func.vmap(pull)

    def _mapped_push(self, t: int) -> Push:
        step, flat, x = self._step(t)
        pull: Any = torch.func.vjp(step, flat, x)[1]
        push: Any = torch.func.vjp(pull, torch.zeros_like(flat))[1]
        return torch.func.vmap(lambda v, w: push((v, w))[0])

    def _repeated_pull(self, t: int) -> Pull:
        flow, path = self.path.dynamics, self.path
        return lambda block: flow.pull_block(path.inputs[t], path.states[t], block)

    def _repeated_push(self, t: int) -> Push:
        def push(v: Tensor, w: Tensor) -> Tensor:
            h, x, after = self._repeated(t, len(v))
            dual = torch.zeros_like(after, requires_grad=True)
            pulled = torch.autograd.grad(after, (h, x), dual, create_graph=True, materialize_grads=True)
            given = (v.flatten(0, 1), w.flatten(0, 1))
            values, along = zip(
                *(pair for pair in zip(pulled, given, strict=True) if pair[0].requires_grad), strict=True
            )
            return torch.autograd.grad(values, dual, along)[0].reshape(v.shape)

        return push

    def _differenced_push(self, t: int) -> Push:
        flow, state, x = self.path.dynamics, self.path.states[t], self.path.inputs[t]

        @torch.no_grad()
        def push(v: Tensor, w: Tensor) -> Tensor:
            count = len(v)
            like, here = flow.join([state] * count), flow.flatten(state).repeat(count, 1)
            aside, beside = v.flatten(0, 1), w.flatten(0, 1)
            size = torch.maximum(aside.abs().amax(1), beside.abs().amax(1))[:, None].clamp(min=1e-300)
            apart = _APART / size
            ends = [
                flow.advance(x.repeat(count, 1) + sign * apart * beside, here + sign * apart * aside, like)
                for sign in (1, -1)
            ]
            return ((ends[0] - ends[1]) / (2 * apart)).reshape(v.shape)

        return push

    def _repeated(self, t: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
        flow = self.path.dynamics
        state = flow.join([self.path.states[t]] * count)
        h = flow.flatten(state).detach().requires_grad_()
        x = self.path.inputs[t].repeat(count, 1).requires_grad_()
        with torch.enable_grad():
            return h, x, flow.advance(x, h, state)
