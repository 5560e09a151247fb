"""mingru and minlstm: gates that do not see the state, so that all steps can be computed at once."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.nn.block import Block
from mnemoscope.nn.ops.gates import gate
from mnemoscope.nn.ops.linear_scan import linear_scan
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["MinGRU", "MinLSTM"]


class _Minimal(Block):
    """h_t = a_t * h_{t-1} + b_t * (W_h x_t + c), with gates a and b of the input alone."""

    transitions = "non-negative"

    parts: ClassVar[tuple[str, ...]] = ("convolution", "mlp", "gate")
    gates: ClassVar[int]

    @property
    def cell_blocks(self) -> tuple[int, int, int] | None:
        """Units."""
        return self.hidden_size, 1, 1

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create the rows of the gates and of the candidate, in this order."""
        rows = (self.gates + 1) * self.hidden_size
        self.parameter("weight_ih", rows, size, role="input")
        if self.bias:
            self.parameter("bias", rows, role="bias")

    @abstractmethod
    def decay_and_share(self, gates: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Return a_t and b_t from the gates before their nonlinearities."""

    def drive_cell(self, w: Weights, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return a_t and what is added."""
        *gates, candidate = F.linear(x, w["weight_ih"], w.get("bias")).chunk(self.gates + 1, -1)
        decay, share = (gate(each) for each in self.decay_and_share(tuple(gates)))
        return decay, share * candidate

    def advance_cell(self, w: Weights, a: Any, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one step."""
        decay, added = a
        h = decay * state + added
        return h, h

    def unroll_cell(self, w: Weights, a: Any, state: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run the linear scan."""
        decay, added = a
        return linear_scan(added, decay, state, lengths)


@network(
    "mingru",
    family="gated",
    equations=("z_t = sigmoid(W_z x_t + b_z)", "h_t = (1 - z_t) * h_{t-1} + z_t * (W_h x_t + b_h)"),
    state="n",
    references=("feng2024",),
    notes=("The weights have the rows of z, then those of the candidate.",),
)
class MinGRU(_Minimal):
    """The minimal gated recurrent unit."""

    gates = 1

    def decay_and_share(self, gates: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Return 1 - z, as sigmoid of minus its argument, which keeps its digits near zero, and z."""
        return torch.sigmoid(-gates[0]), torch.sigmoid(gates[0])


@network(
    "minlstm",
    family="gated",
    equations=(
        "f_t = sigmoid(W_f x_t + b_f), i_t = sigmoid(W_i x_t + b_i)",
        "h_t = f_t / (f_t + i_t) * h_{t-1} + i_t / (f_t + i_t) * (W_h x_t + b_h)",
    ),
    state="n",
    references=("feng2024",),
    notes=("The weights have the rows of f, i and the candidate.",),
)
class MinLSTM(_Minimal):
    """The minimal long short-term memory, whose two gates share one unit of memory."""

    gates = 2

    def decay_and_share(self, gates: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Return f / (f + i) and i / (f + i), as sigmoids of log f - log i and its negative."""
        difference = F.logsigmoid(gates[0]) - F.logsigmoid(gates[1])
        return torch.sigmoid(difference), torch.sigmoid(-difference)
