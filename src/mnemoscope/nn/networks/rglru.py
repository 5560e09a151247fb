"""rglru: the real-gated linear recurrent unit of Griffin."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.nn.block import Block
from mnemoscope.nn.initialisers import uniform, zeros
from mnemoscope.nn.ops.gates import gate
from mnemoscope.nn.ops.linear_scan import linear_scan
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["RGLRU"]

_SHARPNESS = 8.0
"""c, the power of the decay at an open gate."""


@network(
    "rglru",
    family="gated",
    equations=(
        "r_t = sigmoid(W_r x_t + b_r), i_t = sigmoid(W_i x_t + b_i)",
        "a_t = sigmoid(Lambda)^(8 r_t), h_t = a_t * h_{t-1} + sqrt(1 - a_t^2) * (i_t * x_t)",
    ),
    state="n",
    references=("de2024",),
    notes=("Input of another width than n is projected to it first.",),
)
class RGLRU(Block):
    """The real-gated linear recurrent unit; the weights have the rows of r, then those of i."""

    transitions = "non-negative"

    square: ClassVar[bool] = True

    @property
    def cell_blocks(self) -> tuple[int, int, int] | None:
        """Units."""
        return self.hidden_size, 1, 1

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create the gates and Lambda."""
        n = self.hidden_size
        self.parameter("weight_ih", 2 * n, n, init=uniform(1 / math.sqrt(n)), role="input")
        if self.bias:
            self.parameter("bias", 2 * n, init=zeros, role="bias")
        self.parameter("decay", n, init=_draw_decay, role="state-space")

    def drive_cell(self, w: Weights, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return a_t and what is added."""
        r, i = gate(torch.sigmoid(F.linear(x, w["weight_ih"], w.get("bias")))).chunk(2, -1)
        log_a = _SHARPNESS * r * F.logsigmoid(w["decay"])
        return torch.exp(log_a), torch.sqrt(-torch.expm1(2 * log_a)) * i * x

    def advance_cell(self, w: Weights, a: Any, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one step."""
        decay, added = a
        h = decay * state + added
        return h, h

    def unroll_cell(self, w: Weights, a: Any, state: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run the linear scan."""
        decay, added = a
        return linear_scan(added, decay, state, lengths)


def _draw_decay(parameter: Tensor, generator: torch.Generator | None) -> None:
    """Draw Lambda so that the decay of an open gate is uniform on 0.9 to 0.999."""
    decay = parameter.uniform_(0.9, 0.999, generator=generator) ** (1 / _SHARPNESS)
    parameter.copy_(torch.log(decay) - torch.log1p(-decay))
