"""slstm: the scalar memory of xLSTM, with exponential gates that see the state."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.nn.block import Heads, split_heads
from mnemoscope.nn.initialisers import uniform
from mnemoscope.nn.ops.gates import gate
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["SLSTM", "SLSTMState"]


class SLSTMState(NamedTuple):
    """h, then c and n, both divided by exp(m), and m: (B, n) each."""

    hidden: Tensor
    cell: Tensor
    normaliser: Tensor
    scale: Tensor


@network(
    "slstm",
    family="gated",
    equations=(
        "c_t = f_t * c_{t-1} + i_t * z_t, n_t = f_t * n_{t-1} + i_t, h_t = o_t * c_t / n_t",
        "z_t = tanh(.), o_t = sigmoid(.), f_t = sigmoid(.), i_t = exp(.), each of W x_t + R h_{t-1} + b",
    ),
    state="4n",
    references=("beck2024",),
    notes=(
        "R is block-diagonal: units of one head see each other.",
        "The state holds c and n divided by exp(m), m_t = max(log f_t + m_{t-1}, log i_t), as the paper does.",
        "It has no parallel form: its gates see the state.",
    ),
)
class SLSTM(Heads):
    """xLSTM's cell with a scalar memory; the weights have the rows of z, i, f and o."""

    modes: ClassVar[tuple[str, ...]] = ("recurrent",)
    batch_axis = 1

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create W, R and b."""
        rows = 4 * self.hidden_size
        self.parameter("weight_ih", rows, size, role="input")
        bound = uniform(1 / math.sqrt(self.head_size))
        self.parameter("weight_hh", self.heads, 4, self.head_size, self.head_size, init=bound)
        if self.bias:
            self.parameter("bias", rows, init=_draw_bias, role="bias")

    def start_cell(self, w: Weights, batch: int, **factory: Any) -> SLSTMState:
        """Return zeros."""
        return SLSTMState(*(torch.zeros(batch, self.hidden_size, **factory) for _ in range(4)))

    def advance_cell(self, w: Weights, a: Tensor, state: SLSTMState) -> tuple[Tensor, SLSTMState]:
        """Advance by one step."""
        seen = torch.einsum("bhs,hgts->bght", split_heads(state.hidden, self.heads), w["weight_hh"]).flatten(1)
        z, i, f, o = (a + seen).chunk(4, -1)
        i, f, o = gate(i), gate(f), gate(o)
        f = F.logsigmoid(f) + state.scale
        m = torch.maximum(f, i)
        decay, share = torch.exp(f - m), torch.exp(i - m)
        c, n = decay * state.cell + share * torch.tanh(z), decay * state.normaliser + share
        h = torch.sigmoid(o) * c / n
        return h, SLSTMState(h, c, n, m)


def _draw_bias(bias: Tensor, generator: torch.Generator | None) -> None:
    """Set all to zero but that of f, from 3 to 6, so that units forget at different rates."""
    n = len(bias) // 4
    bias.zero_()[2 * n : 3 * n].copy_(torch.linspace(3, 6, n))
