"""hgrn2: linear attention whose keys are what its gates forget."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.nn.block import LinearAttention, split_heads
from mnemoscope.nn.initialisers import zeros
from mnemoscope.nn.ops.gates import gate
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["HGRN2"]


@network(
    "hgrn2",
    family="linear attention",
    equations=(
        "S_t = diag(f_t) S_{t-1} + (1 - f_t) v_t^T, o_t = S_t^T q_t, for each head",
        "q_t = silu(W_q x_t + b_q), v_t = W_v x_t + b_v, f_t = l + (1 - l) sigmoid(W_f x_t + b_f)",
        "lower bounds that grow with depth: l of layer k is the sum of softmax(Gamma) over the layers below it",
    ),
    state="n^2/heads",
    references=("qin2024",),
)
class HGRN2(LinearAttention):
    """Hierarchically gated linear network with an expanded state; the weights have the rows of q, f and v."""

    transitions = "non-negative"

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create the rows of q, f and v, and Gamma, which all layers share."""
        rows = 3 * self.hidden_size
        self.parameter("weight_ih", rows, size, role="input")
        if self.bias:
            self.parameter("bias", rows, role="bias")
        if layer.index == 0 and not layer.reverse:
            self.parameter("bounds", self.num_layers, self.hidden_size, init=zeros, full_name="bounds")
        else:
            layer.names["bounds"], layer.roles["bounds"] = "bounds", ""

    def drive_cell(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        """Return q, 1 - f, v and log f, (.., heads, size)."""
        q, forget, v = F.linear(x, w["weight_ih"], w.get("bias")).chunk(3, -1)
        k, log_decay = gate(torch.sigmoid(-forget)), gate(F.logsigmoid(forget))
        if w.layer.index:
            bound = torch.softmax(w["bounds"], 0)[: w.layer.index].sum(0)
            k, log_decay = (1 - bound) * k, torch.logaddexp(torch.log(bound), torch.log1p(-bound) + log_decay)
        return tuple(split_heads(part, self.heads) for part in (gate(F.silu(q)), k, v, log_decay))
