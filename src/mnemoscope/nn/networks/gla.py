"""gla: gated linear attention."""

from __future__ import annotations

import math
from typing import Unpack

import torch.nn.functional as F
from torch import Tensor

from mnemoscope.core.errors import positive_int
from mnemoscope.nn.block import HeadOptions, LinearAttention, split_heads
from mnemoscope.nn.initialisers import uniform
from mnemoscope.nn.ops.gates import gate
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["GLA"]

_TEMPERATURE = 16.0


@network(
    "gla",
    family="linear attention",
    equations=(
        "S_t = diag(alpha_t) S_{t-1} + k_t v_t^T, o_t = S_t^T q_t / sqrt(d_k), for each head",
        "q_t, k_t, v_t = W x_t, alpha_t = sigmoid(W_2 W_1 x_t + b)^(1/16)",
    ),
    state="n^2/heads",
    references=("yang2024",),
    notes=("Keys are as wide as values; in the paper they have half the width.",),
)
class GLA(LinearAttention):
    """Gated linear attention; the weights have the rows of q, k and v.

    Parameters
    ----------
    rank
        Rank of the gates' matrix W_2 W_1.
    """

    transitions = "non-negative"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        rank: int = 16,
        **common: Unpack[HeadOptions],
    ) -> None:
        self.rank = positive_int("rank", rank)
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create the rows of q, k and v, and the gates."""
        n = self.hidden_size
        self.parameter("weight_ih", 3 * n, size, role="input")
        self.parameter("weight_low", self.rank, size, init=uniform(1 / math.sqrt(size)), role="input")
        self.parameter("weight_gate", n, self.rank, init=uniform(1 / math.sqrt(self.rank)), role="input")
        if self.bias:
            self.parameter("bias", n, role="bias")

    def drive_cell(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        """Return q, k, v and log alpha, (.., heads, size)."""
        low = F.linear(F.linear(x, w["weight_low"]), w["weight_gate"], w.get("bias"))
        q, k, v = F.linear(x, w["weight_ih"]).chunk(3, -1)
        parts = (gate(q / math.sqrt(self.head_size)), gate(k), v, gate(F.logsigmoid(low)) / _TEMPERATURE)
        return tuple(split_heads(part, self.heads) for part in parts)
