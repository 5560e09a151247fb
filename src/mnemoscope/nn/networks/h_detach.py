"""h-detach: an LSTM whose gradient through h is blocked at random in training."""

from __future__ import annotations

from typing import Any, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import expected
from mnemoscope.nn.ops.gates import lstm_cell
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Stack, StackOptions, Weights

__all__ = ["HDetachLSTM"]


@network(
    "h-detach-lstm",
    family="gated",
    equations=("an LSTM; in training, with probability p at each step, h_{t-1} enters the gates without its gradient",),
    state="2n",
    references=("kanuparthi2019", "hochreiter1997"),
    notes=("Its values are those of an LSTM; in training its gradient is not that of its loss, by design.",),
)
class HDetachLSTM(Stack):
    """The LSTM with stochastic blocking of the gradient through the h path.

    Parameters
    ----------
    probability
        p, with which h is detached at a step in training.
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        probability: float = 0.25,
        **common: Unpack[StackOptions],
    ) -> None:
        if isinstance(probability, bool) or not isinstance(probability, int | float) or not 0 <= probability <= 1:
            raise expected("probability", "a number between 0 and 1", probability)
        self.probability = float(probability)
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare(self, layer: Layer) -> None:
        """Create the weights of an LSTM, in torch's order of gates, with one bias."""
        self.parameter("weight_ih", 4 * self.hidden_size, layer.input_size, role="input")
        self.parameter("weight_hh", 4 * self.hidden_size, self.hidden_size, role="recurrent")
        if self.bias:
            self.parameter("bias", 4 * self.hidden_size, role="bias")

    def start(self, w: Weights, batch: int, **factory: Any) -> tuple[Tensor, Tensor]:
        """Return zeros for h and c."""
        return super().start(w, batch, **factory), super().start(w, batch, **factory)

    def drive(self, w: Weights, x: Float[Tensor, "*time batch input"]) -> tuple[Tensor, Tensor]:
        """Return W x + b, and for each step whether the gradient passes through h."""
        a: Tensor = super().drive(w, x)
        steps = (*a.shape[:-2], 1, 1)
        passes = torch.rand(steps, device=a.device) >= self.probability if self.training else a.new_ones(steps).bool()
        return a, passes

    def advance(
        self, w: Weights, a: tuple[Tensor, Tensor], state: tuple[Tensor, Tensor]
    ) -> tuple[Float[Tensor, "batch n"], tuple[Tensor, Tensor]]:
        """Advance by one step."""
        driven, passes = a
        h, c = state
        h = torch.where(passes, h, h.detach())
        return lstm_cell(driven + F.linear(h, w["weight_hh"]), c)
