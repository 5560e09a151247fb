"""Addressing of an external memory: by content, then by place. One mechanism for slots of vectors and of matrices.

A head makes a key k, its strength beta, a gate g, weights s of the shifts and a sharpness gamma. Its weights are

    content   c_i = softmax_i(beta cos(k, M_i))
    gate      w <- g c + (1 - g) w_{t-1}
    shift     w_i <- sum_j s_j w_{i-j}, around the circle of slots
    sharpen   w_i <- w_i^gamma / sum_j w_j^gamma.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import expected, positive_int

__all__ = ["Heads", "Trace", "address", "read_heads", "shift_count", "write_heads"]

EPSILON = 1e-8
"""Added to the product of norms: a slot or a key of zeros is like no other, and has a gradient."""


class Heads(NamedTuple):
    """What heads say, after their nonlinearities.

    Attributes
    ----------
    key
        k.
    strength, gate, sharpness
        beta, g and gamma.
    shift
        s, of shifts -r .. r.
    """

    key: Float[Tensor, "batch heads width"]
    strength: Float[Tensor, "batch heads"]
    gate: Float[Tensor, "batch heads"]
    shift: Float[Tensor, "batch heads shifts"]
    sharpness: Float[Tensor, "batch heads"]

    @classmethod
    def of(cls, key: Tensor, strength: Tensor, gate: Tensor, shift: Tensor, sharpness: Tensor) -> Heads:
        """Return tanh(k), 1 + softplus(beta), sigmoid(g), softmax(s), 1 + softplus(gamma)."""
        return cls(
            torch.tanh(key),
            1 + F.softplus(strength),
            torch.sigmoid(gate),
            torch.softmax(shift, -1),
            1 + F.softplus(sharpness),
        )

    def part(self, start: int, stop: int) -> Heads:
        """Return some of the heads."""
        return Heads(*(part[:, start:stop] for part in self))


class Trace(NamedTuple):
    """What a machine did with its memory.

    Attributes
    ----------
    read, write
        Weights of the heads.
    memory
        After each step; a slot is a vector or a matrix.
    """

    read: Float[Tensor, "time batch heads slots"]
    write: Float[Tensor, "time batch heads slots"]
    memory: Float[Tensor, "time batch slots *slot"]


def address(
    memory: Float[Tensor, "batch slots width"], heads: Heads, before: Float[Tensor, "batch heads slots"]
) -> Float[Tensor, "batch heads slots"]:
    """Return the weights of heads, from the memory and their weights at the step before."""
    norms = _norm(heads.key).unsqueeze(-1) * _norm(memory).unsqueeze(1)
    alike = (heads.key @ memory.mT) / (norms + EPSILON)
    content = torch.softmax(heads.strength.unsqueeze(-1) * alike, -1)
    weights = torch.lerp(before, content, heads.gate.unsqueeze(-1))
    weights = _shifted(weights, heads.shift)
    # In logarithms: w^gamma of a small w is nothing in float32, and a sum of nothings has no quotient.
    logarithms = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
    return torch.softmax(heads.sharpness.unsqueeze(-1) * logarithms, -1)


def _norm(rows: Tensor) -> Tensor:
    """Return the length of every row; its gradient is zero at zero, and cheaper than that of `Tensor.norm`."""
    return (rows.square().sum(-1) + torch.finfo(rows.dtype).tiny).sqrt()


def _shifted(weights: Tensor, shift: Tensor) -> Tensor:
    """Return sum_j s_j w_{i-j} around the circle."""
    slots, shifts = weights.shape[-1], shift.shape[-1]
    radius = shifts // 2
    if radius == 0:
        return weights
    if radius <= slots:
        wrapped = torch.cat([weights[..., -radius:], weights, weights[..., :radius]], -1)
    else:
        wrapped = weights[..., torch.arange(-radius, slots + radius, device=weights.device) % slots]
    # wrapped[k] is slot k - r, and shift number m moves by m - r
    moved = [wrapped[..., shifts - 1 - m : shifts - 1 - m + slots] for m in range(shifts)]
    return sum(part * shift[..., m : m + 1] for m, part in enumerate(moved))  # type: ignore[return-value]


def write_heads(
    memory: Float[Tensor, "batch slots width"],
    weights: Float[Tensor, "batch heads slots"],
    erase: Float[Tensor, "batch heads width"],
    add: Float[Tensor, "batch heads width"],
) -> Float[Tensor, "batch slots width"]:
    """Return M_i prod_h (1 - w_hi e_h) + sum_h w_hi a_h."""
    if weights.shape[1] == 1:  # products of columns and rows leave one tensor of the memory's size to multiply
        kept = 1 - weights.mT @ erase
        return torch.baddbmm(memory * kept, weights.mT, add)
    kept = (1 - weights.unsqueeze(-1) * erase.unsqueeze(-2)).prod(1)
    return memory * kept + weights.mT @ add


def read_heads(
    memory: Float[Tensor, "batch slots width"], weights: Float[Tensor, "batch heads slots"]
) -> Float[Tensor, "batch heads width"]:
    """Return sum_i w_i M_i of every head."""
    return weights @ memory


def shift_count(shifts: Any) -> int:
    """Return the number of shifts, or raise the standard error unless it is odd and positive."""
    count = positive_int("shifts", shifts)
    if count % 2 == 0:
        raise expected("shifts", "an odd number: -r .. r", shifts)
    return count
