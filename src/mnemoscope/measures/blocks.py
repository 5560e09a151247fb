"""Transitions of a network whose state falls apart: one small matrix for each part, in place of one for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.nn.state import State

__all__ = ["Blocks", "Derivative", "Rescaled", "blocks_of"]

Derivative = Callable[[Tensor, State], Tensor]
"""`Blocks.transitions` or `Blocks.entries`."""

_PROBES = 4

_ENTRIES = 2**22
"""Numbers of derivatives that are computed in one call."""


def blocks_of(flow: Dynamics) -> Blocks | None:
    """Return the blocks that the network declares (`transition_blocks`), or None where it declares none."""
    sizes = flow.network.transition_blocks
    return None if sizes is None else Blocks(flow, *sizes)


@dataclass(frozen=True)
class Blocks:
    r"""Derivatives of one step by parts of the state: G groups of m x c matrices, each multiplied by its own A.

    .. math:: \delta H_t^{(g)} = A_t^{(g)} \delta H_{t-1}^{(g)} + B_t^{(g)} \delta x_t, \quad g = 1 .. G

    Attributes
    ----------
    flow
        The network.
    groups, rows, columns
        G, m and c; their product is the size of the state.
    """

    flow: Dynamics
    groups: int
    rows: int
    columns: int

    def transitions(self, x: Float[Tensor, "batch input"], state: State) -> Float[Tensor, "batch groups rows rows"]:
        """Return A of every group.

        A acts on all columns alike: a unit vector in each of them is one derivative for as many columns of A.
        """
        flat = self.flow.flatten(state)
        found = []
        for first in range(0, self.rows, self.columns):
            count = min(self.columns, self.rows - first)
            unit = flat.new_zeros(self.groups, self.rows, self.columns)
            places = torch.arange(count)
            unit[:, first + places, places] = 1
            moved = self._push(lambda h: self.flow.advance(x, h, state), flat, unit.flatten().expand_as(flat))
            found.append(moved.reshape(-1, self.groups, self.rows, self.columns)[..., :count])
        return torch.cat(found, -1)

    def entries(self, x: Float[Tensor, "batch input"], state: State) -> Float[Tensor, "batch groups rows wide"]:
        """Return B of every group, (m, c inputs): the derivative of the next state by the input."""
        flat, units = self.flow.flatten(state), torch.eye(x.shape[1]).to(x)

        def along(unit: Tensor) -> Tensor:
            return self._push(lambda u: self.flow.advance(u, flat, state), x, unit.expand_as(x))

        found: Tensor = self.flow.guarded(lambda: torch.func.vmap(along, out_dims=-1)(units))
        return found.reshape(len(x), self.groups, self.rows, -1)

    def _push(self, function: Callable[[Tensor], Tensor], at: Tensor, along: Tensor) -> Tensor:
        pushed: Any = self.flow.guarded(lambda: torch.func.jvp(function, (at,), (along,)))
        found: Tensor = pushed[1]
        return found

    def by_steps(
        self, derivative: Derivative, inputs: Tensor, states: list[State]
    ) -> Float[Tensor, "time batch groups rows any"]:
        """Return `transitions` or `entries` of several steps, as many of them in one call as fit."""
        time, batch, width = inputs.shape
        numbers = max(batch * self.flow.size * max(width, 1), batch * self.groups * self.rows**2)
        at_once = max(1, _ENTRIES // numbers)
        parts = [
            derivative(inputs[a : a + at_once].flatten(0, 1), self.flow.join(states[a : min(a + at_once, time)]))
            for a in range(0, time, at_once)
        ]
        return torch.cat(parts).reshape(time, batch, *parts[0].shape[1:])

    @cached_property
    def constant(self) -> tuple[Float[Tensor, "1 groups rows rows"], Float[Tensor, "1 groups rows wide"]] | None:
        """A and B where they are the same at all states that were tried: a linear network; else None."""
        if "constant blocks" not in self.flow.known:
            self.flow.known["constant blocks"] = self._constant()
        found: tuple[Tensor, Tensor] | None = self.flow.known["constant blocks"]
        return found

    def _constant(self) -> tuple[Tensor, Tensor] | None:
        x, state = self.flow.probes(_PROBES, torch.Generator().manual_seed(0))
        if not bool(self.flow.flatten(state).isfinite().all()):
            return None
        found = self.transitions(x, state), self.entries(x, state)
        for part in found:
            if not bool(((part - part[:1]).abs() <= 1e-13 * part[:1].abs().amax()).all()):
                return None
        return found[0][:1], found[1][:1]


@dataclass(frozen=True)
class Rescaled(Blocks):
    r"""The same in units of one's own for every number of the state: every column of a group is a part of its own.

    .. math:: A^{(g, j)} = D_{g j}^{-1} A^{(g)} D_{g j}, \quad B^{(g, j)} = D_{g j}^{-1} B^{(g)}_j

    Attributes
    ----------
    whole
        The blocks as the network declares them.
    scale
        D, the size of each number.
    """

    whole: Blocks
    scale: Float[Tensor, "groups columns rows"]

    @classmethod
    def of(cls, whole: Blocks, scale: Float[Tensor, " size"]) -> Rescaled:
        """Take the units of a flat state."""
        sizes = scale.reshape(whole.groups, whole.rows, whole.columns).mT
        return cls(whole.flow, whole.groups * whole.columns, whole.rows, 1, whole, sizes)

    def transitions(self, x: Float[Tensor, "batch input"], state: State) -> Float[Tensor, "batch groups rows rows"]:
        """Return A of every group and column."""
        return self._turned(self.whole.transitions(x, state))

    def entries(self, x: Float[Tensor, "batch input"], state: State) -> Float[Tensor, "batch groups rows wide"]:
        """Return B of every group and column."""
        return self._entered(self.whole.entries(x, state))

    def _turned(self, found: Tensor) -> Tensor:
        return (found[:, :, None] * (self.scale[..., None, :] / self.scale[..., :, None])).flatten(1, 2)

    def _entered(self, found: Tensor) -> Tensor:
        by_column = found.reshape(*found.shape[:3], self.whole.columns, -1).transpose(2, 3)
        entered: Tensor = (by_column / self.scale[..., None]).flatten(1, 2)
        return entered

    @cached_property
    def constant(self) -> tuple[Float[Tensor, "1 groups rows rows"], Float[Tensor, "1 groups rows wide"]] | None:
        """A and B of a linear network; else None."""
        found = self.whole.constant
        return None if found is None else (self._turned(found[0]), self._entered(found[1]))
