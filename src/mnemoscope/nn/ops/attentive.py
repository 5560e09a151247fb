"""A recurrence that attends to its own past states, with a backward pass written by hand.

At every step the core makes h_t from the macro-state s_{t-1}, a memory decides which past states stay, and

    e_i = v . tanh(W s_{t-1} + U h_i),   alpha = softmax(e),   c_t = sum_i alpha_i h_i,   s_t = combine(h_t, c_t).

Autograd would keep a copy of all attended states at each step. Here each state stands once in a table of rows; memories
hold numbers of rows, and what is kept is the table, the numbers and the weights alpha. The backward pass computes s and
the scores again. tanh(z) is 2 sigmoid(2z) - 1, which is ten times as fast, and no weight feels the constant: rows of
the table are [h, 2 U h]. The naive twin is `naive_attentive_recurrence`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.utils._pytree import tree_map

from mnemoscope.nn.activation import activate
from mnemoscope.nn.ops.attention import (
    combine,
    cut_heads,
    join_heads,
    read,
    score_columns,
    scores,
    softmax,
    top,
    top_backward,
)
from mnemoscope.nn.ops.kernel import below_autograd

__all__ = ["Inputs", "Plan", "attentive_recurrence", "naive_attentive_recurrence"]


@dataclass(frozen=True, eq=False)
class Plan:
    """What is not a tensor.

    Attributes
    ----------
    phi
        The nonlinearity of a first-order core, or ``"lstm"``.
    combine, heads
        As in `combine` and `scores`.
    top
        Scores that count, as in `top`; None: the softmax of all.
    store
        Takes a memory, and the row numbers of new states (B, 1); returns the memory with them.
    attended
        Takes a memory and the weights (B, heads, m) that its slots received; returns it with their sums.
    slots
        Leading slots that may be filled after so many steps.
    buffer, screens
        Slots whose weights are added up in the memory's relevance, and whether a state that leaves them keeps its sum.
    full
        Steps of the call after which no slot of these is empty.
    in_order
        Whether slot i of every example is row i.
    alive
        Which examples have not ended, (T, B); None: all.
    cut
        Steps before which the gradient does not go back through the recurrence.
    """

    phi: str
    combine: str
    heads: int
    top: int | None
    store: Callable[[Any, Tensor], Any]
    attended: Callable[[Any, Tensor], Any]
    slots: Callable[[int], int]
    buffer: int
    screens: bool
    full: int
    in_order: bool
    alive: Tensor | None
    cut: frozenset[int]

    def weigh(self, scores: Tensor, filled: Any) -> Tensor:
        """Return the weights."""
        return softmax(scores, filled) if self.top is None else top(self.top, scores, filled)


class Inputs(NamedTuple):
    """The tensors: those that the core or the alignment does not have are None.

    Attributes
    ----------
    x, u, b
        Inputs (T, B, d), U (g, d) and what is added to U x (g).
    bias
        Of modReLU (n).
    v
        (g, s) from the macro-state to the core; g is n, or 4n for an LSTM.
    query, key, score
        W (n, s), U (n, n) and v (n) of the alignment.
    macro, cell
        s_0 (B, s) and the cell of an LSTM c_0 (B, n).
    rows
        States that the memory starts with, (R, B, n).
    relevance
        Their sums of weights, (B, m).
    """

    x: Tensor
    u: Tensor
    b: Tensor | None
    bias: Tensor | None
    v: Tensor
    query: Tensor
    key: Tensor
    score: Tensor | None
    macro: Tensor
    cell: Tensor | None
    rows: Tensor
    relevance: Tensor | None


def attentive_recurrence(plan: Plan, memory: Any, inputs: Inputs) -> tuple[Any, ...]:
    """Return h_1 .. h_T, s_1 .. s_T, the cells of an LSTM, the last relevance, and states, steps, length of the memory.

    `memory` is a named tuple whose `states` are numbers of rows (B, m, 1): those of `inputs.rows`, then h_1 .. h_T.
    """
    return _Attentive.apply(plan, memory, *inputs)  # type: ignore[no-any-return, no-untyped-call]


def naive_attentive_recurrence(plan: Plan, memory: Any, inputs: Inputs) -> tuple[Any, ...]:
    """Return states, macro-states, cells and relevance by the definition: the memory holds the states themselves."""
    macro, cell, made = inputs.macro, inputs.cell, []
    empty = memory.steps.shape[1] - inputs.rows.shape[0]
    memory = memory._replace(states=F.pad(inputs.rows.transpose(0, 1), (0, 0, 0, empty)))
    if inputs.relevance is not None:
        memory = memory._replace(relevance=inputs.relevance)
    for t, x in enumerate(inputs.x.unbind(0)):
        if t in plan.cut:
            macro, cell = macro.detach(), None if cell is None else cell.detach()
        h, cell = _core(plan.phi, macro @ inputs.v.T + F.linear(x, inputs.u, inputs.b), cell, inputs.bias)
        new = plan.store(memory, h)
        fits = scores(macro @ inputs.query.T, new.states @ inputs.key.T, inputs.score, plan.heads)
        weights = plan.weigh(fits, new.steps >= 0)
        macro = combine(plan.combine, h, read(weights, new.states))
        new = plan.attended(new, weights)._replace(length=memory.length + 1)
        memory = new if plan.alive is None else _chosen(plan.alive[t], new, memory)
        made.append((h, macro, cell))
    states, macros, cells = zip(*made, strict=True)
    stacked = None if cell is None else torch.stack(cells)
    return torch.stack(states), torch.stack(macros), stacked, getattr(memory, "relevance", None)


class _Attentive(Function):
    @staticmethod
    def forward(ctx: Any, plan: Plan, memory: Any, *tensors: Any) -> Any:
        with below_autograd():
            made = _Forward(plan, Inputs(*tensors))
            memory, start = made.run(memory), memory
        ctx.plan, ctx.memory, ctx.shapes = plan, start, [part.shape for part in made.weights]
        ctx.set_materialize_grads(False)
        weights = torch.cat([part.reshape(-1) for part in made.weights])
        index = weights.new_empty(0) if plan.in_order else torch.cat([part.reshape(-1) for part in made.index])
        filled = weights.new_empty(0) if plan.top is None else torch.cat([part.reshape(-1) for part in made.filled])
        cells = torch.stack(made.cells) if plan.phi == "lstm" else None
        states = made.table[..., : made.width].contiguous()
        whole = (memory.states, memory.steps, memory.length)
        ctx.save_for_backward(*tensors, states, cells, weights, index, filled, memory.states)
        ctx.mark_non_differentiable(*whole)
        relevance = getattr(memory, "relevance", None)
        return states[made.first :], torch.stack(made.macros), cells, relevance, *whole

    @staticmethod
    def backward(ctx: Any, *g: Any) -> Any:
        needed = ctx.needs_input_grad[2:]
        if torch.is_grad_enabled():
            return (None, None, *_again(ctx.plan, ctx.memory, ctx.saved_tensors[:12], g[:4], needed))
        with below_autograd():
            found = _Backward(ctx, *g[:4]).run()
        return (None, None, *(part if need else None for part, need in zip(found, needed, strict=True)))


def _again(plan: Plan, memory: Any, tensors: Any, g: Any, needed: Any) -> list[Tensor | None]:
    """Return the gradients by autograd through the naive twin, so that they can be differentiated again."""
    outputs = naive_attentive_recurrence(plan, memory, Inputs(*tensors))
    pairs = [(out, part) for out, part in zip(outputs, g, strict=True) if part is not None]
    wanted = [tensor for tensor, need in zip(tensors, needed, strict=True) if need]
    outputs, parts = zip(*pairs, strict=True)
    found = iter(torch.autograd.grad(outputs, wanted, parts, create_graph=True, allow_unused=True))
    return [next(found) if need else None for need in needed]


def _core(phi: str, z: Tensor, cell: Any, bias: Any) -> tuple[Tensor, Any]:
    if phi != "lstm":
        return activate(phi, z, bias), None
    i, f, g, o = z.chunk(4, -1)
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def _chosen(alive: Tensor, new: Any, old: Any) -> Any:
    return tree_map(lambda a, b: torch.where(alive.reshape(-1, *[1] * (a.dim() - 1)), a, b), new, old)


class _Alignment:
    """Scores of queries and keys that come multiplied by the factors that make them simple."""

    def __init__(self, plan: Plan, given: Inputs) -> None:
        self.heads, self.additive = plan.heads, given.score is not None
        self.query_factor = 2.0 if self.additive else math.sqrt(plan.heads / given.key.shape[0])
        self.key_factor = 2.0 if self.additive else 1.0
        self.columns = score_columns(2 * given.score, plan.heads) if given.score is not None else None

    def forward(self, query: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores (B, heads, m) but for a constant, and what the backward pass needs."""
        if self.columns is not None:
            bent = (query.unsqueeze(1) + keys).sigmoid_()
            return (bent @ self.columns).mT, bent
        return (cut_heads(query.unsqueeze(1), self.heads) @ cut_heads(keys, self.heads).mT).squeeze(-2), keys

    def backward(self, query: Tensor, kept: Tensor, g: Tensor, g_keys: Tensor) -> tuple[Tensor, Tensor | None]:
        """Write the gradient of the keys, and return those of the query and of the columns."""
        if self.columns is not None:
            pushed = g.mT * self.columns.squeeze(-1) if self.heads == 1 else g.mT @ self.columns.T
            torch.ops.aten.sigmoid_backward.grad_input(pushed, kept, grad_input=g_keys)
            return g_keys.sum(1), kept.flatten(0, 1).T @ g.mT.flatten(0, 1)
        g_keys.copy_(join_heads(g.unsqueeze(-1) @ cut_heads(query.unsqueeze(1), self.heads)))
        return join_heads(g.unsqueeze(-2) @ cut_heads(kept, self.heads)).squeeze(1), None


