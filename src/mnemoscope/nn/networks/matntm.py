"""matntm: the neural Turing machine whose slots, inputs and states are matrices."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import choice
from mnemoscope.nn.addressing import Heads
from mnemoscope.nn.bilinear import MatrixStack, Pair, bilinear, matrix_size, positive_sizes
from mnemoscope.nn.initialisers import zeros
from mnemoscope.nn.machine import Machine, MachineOptions
from mnemoscope.nn.networks.matrixrnn import bilinear_gates, lstm_of
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["MatNTM"]


@network(
    "matntm",
    family="external memory",
    equations=(
        "H <- tanh(U_h^T H V_h + U_x^T X_t V_x + U_r^T R_{t-1} V_r + B), once for each layer, from H_{t-1} to H_t",
        "K = tanh(U_K^T H V_K + B_K); w_t = sharpen(shift(g softmax(beta cos(K, M)) + (1 - g) w_{t-1}))",
        "Er = sigmoid(U_E^T H V_E + B_E), A = U_A^T H V_A + B_A",
        "M_t = M_{t-1} (1 - w Er) + w A by the write head, then R_t = sum_i w_i M_t,i by the read head",
        "Y_t = sigmoid(U_y^T H V_y + B_y + U_z^T R_t V_z + B_z)",
    ),
    state="pq + N(ab+2) + ab",
    references=("renanse2021", "graves2014"),
    notes=(
        "N slots of a x b: memory=(N, a, b); hidden_size is a pair (p, q), or a list of pairs, one for each layer.",
        "Layers are one deep transition of a single state.",
        "Outputs are probabilities, by default as many as an input has numbers.",
    ),
)
class MatNTM(Machine, MatrixStack):
    """The matrix neural Turing machine: every affine map of Graves's machine is a bilinear one.

    Parameters
    ----------
    num_layers
        Depth of the transition from one state to the next.
    memory
        Slots, and the rows and columns of a slot.
    controller
        ``"rnn"``; or ``"lstm"``: what the layers make is gated by a matrix LSTM.
    output_size
        (rows, columns) of the output; by default those of the input.
    output_nonlinearity
        ``"sigmoid"``, or ``"identity"``, which gives out logits.
    """

    input_axes: ClassVar[int] = 2

    def __init__(
        self,
        input_size: Pair,
        hidden_size: Pair | list[Pair],
        num_layers: int = 1,
        *,
        memory: tuple[int, int, int] = (120, 6, 6),
        controller: str = "rnn",
        output_size: Pair | None = None,
        output_nonlinearity: str = "sigmoid",
        **common: Unpack[MachineOptions],
    ) -> None:
        self.memory = positive_sizes("memory", memory, 3)
        self.slots, self.slot = self.memory[0], self.memory[1:]
        self.controller = choice("controller", controller, ("rnn", "lstm"))
        self._given = None if output_size is None else matrix_size("output_size", output_size)
        self.output_nonlinearity = choice("output_nonlinearity", output_nonlinearity, ("sigmoid", "identity"))
        super().__init__(input_size, hidden_size, num_layers, **common)

    @property
    def cell_layers(self) -> int:
        """One: the layers are a deep transition of one state."""
        return 1

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that build this network again."""
        return super().options | {"output_size": self._given}

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """Shape of the state H."""
        return self.size(self.num_layers - 1)

    def layer_output_shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of the output, both directions side by side."""
        rows, columns = self._given or self.input_shape
        return rows, columns * self.directions

    def declare(self, layer: Layer) -> None:
        """Create the maps of the controller, of the interface and of the output."""
        a, b = self.slot
        read, last = (a, b * self.read_heads), self.hidden_shape
        sizes = [self.size(i) for i in range(self.num_layers)]
        for i, size in enumerate(sizes):
            self.declare_factors(f"weight_ih_{i}", (layer.input_shape[0], layer.input_shape[1]), size, "input")
            self.declare_factors(f"weight_hh_{i}", sizes[i - 1], size, "recurrent")
            self._declare_map(f"weight_rh_{i}", read, size, f"bias_{i}")
        if self.controller == "lstm":
            for name in ("weight_gate_ih", "weight_gate_hh"):
                self.declare_factors(name, (last[0], last[1]), (last[0], last[1]), "recurrent", gates=4)
            if self.bias:
                self.parameter("bias_gate", 4, *last, init=zeros, role="bias")
        for name, size in self._interface.items():
            self._declare_map(f"weight_{name}", (last[0], last[1]), size, f"bias_{name}")
        out = self._given or (self.input_shape[0], self.input_shape[1])
        self._declare_map("weight_out", (last[0], last[1]), out, "bias_out")
        self._declare_map("weight_out_read", read, out, "bias_out_read")
        self.declare_focus()

    @property
    def _interface(self) -> dict[str, Pair]:
        a, b = self.slot
        return {
            "key": (a, b * self.heads),
            "write": (a, 2 * b * self.write_heads),
            "shift": (self.shifts, self.heads),
            "scalars": (3, self.heads),
        }

    def _declare_map(self, name: str, source: Pair, target: Pair, bias: str) -> None:
        self.declare_factors(name, source, target)
        if self.bias:
            self.parameter(bias, *target, init=zeros, role="bias")

    def controller_start(self, w: Weights, batch: int, **factory: Any) -> tuple[Tensor, ...]:
        """Return zeros: H, and C with an LSTM."""
        count = 2 if self.controller == "lstm" else 1
        return tuple(self._zeros(batch, *self.hidden_shape, **factory) for _ in range(count))

    def drive(self, w: Weights, x: Float[Tensor, "*time batch a b"]) -> tuple[Tensor, ...]:
        """Return U_x^T X V_x + B of every layer."""
        driven = []
        for i in range(self.num_layers):
            a = bilinear(x, w[f"weight_ih_{i}_rows"], w[f"weight_ih_{i}_columns"])
            driven.append(a + w[f"bias_{i}"] if self.bias else a)
        return tuple(driven)

    def control(
        self, w: Weights, a: tuple[Tensor, ...], controller: tuple[Tensor, ...], read: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return H_t, and what is carried on."""
        h, side = controller[0], _side_by_side(read)
        for i, driven in enumerate(a):
            z = driven + bilinear(self._drop(h) if i else h, w[f"weight_hh_{i}_rows"], w[f"weight_hh_{i}_columns"])
            h = torch.tanh(z + bilinear(side, w[f"weight_rh_{i}_rows"], w[f"weight_rh_{i}_columns"]))
        if self.controller == "rnn":
            return h, (h,)
        z = bilinear_gates(h, w["weight_gate_ih_rows"], w["weight_gate_ih_columns"])
        z = z + bilinear_gates(controller[0], w["weight_gate_hh_rows"], w["weight_gate_hh_columns"])
        h, cell = lstm_of(z + w["bias_gate"] if self.bias else z, controller[1])
        return h, tuple(cell)

    def instruct(self, w: Weights, h: Float[Tensor, "batch p q"]) -> tuple[Heads, Tensor, Tensor]:
        """Return what the heads say; the product with all U is one."""
        names = self._interface
        rows = h.mT @ torch.cat([w[f"weight_{name}_rows"] for name in names], 1)
        parts = torch.split(rows, [size[0] for size in names.values()], -1)
        said = {}
        for name, part in zip(names, parts, strict=True):
            made = part.mT @ w[f"weight_{name}_columns"]
            said[name] = made + w[f"bias_{name}"] if self.bias else made
        a, b = self.slot
        key = said["key"].reshape(-1, a, self.heads, b).transpose(1, 2).flatten(2)
        strength, gate, sharpness = said["scalars"].unbind(1)
        write = said["write"].reshape(-1, a, 2, self.write_heads, b).permute(2, 0, 3, 1, 4).flatten(3)
        return Heads.of(key, strength, gate, said["shift"].mT, sharpness), torch.sigmoid(write[1]), write[0]

    def output(self, w: Weights, h: Float[Tensor, "*time batch p q"], read: Tensor) -> Tensor:
        """Return Y."""
        y = bilinear(h, w["weight_out_rows"], w["weight_out_columns"])
        y = y + bilinear(_side_by_side(read), w["weight_out_read_rows"], w["weight_out_read_columns"])
        y = y + w["bias_out"] + w["bias_out_read"] if self.bias else y
        return torch.sigmoid(y) if self.output_nonlinearity == "sigmoid" else y


def _side_by_side(read: Float[Tensor, "*batch heads a b"]) -> Float[Tensor, "*batch a columns"]:
    """Return what the heads read as one matrix."""
    return read.squeeze(-3) if read.shape[-3] == 1 else read.transpose(-3, -2).flatten(-2)
