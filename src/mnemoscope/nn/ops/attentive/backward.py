"""Backward pass of a recurrence that attends to its past, from the states, the weights and the rows of slots."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.nn.ops.attention import combine, cut_heads, join_heads, read, top_backward
from mnemoscope.nn.ops.attentive.definition import Inputs
from mnemoscope.nn.ops.attentive.slots import Alignment, Rows, numbers

__all__ = ["Backward"]

_STEPS_AT_ONCE = 16


class Backward:
    """The gradients of all inputs, from the last step to the first."""

    def __init__(self, ctx: Any, saved: Any, g_states: Any, g_macros: Any, g_cells: Any, g_relevance: Any) -> None:
        *tensors, self.states, self.cells, weights, index, filled, self.last = saved
        self.plan, self.given = ctx.plan, Inputs(*tensors)
        self.align, self.first, batch = Alignment(ctx.plan, self.given), self.given.rows.shape[0], self.states.shape[1]
        slots = [batch * shape[2] for shape in ctx.shapes]
        split = weights.split([shape.numel() for shape in ctx.shapes])
        self.weights = [part.view(shape) for part, shape in zip(split, ctx.shapes, strict=True)]
        index = [weights.new_empty(m) for m in slots] if self.plan.in_order else index.split(slots)
        self.index = [part.view(batch, -1) for part in index]
        self.filled = None if self.plan.top is None else [part.view(batch, -1) for part in filled.split(slots)]
        examples = numbers(self.index[0]) if self.index else None
        self.found = [Rows(part, self.plan.in_order, examples) for part in self.index]
        self.before = self._macros_before()
        self.queries = self.before @ (self.given.query.T * self.align.query_factor)
        self.key = self.given.key * self.align.key_factor
        self.table = torch.cat([self.states, self.states @ self.key.T], -1)
        self.g_table = torch.zeros_like(self.table)
        if g_states is not None:
            self.g_table[self.first :, :, : self.states.shape[-1]] = g_states
        self.g_macros, self.g_cells = g_macros, g_cells
        self.g_rows = None if g_relevance is None else self._relevance_of_rows(g_relevance)
        self.g_columns: Any = 0.0

    def run(self) -> tuple[Any, ...]:
        """Return the gradients in the order of `Inputs`."""
        given, plan, first, n = self.given, self.plan, self.first, self.states.shape[-1]
        core = (_LSTMBackward if plan.phi == "lstm" else _FirstOrderBackward)(self)
        from_row = torch.cat([torch.eye(n, dtype=self.key.dtype, device=self.key.device), self.key])
        query = given.query * self.align.query_factor
        g_macro, g_cell, g_z, g_q = torch.zeros_like(given.macro), None, [], []
        rows = self.g_table.unbind(0)
        for t in reversed(range(len(given.x))):
            g_h, g_c = _split(plan.combine, g_macro if self.g_macros is None else g_macro + self.g_macros[t])
            g_query = self._attention(t, g_c)
            g_h = torch.addmm(g_h, rows[first + t], from_row)
            if self.g_cells is not None:
                g_cell = self.g_cells[t] if g_cell is None else g_cell + self.g_cells[t]
            z, g_cell = core.step(t, g_h, g_cell)
            g_macro = torch.addmm(z @ given.v, g_query, query)
            if t in plan.cut:
                g_macro, g_cell = torch.zeros_like(g_macro), None
            g_z.append(z)
            g_q.append(g_query)
        z, g_queries = torch.stack(g_z[::-1]), torch.stack(g_q[::-1])
        return (
            z @ given.u,
            _product(z, given.x),
            z.sum((0, 1)),
            core.bias(z),
            _product(z, self.before),
            _product(g_queries, self.before) * self.align.query_factor,
            _product(self.g_table[..., n:], self.states) * self.align.key_factor,
            2 * _of_columns(self.g_columns, plan.heads) if self.align.additive else None,
            g_macro,
            g_cell,
            self.g_table[:first] @ from_row,
            None if self.g_rows is None else self.g_rows[:first].T,
        )

    def _macros_before(self) -> Tensor:
        """Return s_0 .. s_{T-1}: many steps at once where all have as many slots."""
        own = self.states[self.first : -1]
        if self.plan.in_order or len({len(part[0]) for part in self.index}) > 1:
            pairs = zip(self.weights[:-1], self.found[:-1], strict=True)
            contexts = [read(weights, found.take(self.states)) for weights, found in pairs]
        else:
            contexts = []
            for t in range(0, len(own), _STEPS_AT_ONCE):
                last = min(t + _STEPS_AT_ONCE, len(own))
                flat = torch.cat([found.flat for found in self.found[t:last]])
                near = self.states.flatten(0, 1).index_select(0, flat).view(-1, self.index[0].shape[1], own.shape[-1])
                contexts += read(torch.cat(self.weights[t:last]), near).view(last - t, *own.shape[1:]).unbind(0)
        if not contexts:
            return self.given.macro.unsqueeze(0)
        made = combine(self.plan.combine, own, torch.stack(contexts))
        return torch.cat([self.given.macro.unsqueeze(0), made])

    def _relevance_of_rows(self, g: Tensor) -> Tensor:
        """Return the gradient of the weights that a row received in the buffer, (R, B)."""
        last, buffer = self.last[..., 0].long(), self.plan.buffer
        if not self.plan.screens:  # a state that has left the buffer has another score there than this sum
            g = g.clone()
            g[:, buffer:] *= (last[:, buffer:] >= buffer) & (last[:, buffer:] < self.first)
        return g.new_zeros(*self.states.shape[:2]).scatter_add(0, last.T, g.T)

    def _attention(self, t: int, g_c: Tensor) -> Tensor:
        """Add the gradients of attended states and keys of one step, and return that of the query."""
        plan, found, weights, n = self.plan, self.found[t], self.weights[t], self.states.shape[-1]
        near = found.take(self.table)
        g_near = torch.empty_like(near)
        g_heads = cut_heads(g_c.unsqueeze(1), plan.heads)
        g = (g_heads @ cut_heads(near[..., :n], plan.heads).mT).squeeze(-2)
        if plan.heads == 1:
            torch.mul(weights.mT, g_c.unsqueeze(1), out=g_near[..., :n])
        else:
            g_near[..., :n] = join_heads(weights.unsqueeze(-1) * g_heads)
        if self.g_rows is not None:
            sums = self.g_rows.gather(0, self.index[t][:, : plan.buffer].long().T).T.unsqueeze(1) / plan.heads
            g[..., : plan.buffer] += sums if plan.alive is None else sums * plan.alive[t][:, None, None]
        fits, kept = self.align.forward(self.queries[t], near[..., n:])
        if self.filled is None:
            g = weights * (g - (weights * g).sum(-1, keepdim=True))
        else:
            g = top_backward(plan.top or 0, weights, fits, self.filled[t], g)
        g_query, g_columns = self.align.backward(self.queries[t], kept, g, g_near[..., n:])
        found.add(self.g_table, g_near)
        if g_columns is not None:
            self.g_columns = self.g_columns + g_columns
        return g_query


class _FirstOrderBackward:
    def __init__(self, of: Backward) -> None:
        self.phi, self.states = of.plan.phi, of.states[of.first :]
        if of.plan.phi == "tanh":
            self.slope = 1 - self.states * self.states
        elif of.plan.phi == "identity":
            self.slope = torch.ones_like(self.states)
        else:
            self.slope = (self.states != 0).to(self.states.dtype)

    def step(self, t: int, g: Tensor, g_cell: Any) -> tuple[Tensor, Any]:
        """Return the gradient before phi."""
        return g * self.slope[t], None

    def bias(self, z: Tensor) -> Tensor | None:
        """Return the gradient of modReLU's bias."""
        return (z * torch.sgn(self.states)).sum((0, 1)) if self.phi == "modrelu" else None