class _Rows:
    """The rows (B, m) that the slots of a memory point to."""

    def __init__(self, index: Tensor, in_order: bool) -> None:
        (self.batch, self.slots), self.in_order = index.shape, in_order
        if not in_order:
            examples = torch.arange(self.batch, device=index.device, dtype=index.dtype)
            self.flat = torch.add(examples[:, None], index, alpha=self.batch).view(-1)

    def take(self, table: Tensor) -> Tensor:
        """Return them as (B, m, ..)."""
        if self.in_order:
            return table[: self.slots].transpose(0, 1)
        return table.flatten(0, 1).index_select(0, self.flat).view(self.batch, self.slots, -1)

    def add(self, table: Tensor, parts: Tensor) -> None:
        """Add parts (B, m, ..) to them, in place."""
        if self.in_order:
            table[: self.slots] += parts.transpose(0, 1)
        else:
            table.view(-1, table.shape[-1]).index_add_(0, self.flat, parts.flatten(0, 1))


class _Forward:
    """All steps, with what is kept of them."""

    def __init__(self, plan: Plan, given: Inputs) -> None:
        self.plan, self.given = plan, given
        (self.steps, self.batch), self.first, self.width = given.x.shape[:2], given.rows.shape[0], given.key.shape[0]
        self.align = _Alignment(plan, given)
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
        for t, (a, row) in enumerate(zip(driven, self.table[self.first :].unbind(0), strict=True)):
            both = macro @ into
            z, query = both[:, : len(given.v)], both[:, len(given.v) :]
            h, cell = _core(plan.phi, z + a, cell, given.bias)
            row[:, :n], row[:, n:] = h, h @ self.key
            new = plan.store(memory, memory.states.new_full((self.batch, 1), self.first + t))
            found, filled = self._slots(new, t)
            near = found.take(self.table)
            weights = plan.weigh(self.align.forward(query, near[..., n:])[0], filled)
            macro = combine(plan.combine, h, read(weights, near[..., :n]))
            new = plan.attended(new, weights)._replace(length=memory.length + 1)
            memory = new if plan.alive is None else _chosen(plan.alive[t], new, memory)
            self.macros.append(macro)
            self.weights.append(weights)
            if cell is not None:
                self.cells.append(cell)
        return memory

    def _slots(self, memory: Any, t: int) -> tuple[_Rows, Tensor | None]:
        m = self.plan.slots(t + 1)
        index = memory.states[:, :m, 0]
        filled = None if t + 1 >= self.plan.full else memory.steps[:, :m] >= 0
        if not self.plan.in_order:
            self.index.append(index)
        if filled is not None and self.plan.top is not None:
            self.filled.append(filled)
        return _Rows(index, self.plan.in_order), filled


_STEPS_AT_ONCE = 16


class _Backward:
    """The gradients of all inputs, from the last step to the first."""

    def __init__(self, ctx: Any, g_states: Any, g_macros: Any, g_cells: Any, g_relevance: Any) -> None:
        *tensors, self.states, self.cells, weights, index, filled, self.last = ctx.saved_tensors
        self.plan, self.given = ctx.plan, Inputs(*tensors)
        self.align, self.first, batch = _Alignment(ctx.plan, self.given), self.given.rows.shape[0], self.states.shape[1]
        slots = [batch * shape[2] for shape in ctx.shapes]
        split = weights.split([shape.numel() for shape in ctx.shapes])
        self.weights = [part.view(shape) for part, shape in zip(split, ctx.shapes, strict=True)]
        index = [weights.new_empty(m) for m in slots] if self.plan.in_order else index.split(slots)
        self.index = [part.view(batch, -1) for part in index]
        self.filled = None if self.plan.top is None else [part.view(batch, -1) for part in filled.split(slots)]
        self.found = [_Rows(part, self.plan.in_order) for part in self.index]
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
    def __init__(self, of: _Backward) -> None:
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
    def __init__(self, of: _Backward) -> None:
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
