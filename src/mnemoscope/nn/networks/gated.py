"""torch's own LSTM and GRU, with a pure step beneath."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.nn.exchange import TorchLayer
from mnemoscope.nn.ops.gates import gate, lstm_cell
from mnemoscope.nn.ops.scan import transforming
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["GRU", "LSTM", "TorchGated"]


class TorchGated(TorchLayer):
    """Weights named as torch names them; whole sequences go through torch's kernel.

    A transform of `torch.func` has no rule for the kernel, nor has torch.compile: there the cell's step is scanned.
    """

    gates: int
    proj_size: int = 0
    any_length_traced: ClassVar[bool] = True

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        # torch's own order of arguments, which may be given by place.
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
            device=device,
            dtype=dtype,
            generator=generator,
        )

    def declare(self, layer: Layer) -> None:
        """Create torch's tensors."""
        rows = self.gates * self.hidden_size
        self.parameter("weight_ih", rows, layer.input_size, role="input")
        self.parameter("weight_hh", rows, self.proj_size or self.hidden_size, role="recurrent")
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
    notes=(
        "torch.nn.LSTM's own kernel and weights: its state_dict loads; to_torch(), LSTM.from_torch(it).",
        "torch.ao.quantization.quantize_dynamic knows torch's own class alone: quantise layer.to_torch().",
    ),
)
class LSTM(TorchGated):
    """Long short-term memory, torch's own; the state is the pair (h, c).

    Parameters
    ----------
    proj_size
        Numbers that h is projected to, as in torch's LSTM; 0: h has as many as c.
    """

    gates = 4
    torch_class: ClassVar[type[nn.RNNBase]] = nn.LSTM

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        whole = isinstance(proj_size, int) and not isinstance(proj_size, bool)
        if not whole or not 0 <= proj_size < positive_int("hidden_size", hidden_size):
            raise expected("proj_size", "a whole number from 0 to below hidden_size", proj_size)
        self.proj_size = proj_size
        factory: Any = {"device": device, "dtype": dtype, "generator": generator}
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, **factory)

    def declare(self, layer: Layer) -> None:
        """Create torch's tensors, with the projection after them."""
        super().declare(layer)
        if self.proj_size:
            self.parameter("weight_hr", self.proj_size, self.hidden_size, role="projection")

    @property
    def cell_output_size(self) -> int:
        """n, or what h is projected to."""
        return self.proj_size or int(self.hidden_size)

    def torch_options(self) -> dict[str, Any]:
        """Return the arguments of torch's LSTM."""
        return super().torch_options() | {"proj_size": self.proj_size}

    @classmethod
    def _read_from_torch(cls, module: nn.RNNBase) -> tuple[str, ...]:
        return (*super()._read_from_torch(module), "proj_size")

    def kernel(self, *arguments: Any) -> Any:
        """Call torch's LSTM."""
        return torch.lstm(*arguments)

    def start(self, w: Weights, batch: int, **factory: Any) -> tuple[Tensor, Tensor]:
        """Return zeros for h and c."""
        return torch.zeros(batch, self.cell_output_size, **factory), super().start(w, batch, **factory)

    def advance(
        self, w: Weights, a: Float[Tensor, "batch gates"], state: tuple[Tensor, Tensor]
    ) -> tuple[Float[Tensor, "batch n"], tuple[Tensor, Tensor]]:
        """Advance by one step."""
        h, c = state
        h, (_, c) = lstm_cell(a + F.linear(h, w["weight_hh"], w.get("bias_hh")), c)
        h = F.linear(h, w["weight_hr"]) if self.proj_size else h
        return h, (h, c)


@network(
    "gru",
    family="gated",
    equations=(
        "r, z = sigmoid(W x_t + U h_{t-1} + b), g = tanh(W_g x_t + b_g + r * (U_g h_{t-1} + c_g))",
        "h_t = (1 - z) * g + z * h_{t-1}",
    ),
    state="n",
    references=("cho2014",),
    notes=("torch.nn.GRU's own kernel and weights: its state_dict loads; to_torch(), GRU.from_torch(it).",),
)
class GRU(TorchGated):
    """The gated recurrent unit, torch's own."""

    gates = 3
    torch_class: ClassVar[type[nn.RNNBase]] = nn.GRU

    def kernel(self, *arguments: Any) -> Any:
        """Call torch's GRU."""
        return torch.gru(*arguments)

    def advance(
        self, w: Weights, a: Float[Tensor, "batch gates"], state: Float[Tensor, "batch n"]
    ) -> tuple[Float[Tensor, "batch n"], Float[Tensor, "batch n"]]:
        """Advance by one step."""
        xr, xz, xg = a.chunk(3, dim=-1)
        hr, hz, hg = F.linear(state, w["weight_hh"], w.get("bias_hh")).chunk(3, dim=-1)
        r, z = gate(torch.sigmoid(xr + hr)), gate(torch.sigmoid(xz + hz))
        h = (1 - z) * torch.tanh(xg + r * hg) + z * state
        return h, h
