"""Elman's network and its relatives whose recurrent matrix is free: rnn, linear-rnn, irnn, orth-rnn."""

from __future__ import annotations

from typing import Any, ClassVar, TypedDict, Unpack

import torch
from torch import Tensor, nn

from mnemoscope.core.errors import UserError
from mnemoscope.nn.exchange import TorchLayer
from mnemoscope.nn.first_order import FirstOrder
from mnemoscope.nn.polynomial import Exact, Operations
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import StackOptions, Weights

__all__ = ["IRNN", "RNN", "LinearRNN", "OrthRNN"]


class FreeOptions(TypedDict, total=False):
    """The options of Elman's network that torch's has not, and where its parameters are."""

    activation: str
    init: str
    checkpoint_every: int | None
    device: torch.device | str | None
    dtype: torch.dtype | None
    generator: torch.Generator | None


@network(
    "rnn",
    family="first order",
    equations=("h_t = phi(V h_{t-1} + U x_t + b)", 'activation="depth": h_t = V h_{t-1} + U x_t + b, y_t = phi(h_t)'),
    state="n",
    references=("elman1990",),
)
class RNN(FirstOrder, TorchLayer):
    """Elman's network, V free: with ``activation="depth"`` linear in time and nonlinear on the way up only."""

    nonlinearity_default = "tanh"
    init_default = "uniform"
    torch_class: ClassVar[type[nn.RNNBase]] = nn.RNN

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str | None = None,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        **common: Unpack[FreeOptions],
    ) -> None:
        # torch's own order of arguments, which may be given by place.
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            nonlinearity=nonlinearity,
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
            **common,
        )

    @property
    def mode(self) -> str:
        """``"RNN_TANH"`` or ``"RNN_RELU"``, as torch names them."""
        return f"RNN_{self.nonlinearity.upper()}"

    def torch_options(self) -> dict[str, Any]:
        """Return the arguments of torch's RNN."""
        if self.nonlinearity not in ("tanh", "relu") or self.activation != "recurrent":
            raise UserError(
                "torch.nn.RNN has tanh or relu in its recurrence, and this network has "
                f"{self.nonlinearity} ({self.activation})"
            )
        return super().torch_options() | {"nonlinearity": self.nonlinearity}

    def _torch_weight(self, name: str) -> Tensor:
        if name.startswith("bias_ih"):
            return super()._torch_weight(name.replace("bias_ih", "bias"))
        zero = name.startswith("bias_hh")
        return torch.zeros(self.hidden_size) if zero else super()._torch_weight(name)


@network(
    "linear-rnn",
    family="first order",
    equations=("h_t = V h_{t-1} + U x_t + b",),
    state="n",
    references=("saxe2014",),
)
class LinearRNN(FirstOrder, Exact):
    """The linear network: phi is the identity, V free.

    Parameters
    ----------
    init
        How V starts.
    """

    init_default = "uniform"

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        init: str | None = None,
        **common: Unpack[StackOptions],
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, nonlinearity="identity", init=init, **common)

    def enter(self, ops: Operations, w: Weights, x: Any) -> Any:
        """Return U x + b, in any ring."""
        ux = ops.matmul(x, w["weight_ih"].T)
        return ops.add(ux, w["bias"]) if self.bias else ux

    def combine(self, ops: Operations, w: Weights, a: Any, state: Any) -> Any:
        """Return V h + U x + b, in any ring."""
        return ops.add(ops.matmul(state, w["weight_hh"].T), a)


@network(
    "irnn",
    family="first order",
    equations=("h_t = relu(V h_{t-1} + U x_t + b), V = I at the start",),
    state="n",
    references=("le2015",),
)
class IRNN(FirstOrder):
    """Elman's network with ReLU whose V starts as the identity and is free from then on."""

    nonlinearity_default = "relu"
    init_default = "identity"


@network(
    "orth-rnn",
    family="first order",
    equations=("h_t = tanh(V h_{t-1} + U x_t + b), V^T V = I at the start",),
    state="n",
    references=("saxe2014", "henaff2016"),
)
class OrthRNN(FirstOrder):
    """Elman's network whose V starts as a random rotation and is free from then on."""

    nonlinearity_default = "tanh"
    init_default = "random"
