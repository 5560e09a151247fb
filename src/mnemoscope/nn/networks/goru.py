"""GORU: a gated unit whose candidate turns the state by an orthogonal matrix."""

from __future__ import annotations

from typing import Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import choice
from mnemoscope.nn.activation import modrelu
from mnemoscope.nn.initialisers import uniform, zeros
from mnemoscope.nn.maps.exponential import Exponential
from mnemoscope.nn.maps.skew import SKEW_INITS
from mnemoscope.nn.ops.gates import gate
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Stack, StackOptions, Weights

__all__ = ["GORU"]


@network(
    "goru",
    family="gated",
    equations=(
        "r = sigmoid(W_r x_t + U_r h_{t-1} + b_r), z = sigmoid(W_z x_t + U_z h_{t-1} + b_z)",
        "h_t = z * h_{t-1} + (1 - z) * modReLU(W x_t + r * (V h_{t-1})), V = exp(A) orthogonal",
    ),
    state="n",
    references=("jing2019", "lezcano2019"),
    notes=("For odd n the last row of the initial A is zero (henaff, cayley).",),
)
class GORU(Stack):
    """The gated orthogonal recurrent unit.

    Parameters
    ----------
    init
        How A starts, V = exp(A).
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        init: str = "henaff",
        **common: Unpack[StackOptions],
    ) -> None:
        self.init = choice("init", init, SKEW_INITS)
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare(self, layer: Layer) -> None:
        """Create the weights of r, z and the candidate (rows in this order), of the gates, and V."""
        n = self.hidden_size
        self.parameter("weight_ih", 3 * n, layer.input_size, role="input")
        self.parameter("weight_gate", 2 * n, n, role="gate")
        self.constrain("weight_hh", Exponential(n, init=self.init))
        if self.bias:
            self.parameter("bias_gate", 2 * n, init=zeros, role="bias")
            self.parameter("bias", n, init=uniform(0.01), role="bias")

    def drive(self, w: Weights, x: Float[Tensor, "*time batch input"]) -> Float[Tensor, "*time batch gates"]:
        """Return W x for both gates and the candidate."""
        return F.linear(x, w["weight_ih"])

    def advance(
        self, w: Weights, a: Float[Tensor, "batch gates"], state: Float[Tensor, "batch n"]
    ) -> tuple[Float[Tensor, "batch n"], Float[Tensor, "batch n"]]:
        """Advance by one step."""
        n = self.hidden_size
        r, z = gate(torch.sigmoid(a[:, : 2 * n] + F.linear(state, w["weight_gate"], w.get("bias_gate")))).chunk(2, -1)
        candidate = modrelu(a[:, 2 * n :] + r * (state @ w["weight_hh"].mT), w.get("bias"))
        h = z * state + (1 - z) * candidate
        return h, h
