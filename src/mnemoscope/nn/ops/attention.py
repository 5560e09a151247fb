"""Attention to slots of a memory: how a query fits them, what weights they get, what is read.

A memory has m slots for each of B examples, with states (B, m, n) and keys (B, m, n); `heads` parts of the n units have
weights (B, heads, m) of their own.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["combine", "cut_heads", "join_heads", "read", "score_columns", "scores", "softmax", "top", "top_backward"]


def scores(query: Tensor, keys: Tensor, v: Tensor | None, heads: int) -> Tensor:
    """Return how a query (B, n) fits keys (B, m, n), (B, heads, m): additive with v (n), else the scaled product."""
    if v is not None:
        return (torch.tanh(query.unsqueeze(1) + keys) @ score_columns(v, heads)).mT
    q, k = cut_heads(query.unsqueeze(1), heads), cut_heads(keys, heads)
    return (q @ k.mT).squeeze(-2) / math.sqrt(q.shape[-1])


def read(weights: Tensor, states: Tensor) -> Tensor:
    """Return sum_i alpha_i h_i of states (B, m, n), each head on its part of the units."""
    if weights.shape[1] == 1:
        return torch.matmul(weights, states).squeeze(1)
    return (weights.unsqueeze(-2) @ cut_heads(states, weights.shape[1])).squeeze(-2).flatten(1)


def combine(how: str, h: Tensor, c: Tensor) -> Tensor:
    """Return the macro-state: h + c, (h + c)/2 or [h, c]."""
    if how == "concat":
        return torch.cat([h, c], -1)
    return h + c if how == "sum" else (h + c) / 2


def softmax(scores: Tensor, filled: Tensor | None) -> Tensor:
    """Return the softmax over the slots that are filled, of scores (B, heads, m) and a mask (B, m); None: all are."""
    return torch.softmax(scores if filled is None else torch.where(filled.unsqueeze(1), scores, -torch.inf), -1)


def top(count: int, scores: Tensor, filled: Tensor) -> Tensor:
    """Return relu(e - e_(count+1)), normalised: e_(k) is the k-th largest score, the least where there are fewer.

    Where no score is above it, all weights are zero.
    """
    excess = _excess(count, scores, filled)[0]
    total = excess.sum(-1, keepdim=True)
    return excess / torch.where(total > 0, total, 1.0)


def top_backward(count: int, weights: Tensor, scores: Tensor, filled: Tensor, g: Tensor) -> Tensor:
    """Return the gradient of the scores from that of the weights."""
    excess, place = _excess(count, scores, filled)
    total = excess.sum(-1, keepdim=True)
    g = (g - (weights * g).sum(-1, keepdim=True)) / torch.where(total > 0, total, 1.0) * (excess > 0)
    return g.scatter_add(-1, place, -g.sum(-1, keepdim=True))


def _excess(count: int, scores: Tensor, filled: Tensor) -> tuple[Tensor, Tensor]:
    """Return relu(e - e_(count+1)) and where that score is."""
    filled = filled.unsqueeze(1).expand_as(scores)
    ordered, order = torch.where(filled, scores, -torch.inf).sort(-1, descending=True)
    rank = (filled.sum(-1, keepdim=True) - 1).clamp(0, count)
    least = ordered.gather(-1, rank)
    least = torch.where(filled.any(-1, keepdim=True), least, 0.0)
    return torch.relu(torch.where(filled, scores - least, 0.0)), order.gather(-1, rank)


def score_columns(v: Tensor, heads: int) -> Tensor:
    """Return v as a matrix (n, heads), each head's part in its own column."""
    if heads == 1:
        return v.unsqueeze(-1)
    units = torch.arange(len(v), device=v.device) // (len(v) // heads)
    return v.unsqueeze(-1) * (units[:, None] == torch.arange(heads, device=v.device))


def cut_heads(states: Tensor, heads: int) -> Tensor:
    """Return (B, m, n) as (B, heads, m, n / heads)."""
    return states.reshape(*states.shape[:-1], heads, states.shape[-1] // heads).transpose(-3, -2)


def join_heads(parts: Tensor) -> Tensor:
    """Invert `cut_heads`."""
    return parts.transpose(-3, -2).flatten(-2)
