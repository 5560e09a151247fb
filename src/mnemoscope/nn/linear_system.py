"""A linear network with an output matrix: what reductions of linear networks give."""

from __future__ import annotations

from typing import Any, Self, Unpack

import torch
from torch import Tensor

from mnemoscope.core.errors import positive_int
from mnemoscope.nn.stack import Layer, Stack, StackOptions, Weights

__all__ = ["LinearSystem"]


class LinearSystem(Stack):
    r"""A linear network whose outputs are a linear function of its state.

    .. math::
        h_t = W h_{t-1} + U x_t + b, \qquad y_t = C h_t

    Parameters
    ----------
    output_size
        Numbers per step of the output.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        output_size: int,
        **common: Unpack[StackOptions],
    ) -> None:
        self.readout_size = positive_int("output_size", output_size)
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare(self, layer: Layer) -> None:
        """Create U, W, b and C."""
        self.parameter("weight_ih", self.hidden_size, layer.input_size, role="input")
        self.parameter("weight_hh", self.hidden_size, self.hidden_size, role="recurrent")
        self.parameter("bias", self.hidden_size, role="bias")
        self.parameter("weight_out", self.readout_size, self.hidden_size, role="readout")

    def advance(self, w: Weights, a: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one step."""
        h = state @ w["weight_hh"].mT + a
        return h @ w["weight_out"].mT, h

    def layer_output_shape(self, index: int) -> tuple[int, ...]:
        """Return the output's numbers, for each direction."""
        return (self.readout_size * self.directions,)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that build this network again; `output_size` as it was given, for one direction."""
        return super().options | {"output_size": self.readout_size}

    @classmethod
    def of(cls, W: Any, U: Any, C: Any, bias: Any) -> Self:
        """Return the network with these matrices, in float64."""
        matrices = [torch.as_tensor(each, dtype=torch.float64) for each in (W, U, C, bias)]
        made = cls(matrices[1].shape[1], len(matrices[0]), output_size=len(matrices[2]), dtype=torch.float64)
        names = ("weight_hh_l0", "weight_ih_l0", "weight_out_l0", "bias_l0")
        with torch.no_grad():
            for name, value in zip(names, matrices, strict=True):
                getattr(made, name).copy_(value)
        return made
