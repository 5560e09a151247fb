"""A recurrence that attends to its own past states, by its definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemoscope.nn.activation import activate
from mnemoscope.nn.ops.attention import combine, read, scores, softmax, top

__all__ = ["Inputs", "Plan", "chosen", "core_step", "naive_attentive_recurrence"]


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
    keep
        Does in place what `store` does, of one row for all examples after so many steps; None: `store` does it. Only
        where all examples have come as far and none ends before the others.
    count
        Steps before the call, where there is `keep`.
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
    keep: Callable[[Any, int, int], None] | None
    count: int
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
        h, cell = core_step(plan.phi, macro @ inputs.v.T + F.linear(x, inputs.u, inputs.b), cell, inputs.bias)
        new = plan.store(memory, h)
        fits = scores(macro @ inputs.query.T, new.states @ inputs.key.T, inputs.score, plan.heads)
        weights = plan.weigh(fits, new.steps >= 0)
        macro = combine(plan.combine, h, read(weights, new.states))
        new = plan.attended(new, weights)._replace(length=memory.length + 1)
        memory = new if plan.alive is None else chosen(plan.alive[t], new, memory)
        made.append((h, macro, cell))
    states, macros, cells = zip(*made, strict=True)
    stacked = None if cell is None else torch.stack(cells)
    return torch.stack(states), torch.stack(macros), stacked, getattr(memory, "relevance", None)


def core_step(phi: str, z: Tensor, cell: Any, bias: Any) -> tuple[Tensor, Any]:
    """Return h and the cell of an LSTM, from what the core is given before its nonlinearities."""
    if phi != "lstm":
        return activate(phi, z, bias), None
    i, f, g, o = z.chunk(4, -1)
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def chosen(alive: Tensor, new: Any, old: Any) -> Any:
    """Return the new memory of examples that have not ended, the old one of the others."""
    return tree_map(lambda a, b: torch.where(alive.reshape(-1, *[1] * (a.dim() - 1)), a, b), new, old)
