"""rac: the recurrent arithmetic circuit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, Unpack

import torch

from mnemoscope.core.errors import choice
from mnemoscope.nn.arithmetic import Arithmetic, ArithmeticOptions
from mnemoscope.nn.initialisers import unit_gain
from mnemoscope.nn.polynomial import Operations
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

if TYPE_CHECKING:
    from mnemoscope.nn.networks.tt import TT

__all__ = ["RAC"]


@network(
    "rac",
    family="multiplicative",
    equations=(
        "h_t = s_{t-1} * (W_I x_t), s_t = W_H h_t, s_0 = 1, * entry by entry",
        "y_t = W_O h_t where output_size is given, else h_t",
    ),
    state="n",
    references=("levine2017", "ziv2020"),
    notes=(
        "The state is s, the left factor of the next product: there need be no h_0 with W_H h_0 = 1.",
        "It has no biases, and zero input makes it zero for ever.",
        "One layer is a tensor train with equal cores: to_tt(length), and back by RAC.from_tt(tt).",
    ),
)
class RAC(Arithmetic):
    """The recurrent arithmetic circuit: input and state meet in products only.

    Parameters
    ----------
    init
        What inputs the weights are drawn for, so that the units keep their size from step to step: ``"dense"``, with
        entries of mean square 1; ``"one-hot"``, with a single entry 1.
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        init: str = "dense",
        **common: Unpack[ArithmeticOptions],
    ) -> None:
        self.init = choice("init", init, ("dense", "one-hot"))
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare(self, layer: Layer) -> None:
        """Create W_I (R x M, R x R above) and W_H (R x R)."""
        self.parameter("weight_ih", self.hidden_size, layer.input_size, init=unit_gain, role="input")
        self.parameter("weight_hh", self.hidden_size, self.hidden_size, init=unit_gain, role="recurrent")
        super().declare(layer)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew."""
        super().reset_parameters(generator)
        if self.init == "one-hot":
            for layer in self._layers[: self.directions]:
                getattr(self, layer.names["weight_ih"]).mul_(math.sqrt(self.input_size))

    def enter(self, ops: Operations, w: Weights, x: Any) -> Any:
        """Return W_I x."""
        return ops.matmul(x, w["weight_ih"].T)

    def combine(self, ops: Operations, w: Weights, a: Any, state: Any) -> Any:
        """Return the product of the state and W_I x."""
        return ops.mul(state, a)

    def carry(self, ops: Operations, w: Weights, h: Any) -> Any:
        """Return W_H h."""
        return ops.matmul(h, w["weight_hh"].T)

    def to_tt(self, length: int) -> TT:
        """Return the tensor train with equal cores whose score is the output after `length` steps; one layer only."""
        from mnemoscope.nn.circuits import rac_to_tt

        return rac_to_tt(self, length)

    @classmethod
    def from_tt(cls, tt: TT) -> Self:
        """Return a one-layer RAC whose output after `tt.length` steps is the score of a `tt` with equal cores.

        It has the rank of `tt` where its cores have a RAC's form; otherwise it is wider, by the CP ranks of the cores.
        """
        from mnemoscope.nn.circuits import tt_to_rac

        return tt_to_rac(cls, tt)
