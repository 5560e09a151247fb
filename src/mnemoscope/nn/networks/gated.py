"""torch's own LSTM and GRU, with a pure step beneath."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from mnemoscope.nn.ops.gates import lstm_cell
from mnemoscope.nn.ops.scan import transforming
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Stack, Weights

__all__ = ["GRU", "LSTM", "TorchGated"]


class TorchGated(Stack):
    """Weights named as torch names them; whole sequences go through torch's kernel.

    A transform of `torch.func` has no rule for the kernel, nor has torch.compile: there the cell's step is scanned.
    """

    gates: int

    def declare(self, layer: Layer) -> None:
        """Create torch's four tensors."""
        rows = self.gates * self.hidden_size
        self.parameter("weight_ih", rows, layer.input_size, role="input")
        self.parameter("weight_hh", rows, self.hidden_size, role="recurrent")
        if self.bias:
            self.parameter("bias_ih", rows, role="bias")
            self.parameter("bias_hh", rows, role="bias")

    def drive(self, w: Weights, x: Float[Tensor, "*time batch input"]) -> Float[Tensor, "*time batch gates"]:
        """Return W x + b."""
        return F.linear(x, w["weight_ih"], w.get("bias_ih"))

    @abstractmethod
    def kernel(self, *arguments: Any) -> Any:
        """Call torch's kernel."""

    def unroll(
        self, w: Weights, x: Float[Tensor, "time batch input"], state: Any, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch n"], Any]:
        """Run whole sequences through torch's kernel."""
        if torch.compiler.is_compiling() or transforming():
            return super().unroll(w, x, state, lengths)
        several = isinstance(state, tuple)
        hx = tuple(part.unsqueeze(0) for part in state) if several else state.unsqueeze(0)
        tail = [list(w.values()), self.bias, 1, 0.0, self.training, False]
        if lengths is None:
            y, *last = self.kernel(x, hx, *tail, False)
        else:
            packed = pack_padded_sequence(x, lengths)
            data, *last = self.kernel(packed.data, packed.batch_sizes, hx, *tail)
            y, _ = pad_packed_sequence(PackedSequence(data, packed.batch_sizes), total_length=x.shape[0])
        squeezed = tuple(part.squeeze(0) for part in last)
        return y, (squeezed if several else squeezed[0])


@network(
    "lstm",
    family="gated",
    equations=(
        "i, f, o = sigmoid(W x_t + U h_{t-1} + b), g = tanh(W_g x_t + U_g h_{t-1} + b_g)",
        "c_t = f * c_{t-1} + i * g, h_t = o * tanh(c_t)",
    ),
    state="2n",
    references=("hochreiter1997",),
    notes=("torch.nn.LSTM's own kernel and weights: its state_dict loads.",),
)
class LSTM(TorchGated):
    """Long short-term memory, torch's own; the state is the pair (h, c)."""

    gates = 4

    def kernel(self, *arguments: Any) -> Any:
        """Call torch's LSTM."""
        return torch.lstm(*arguments)

    def start(self, w: Weights, batch: int, **factory: Any) -> tuple[Tensor, Tensor]:
        """Return zeros for h and c."""
        return super().start(w, batch, **factory), super().start(w, batch, **factory)

    def advance(
        self, w: Weights, a: Float[Tensor, "batch gates"], state: tuple[Tensor, Tensor]
    ) -> tuple[Float[Tensor, "batch n"], tuple[Tensor, Tensor]]:
        """Advance by one step."""
        h, c = state
        return lstm_cell(a + F.linear(h, w["weight_hh"], w.get("bias_hh")), c)


@network(
    "gru",
    family="gated",
    equations=(
        "r, z = sigmoid(W x_t + U h_{t-1} + b), g = tanh(W_g x_t + b_g + r * (U_g h_{t-1} + c_g))",
        "h_t = (1 - z) * g + z * h_{t-1}",
    ),
    state="n",
    references=("cho2014",),
    notes=("torch.nn.GRU's own kernel and weights: its state_dict loads.",),
)
class GRU(TorchGated):
    """The gated recurrent unit, torch's own."""

    gates = 3

    def kernel(self, *arguments: Any) -> Any:
        """Call torch's GRU."""
        return torch.gru(*arguments)

    def advance(
        self, w: Weights, a: Float[Tensor, "batch gates"], state: Float[Tensor, "batch n"]
    ) -> tuple[Float[Tensor, "batch n"], Float[Tensor, "batch n"]]:
        """Advance by one step."""
        xr, xz, xg = a.chunk(3, dim=-1)
        hr, hz, hg = F.linear(state, w["weight_hh"], w.get("bias_hh")).chunk(3, dim=-1)
        z = torch.sigmoid(xz + hz)
        h = (1 - z) * torch.tanh(xg + torch.sigmoid(xr + hr) * hg) + z * state
        return h, h
