"""mlstm: the matrix memory of xLSTM, with exponential gates."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.nn.block import Heads, split_heads
from mnemoscope.nn.initialisers import uniform
from mnemoscope.nn.ops.gates import gate
from mnemoscope.nn.ops.linear_attention import linear_attention
from mnemoscope.nn.ops.max_scan import max_scan
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["MLSTM", "MLSTMState"]


class MLSTMState(NamedTuple):
    """C and n, both divided by exp(m), and m: (B, heads, d_k, d_v), (B, heads, d_k), (B, heads)."""

    memory: Tensor
    normaliser: Tensor
    scale: Tensor


@network(
    "mlstm",
    family="linear attention",
    equations=(
        "C_t = f_t C_{t-1} + i_t k_t v_t^T, n_t = f_t n_{t-1} + i_t k_t, for each head",
        "h_t = o_t * (C_t^T q_t) / max(|n_t . q_t|, 1), o_t = sigmoid(W_o x_t + b_o)",
        "f_t = sigmoid(w_f x_t + b_f), i_t = exp(w_i x_t + b_i), q_t, k_t, v_t = W x_t, k_t over sqrt(d_k)",
    ),
    state="n^2/heads + n + heads",
    references=("beck2024",),
    notes=("The state holds C and n divided by exp(m), m_t = max(log f_t + m_{t-1}, log i_t), as the paper does.",),
)
class MLSTM(Heads):
    """xLSTM's cell with a matrix memory; the weights have the rows of q, k, v and o, those of the gates of i and f."""

    transitions = "non-negative"

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create the rows of q, k, v, o and of the gates."""
        heads = self.heads
        self.parameter("weight_ih", 4 * self.hidden_size, size, role="input")
        self.parameter("weight_gates", 2 * heads, size, init=uniform(1 / math.sqrt(size)), role="input")
        if self.bias:
            self.parameter("bias", self.hidden_size, role="bias")
            self.parameter("bias_gates", 2 * heads, init=_draw_gates, role="bias")

    def start_cell(self, w: Weights, batch: int, **factory: Any) -> MLSTMState:
        """Return zeros."""
        memory = super().start_cell(w, batch, **factory)
        return MLSTMState(memory, memory.new_zeros(memory.shape[:-1]), memory.new_zeros(memory.shape[:-2]))

    def drive_cell(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        """Return q, k, v, o, (.., heads, size), and log i, log f, (.., heads)."""
        parts = F.linear(x, w["weight_ih"]).chunk(4, -1)
        o = gate(torch.sigmoid(parts[3] + w["bias"] if self.bias else parts[3]))
        q, k, v, o = (split_heads(part, self.heads) for part in (*parts[:3], o))
        i, f = gate(F.linear(x, w["weight_gates"], w.get("bias_gates"))).chunk(2, -1)
        return gate(q), gate(k) / math.sqrt(self.head_size), v, o, i, F.logsigmoid(f)

    def advance_cell(self, w: Weights, a: Any, state: MLSTMState) -> tuple[Tensor, MLSTMState]:
        """Advance by one step."""
        q, k, v, o, i, f = a
        m = torch.maximum(f + state.scale, i)
        decay, share = torch.exp(f + state.scale - m)[..., None], torch.exp(i - m)[..., None]
        memory = decay[..., None] * state.memory + (share * k)[..., None] * v[..., None, :]
        normaliser = decay * state.normaliser + share * k
        found = (q[..., None, :] @ memory).squeeze(-2)
        return self._read(o, found, (q * normaliser).sum(-1), m), MLSTMState(memory, normaliser, m)

    def unroll_cell(self, w: Weights, a: Any, state: MLSTMState, lengths: Tensor | None) -> tuple[Tensor, MLSTMState]:
        """Run chunked linear attention on values with a one appended, whose sums are the normaliser."""
        q, k, v, o, i, f = a
        m, last_m = max_scan(i, f, state.scale, lengths)
        before = torch.cat([state.scale[None], m[:-1]])
        values = torch.cat([v, torch.ones_like(v[..., :1])], -1)
        start = torch.cat([state.memory, state.normaliser[..., None]], -1)
        keys = k * torch.exp(i - m)[..., None]
        found, last = linear_attention(q, keys, values, (f + before - m)[..., None], start, lengths)
        outputs = self._read(o, found[..., :-1], found[..., -1], m)
        return outputs, MLSTMState(last[..., :-1], last[..., -1], last_m)

    def _read(self, o: Tensor, found: Tensor, weight: Tensor, m: Tensor) -> Tensor:
        return (o * found / torch.maximum(weight.abs(), torch.exp(-m))[..., None]).flatten(-2)


def _draw_gates(bias: Tensor, generator: torch.Generator | None) -> None:
    """Set the bias of i to N(0, 0.01) and those of f from 3 to 6, so that heads forget at different rates."""
    heads = len(bias) // 2
    bias[:heads].normal_(0, 0.1, generator=generator)
    bias[heads:].copy_(torch.linspace(3, 6, heads))
