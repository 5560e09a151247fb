"""Slots of a memory of past states: their alignment with a query, and the rows of a table that they point to."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from mnemoscope.nn.ops.attention import cut_heads, join_heads, score_columns
from mnemoscope.nn.ops.attentive.definition import Inputs, Plan

__all__ = ["Alignment", "Rows", "numbers"]


class Alignment:
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


def numbers(index: Tensor) -> Tensor:
    """Return the numbers of the examples of an index (B, m), (B, 1)."""
    return torch.arange(len(index), device=index.device, dtype=index.dtype).unsqueeze(1)


class Rows:
    """The rows (B, m) that the slots of a memory point to."""

    def __init__(self, index: Tensor, in_order: bool, examples: Tensor | None = None) -> None:
        (self.batch, self.slots), self.in_order = index.shape, in_order
        if not in_order:
            examples = numbers(index) if examples is None else examples
            self.flat = torch.add(examples, index, alpha=self.batch).view(-1)

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
