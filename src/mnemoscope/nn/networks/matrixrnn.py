"""matrixrnn and matrixlstm: recurrent networks whose inputs and states are matrices."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import choice
from mnemoscope.nn.activation import activate
from mnemoscope.nn.bilinear import MatrixStack, Pair, bilinear
from mnemoscope.nn.initialisers import zeros
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, StackOptions, Weights

__all__ = ["MatrixLSTM", "MatrixRNN"]


@network(
    "matrixrnn",
    family="matrix states",
    equations=("H_t = phi(U1^T X_t V1 + U2^T H_{t-1} V2 + B)",),
    state="pq",
    references=("renanse2021", "gao2017"),
    notes=("hidden_size is a pair (p, q), or a list of pairs, one for each layer.",),
)
class MatrixRNN(MatrixStack):
    """Elman's network of matrices: every affine map is a bilinear one.

    Parameters
    ----------
    nonlinearity
        phi: ``"tanh"``, ``"relu"`` or ``"identity"``.
    """

    def __init__(
        self,
        input_size: Pair,
        hidden_size: Pair | list[Pair],
        num_layers: int = 1,
        *,
        nonlinearity: str = "tanh",
        **common: Unpack[StackOptions],
    ) -> None:
        self.nonlinearity = choice("nonlinearity", nonlinearity, ("tanh", "relu", "identity"))
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare(self, layer: Layer) -> None:
        """Create U1, V1, U2, V2 and B."""
        size = self.size(layer.index)
        self.declare_factors("weight_ih", (layer.input_shape[0], layer.input_shape[1]), size, "input")
        self.declare_factors("weight_hh", size, size, "recurrent")
        if self.bias:
            self.parameter("bias", *size, init=zeros, role="bias")

    def start(self, w: Weights, batch: int, **factory: Any) -> Float[Tensor, "batch p q"]:
        """Return zeros."""
        return self._zeros(batch, *self.size(w.layer.index), **factory)

    def drive(self, w: Weights, x: Float[Tensor, "*time batch a b"]) -> Float[Tensor, "*time batch p q"]:
        """Return U1^T X V1 + B."""
        a = bilinear(x, w["weight_ih_rows"], w["weight_ih_columns"])
        return a + w["bias"] if self.bias else a

    def advance(self, w: Weights, a: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one step."""
        h = activate(self.nonlinearity, a + bilinear(state, w["weight_hh_rows"], w["weight_hh_columns"]))
        return h, h


class Cell(NamedTuple):
    """Output and cell: the state of one layer."""

    h: Float[Tensor, "batch p q"]
    c: Float[Tensor, "batch p q"]


@network(
    "matrixlstm",
    family="matrix states",
    equations=(
        "i, f, o = sigmoid(U1^T X_t V1 + U2^T H_{t-1} V2 + B), G = tanh(..), each with factors of its own",
        "C_t = f * C_{t-1} + i * G, H_t = o * tanh(C_t)",
    ),
    state="2pq",
    references=("renanse2021", "gao2017", "hochreiter1997"),
    notes=("hidden_size is a pair (p, q), or a list of pairs, one for each layer.",),
)
class MatrixLSTM(MatrixStack):
    """The LSTM of matrices: every affine map is a bilinear one."""

    def __init__(
        self,
        input_size: Pair,
        hidden_size: Pair | list[Pair],
        num_layers: int = 1,
        **common: Unpack[StackOptions],
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare(self, layer: Layer) -> None:
        """Create factors and B of the four gates, in the order i, f, G, o."""
        size = self.size(layer.index)
        self.declare_factors("weight_ih", (layer.input_shape[0], layer.input_shape[1]), size, "input", gates=4)
        self.declare_factors("weight_hh", size, size, "recurrent", gates=4)
        if self.bias:
            self.parameter("bias", 4, *size, init=zeros, role="bias")

    def start(self, w: Weights, batch: int, **factory: Any) -> Cell:
        """Return zeros."""
        size = self.size(w.layer.index)
        return Cell(self._zeros(batch, *size, **factory), self._zeros(batch, *size, **factory))

    def drive(self, w: Weights, x: Float[Tensor, "*time batch a b"]) -> Float[Tensor, "*time batch 4 p q"]:
        """Return U1^T X V1 + B of every gate."""
        a = bilinear_gates(x, w["weight_ih_rows"], w["weight_ih_columns"])
        return a + w["bias"] if self.bias else a

    def advance(self, w: Weights, a: Tensor, state: Cell) -> tuple[Tensor, Cell]:
        """Advance by one step."""
        z = a + bilinear_gates(state.h, w["weight_hh_rows"], w["weight_hh_columns"])
        return lstm_of(z, state.c)


def bilinear_gates(x: Tensor, u: Float[Tensor, "gates a p"], v: Float[Tensor, "gates b q"]) -> Tensor:
    """Return U_g^T X V_g of every gate, (.., gates, p, q)."""
    return u.mT @ (x.unsqueeze(-3) @ v)


def lstm_of(gates: Float[Tensor, "batch 4 p q"], c: Tensor) -> tuple[Tensor, Cell]:
    """Return output and state of an LSTM from its gates before their nonlinearities."""
    i, f, g, o = gates.unbind(-3)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return h, Cell(h, c)
