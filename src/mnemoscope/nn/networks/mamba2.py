"""mamba2: selective state spaces with one decay for each head (state-space duality)."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.core.errors import positive_int
from mnemoscope.nn.block import HeadOptions, Heads, split_heads
from mnemoscope.nn.initialisers import constant, uniform
from mnemoscope.nn.networks.deltanet import draw_rate, draw_step
from mnemoscope.nn.ops.gates import gate
from mnemoscope.nn.ops.linear_attention import linear_attention
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["Mamba2"]


@network(
    "mamba2",
    family="state space",
    equations=(
        "S_t = exp(-Delta_t exp(a)) S_{t-1} + Delta_t B_t v_t^T, y_t = S_t^T C_t + D v_t, for each head",
        "v_t, B_t, C_t = W x_t, Delta_t = softplus(w x_t + b); B_t and C_t are the same for all heads",
    ),
    state="n N",
    references=("dao2024",),
)
class Mamba2(Heads):
    """Selective state spaces of heads; the weights have the rows of v, B and C.

    Parameters
    ----------
    order
        N, the size of B and C: (B, heads, N, n / heads) is the state.
    """

    transitions = "non-negative"

    parts: ClassVar[tuple[str, ...]] = ("convolution", "gate")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        order: int = 64,
        **common: Unpack[HeadOptions],
    ) -> None:
        self.order = positive_int("order", order)
        super().__init__(input_size, hidden_size, num_layers, **common)

    @property
    def key_size(self) -> int | None:
        """The size of B and C."""
        return self.order

    @property
    def cell_blocks(self) -> tuple[int, int, int] | None:
        """Heads, whose matrices have one decay."""
        return self.heads, 1, self.order * self.head_size

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create the rows of v, B and C, Delta, the rates and D."""
        bound = uniform(1 / math.sqrt(size))
        self.parameter("weight_ih", self.hidden_size + 2 * self.order, size, init=bound, role="input")
        self.parameter("weight_step", self.heads, size, init=bound, role="input")
        self.parameter("step", self.heads, init=draw_step, role="state-space")
        self.parameter("log_rate", self.heads, init=draw_rate, role="state-space")
        self.parameter("weight_skip", self.heads, init=constant(1.0))

    def start_cell(self, w: Weights, batch: int, **factory: Any) -> Tensor:
        """Return matrices of zeros."""
        return torch.zeros(batch, self.heads, self.order, self.head_size, **factory)

    def drive_cell(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        """Return C, B, with one head for all, v, (.., heads, size), the decays' logarithm and Delta, (.., heads, 1)."""
        sizes = [self.hidden_size, self.order, self.order]
        v, keys, queries = torch.split(F.linear(x, w["weight_ih"]), sizes, -1)
        keys, queries = gate(keys), gate(queries)
        step = gate(F.softplus(F.linear(x, w["weight_step"], w["step"])))
        decay = -step * torch.exp(w["log_rate"])
        return queries[..., None, :], keys[..., None, :], split_heads(v, self.heads), decay[..., None], step[..., None]

    def advance_cell(self, w: Weights, a: Any, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one step."""
        q, k, v, log_decay, step = a
        state = torch.exp(log_decay)[..., None] * state + k[..., None] * (step * v)[..., None, :]
        return ((q[..., None, :] @ state).squeeze(-2) + w["weight_skip"][:, None] * v).flatten(-2), state

    def unroll_cell(self, w: Weights, a: Any, state: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run chunked linear attention with a decay for each head."""
        q, k, v, log_decay, step = a
        outputs, last = linear_attention(q, k, step * v, log_decay, state, lengths)
        skip = w["weight_skip"][:, None] * v
        return (outputs + skip).flatten(-2), last
