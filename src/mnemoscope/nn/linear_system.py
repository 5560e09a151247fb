"""A linear network with an output matrix: what reductions of linear networks give."""

from __future__ import annotations

from typing import Any, Self, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.core.arrays import matrix, square, vector
from mnemoscope.core.errors import Description, expected, positive_int
from mnemoscope.nn.stack import Layer, Stack, StackOptions, Weights

__all__ = ["LinearSystem"]


class LinearSystem(Stack):
    r"""A linear network whose outputs are a linear function of its state.

    .. math::
        h_t = W h_{t-1} + U x_t + b, \qquad y_t = C h_t + D x_t + c

    Parameters
    ----------
    output_size
        Numbers per step of the output.
    skip
        Whether there are D and c; otherwise they are zero.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        output_size: int,
        skip: bool = False,
        **common: Unpack[StackOptions],
    ) -> None:
        if not isinstance(skip, bool):
            raise expected("skip", "True or False", skip)
        self.skip = skip
        self.readout_size = positive_int("output_size", output_size)
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare(self, layer: Layer) -> None:
        """Create U, W, b and C; D and c where there are any."""
        self.parameter("weight_ih", self.hidden_size, layer.input_size, role="input")
        self.parameter("weight_hh", self.hidden_size, self.hidden_size, role="recurrent")
        self.parameter("bias", self.hidden_size, role="bias")
        self.parameter("weight_out", self.readout_size, self.hidden_size, role="readout")
        if self.skip:
            self.parameter("weight_skip", self.readout_size, layer.input_size, role="readout")
            self.parameter("bias_out", self.readout_size, role="bias")

    def drive(self, w: Weights, x: Tensor) -> Any:
        """Return U x + b, and D x + c beside it where there are any."""
        entered = F.linear(x, w["weight_ih"], w["bias"])
        return (entered, F.linear(x, w["weight_skip"], w["bias_out"])) if self.skip else entered

    def advance(self, w: Weights, a: Any, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one step."""
        entered, past = a if self.skip else (a, 0.0)
        h = state @ w["weight_hh"].mT + entered
        return h @ w["weight_out"].mT + past, h

    def layer_output_shape(self, index: int) -> tuple[int, ...]:
        """Return the output's numbers, for each direction."""
        return (self.readout_size * self.directions,)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that build this network again; `output_size` as it was given, for one direction."""
        return super().options | {"output_size": self.readout_size}

    @classmethod
    def of(cls, W: Any, U: Any, C: Any, bias: Any = None, D: Any = None, offset: Any = None) -> Self:
        """Return the network with these matrices, in float64; the bias b, D and the offset c are zero without them."""
        W = square("W", W)
        U, C = matrix("U", U), matrix("C", C)
        n, shapes = len(W), (len(C), U.shape[1])
        if len(U) != n:
            raise expected("U", f"a matrix of {n} rows, as W has", Description(f"one of {len(U)}"))
        if C.shape[1] != n:
            raise expected("C", f"a matrix of {n} columns, as W has", Description(f"one of {C.shape[1]}"))
        named = {"weight_hh_l0": W, "weight_ih_l0": U, "weight_out_l0": C}
        named["bias_l0"] = np.zeros(n) if bias is None else vector("bias", bias, n)
        skip = D is not None or offset is not None
        if skip:
            named["weight_skip_l0"] = np.zeros(shapes) if D is None else matrix("D", D)
            named["bias_out_l0"] = np.zeros(shapes[0]) if offset is None else vector("offset", offset, shapes[0])
        made = cls(shapes[1], n, output_size=shapes[0], skip=skip, dtype=torch.float64)
        with torch.no_grad():
            for name, value in named.items():
                getattr(made, name).copy_(torch.as_tensor(value, dtype=torch.float64))
        return made