class _LSTMBackward:
    def __init__(self, of: Backward) -> None:
        given = of.given
        i, f, g, o = (F.linear(given.x, given.u, given.b) + of.before @ given.v.T).chunk(4, -1)
        i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
        bent = torch.tanh(of.cells)
        earlier = torch.cat([given.cell.unsqueeze(0), of.cells[:-1]])  # type: ignore[union-attr]
        self.forget, self.to_cell, self.to_output = f, o * (1 - bent * bent), bent * o * (1 - o)
        self.to_gates = torch.cat([g * i * (1 - i), earlier * f * (1 - f), i * (1 - g * g)], -1)

    def step(self, t: int, g: Tensor, g_cell: Any) -> tuple[Tensor, Any]:
        """Return the gradients of the gates before their nonlinearities, and of the cell before."""
        now = g * self.to_cell[t] if g_cell is None else g * self.to_cell[t] + g_cell
        gates = torch.cat([now, now, now], -1) * self.to_gates[t]
        return torch.cat([gates, g * self.to_output[t]], -1), now * self.forget[t]

    def bias(self, z: Tensor) -> None:
        """Return nothing: an LSTM has no modReLU."""


def _split(how: str, g: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of h and c."""
    if how == "concat":
        h, c = g.chunk(2, -1)
        return h, c
    return (g, g) if how == "sum" else (g / 2, g / 2)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """Return the sum of outer products over all leading axes."""
    return left.flatten(0, 1).T @ right.flatten(0, 1)


def _of_columns(matrix: Tensor, heads: int) -> Tensor:
    """Return each head's part, of the column of a gradient (n, heads) that it stood in."""
    return torch.cat([part[:, i] for i, part in enumerate(matrix.chunk(heads))])
