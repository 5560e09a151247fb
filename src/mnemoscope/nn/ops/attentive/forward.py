"""Forward pass of a recurrence that attends to its past, each state kept once."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemoscope.nn.ops.attention import combine, read
from mnemoscope.nn.ops.attentive.definition import Inputs, Plan, chosen, core_step
from mnemoscope.nn.ops.attentive.slots import Alignment, Rows, numbers

__all__ = ["Forward"]


class Forward:
    """All steps, with what is kept of them."""

    def __init__(self, plan: Plan, given: Inputs) -> None:
        self.plan, self.given = plan, given
        (self.steps, self.batch), self.first, self.width = given.x.shape[:2], given.rows.shape[0], given.key.shape[0]
        self.align = Alignment(plan, given)
        self.table = given.x.new_empty(self.first + self.steps, self.batch, 2 * self.width)
        self.key = given.key.T * self.align.key_factor
        self.table[: self.first] = torch.cat([given.rows, given.rows @ self.key], -1)
        self.macros: list[Tensor] = []
        self.cells: list[Tensor] = []
        self.weights: list[Tensor] = []
        self.index: list[Tensor] = []
        self.filled: list[Tensor] = []

    def run(self, memory: Any) -> Any:
        """Fill the table and return the last memory."""
        plan, given, n = self.plan, self.given, self.width
        into = torch.cat([given.v, given.query * self.align.query_factor]).T.contiguous()
        driven = F.linear(given.x, given.u, given.b).unbind(0)
        macro, cell = given.macro, given.cell
        self.examples = numbers(memory.steps[:, :1].to(memory.states.dtype))
        if plan.keep is not None:
            memory = tree_map(lambda part: part.clone(memory_format=torch.contiguous_format), memory)
        for t, (a, row) in enumerate(zip(driven, self.table[self.first :].unbind(0), strict=True)):
            both = macro @ into
            z, query = both[:, : len(given.v)], both[:, len(given.v) :]
            h, cell = core_step(plan.phi, z + a, cell, given.bias)
            row[:, :n], row[:, n:] = h, h @ self.key
            new = self._stored(memory, t)
            found, filled = self._slots(new, t)
            near = found.take(self.table)
            weights = plan.weigh(self.align.forward(query, near[..., n:])[0], filled)
            macro = combine(plan.combine, h, read(weights, near[..., :n]))
            new = plan.attended(new, weights)._replace(length=memory.length + 1)
            memory = new if plan.alive is None else chosen(plan.alive[t], new, memory)
            self.macros.append(macro)
            self.weights.append(weights)
            if cell is not None:
                self.cells.append(cell)
        return memory

    def _stored(self, memory: Any, t: int) -> Any:
        if self.plan.keep is None:
            return self.plan.store(memory, memory.states.new_full((self.batch, 1), self.first + t))
        self.plan.keep(memory, self.first + t, self.plan.count + t)
        return memory

    def _slots(self, memory: Any, t: int) -> tuple[Rows, Tensor | None]:
        m = self.plan.slots(t + 1)
        index = memory.states[:, :m, 0]
        if self.plan.keep is not None and not self.plan.in_order:
            index = index.clone()
        filled = None if t + 1 >= self.plan.full else memory.steps[:, :m] >= 0
        if not self.plan.in_order:
            self.index.append(index)
        if filled is not None and self.plan.top is not None:
            self.filled.append(filled)
        return Rows(index, self.plan.in_order, self.examples), filled
