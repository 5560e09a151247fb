"""ntm: the neural Turing machine, with slots that are vectors."""

from __future__ import annotations

from typing import Any, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import choice, positive_int
from mnemoscope.nn.addressing import Heads
from mnemoscope.nn.bilinear import positive_sizes
from mnemoscope.nn.machine import Machine, MachineOptions
from mnemoscope.nn.ops.gates import lstm_cell
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["NTM"]


@network(
    "ntm",
    family="external memory",
    equations=(
        "h_t = controller(x_t, r_{t-1}, h_{t-1}); k, beta, g, s, gamma, e, a = affine(h_t) and their nonlinearities",
        "w_t = sharpen(shift(g softmax(beta cos(k, M)) + (1 - g) w_{t-1}))",
        "M_t = M_{t-1} (1 - w e^T) + w a^T, then r_t = M_t^T w of the read head; y_t = [h_t, r_t]",
    ),
    state="2n + N(w+2) + w",
    references=("graves2014",),
    notes=("N slots of width w: memory=(N, w). The state is for one read and one write head.",),
)
class NTM(Machine):
    """Graves's machine: a network that learns to write to a memory and to read from it.

    Parameters
    ----------
    memory
        Slots and their width.
    controller
        ``"lstm"``, or ``"feed-forward"``: h = tanh(W x + R r + b), which remembers in the memory alone.
    output_size
        Numbers given out, W_o [h, r] + b_o; by default [h, r] itself.
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        memory: tuple[int, int] = (128, 20),
        controller: str = "lstm",
        output_size: int | None = None,
        **common: Unpack[MachineOptions],
    ) -> None:
        self.memory = positive_sizes("memory", memory, 2)
        self.slots, self.slot = self.memory[0], self.memory[1:]
        self.controller = choice("controller", controller, ("lstm", "feed-forward"))
        self._given = None if output_size is None else positive_int("output_size", output_size)
        super().__init__(input_size, hidden_size, num_layers, **common)

    @property
    def cell_output_size(self) -> int:
        """Numbers that one cell gives out per step."""
        return self._given or self.hidden_size + self.read_heads * self.slot[0]

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that build this network again."""
        return super().options | {"output_size": self._given}

    def declare(self, layer: Layer) -> None:
        """Create the controller's weights, the interface and the output."""
        n, width = self.hidden_size, self.slot[0]
        rows = 4 * n if self.controller == "lstm" else n
        self.parameter("weight_ih", rows, layer.input_size, role="input")
        self.parameter("weight_rh", rows, self.read_heads * width, role="recurrent")
        if self.controller == "lstm":
            self.parameter("weight_hh", rows, n, role="recurrent")
        said = self.heads * (width + self.shifts + 3) + 2 * self.write_heads * width
        self.parameter("weight_interface", said, n)
        if self._given:
            self.parameter("weight_out", self._given, n + self.read_heads * width, role="readout")
        if self.bias:
            self.parameter("bias", rows, role="bias")
            self.parameter("bias_interface", said, role="bias")
            if self._given:
                self.parameter("bias_out", self._given, role="bias")
        self.declare_focus()

    def controller_start(self, w: Weights, batch: int, **factory: Any) -> tuple[Tensor, ...]:
        """Return zeros: h and c of an LSTM, nothing else."""
        count = 2 if self.controller == "lstm" else 0
        return tuple(self._zeros(batch, self.hidden_size, **factory) for _ in range(count))

    def control(
        self, w: Weights, a: Tensor, controller: tuple[Tensor, ...], read: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the controller's output and state."""
        z = a + F.linear(read.flatten(1), w["weight_rh"])
        if self.controller == "feed-forward":
            return torch.tanh(z), ()
        h, c = controller
        return lstm_cell(z + F.linear(h, w["weight_hh"]), c)

    def instruct(self, w: Weights, h: Float[Tensor, "batch n"]) -> tuple[Heads, Tensor, Tensor]:
        """Return what the heads say, by one product."""
        heads, width = self.heads, self.slot[0]
        said = F.linear(h, w["weight_interface"], w.get("bias_interface"))
        sizes = [heads * width, heads * self.shifts, 3 * heads, *2 * [self.write_heads * width]]
        key, shift, scalars, erase, add = torch.split(said, sizes, -1)
        strength, gate, sharpness = scalars.chunk(3, -1)
        found = Heads.of(
            key.reshape(-1, heads, width), strength, gate, shift.reshape(-1, heads, self.shifts), sharpness
        )
        into = (-1, self.write_heads, width)
        return found, torch.sigmoid(erase.reshape(into)), add.reshape(into)

    def output(self, w: Weights, h: Float[Tensor, "*time batch n"], read: Tensor) -> Tensor:
        """Return [h, r], or an affine map of it."""
        both = torch.cat([h, read.flatten(-2)], -1)
        return F.linear(both, w["weight_out"], w.get("bias_out")) if self._given else both
