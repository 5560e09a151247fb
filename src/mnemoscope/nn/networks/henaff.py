"""Henaff's network: linear in time, the nonlinearity on the input."""

from __future__ import annotations

from typing import Unpack

from jaxtyping import Float
from torch import Tensor

from mnemoscope.nn.activation import activate
from mnemoscope.nn.first_order import FirstOrder
from mnemoscope.nn.ops.recurrence import can_fuse
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import StackOptions, Weights

__all__ = ["Henaff"]


@network(
    "henaff",
    family="first order",
    equations=("h_t = phi(U x_t + b) + V h_{t-1}", "V = diag(R(theta_1), R(theta_2), ..) at the start, then free"),
    state="n",
    references=("henaff2016",),
    notes=("For odd n the last unit starts as a perfect integrator (V_nn = 1).",),
)
class Henaff(FirstOrder):
    """h_t = phi(U x_t + b) + V h_{t-1}, V block rotations at the start.

    Parameters
    ----------
    nonlinearity
        phi: ``"tanh"``, ``"relu"``, ``"modrelu"`` or ``"identity"``.
    init
        How V starts.
    """

    nonlinearity_default = "relu"
    init_default = "henaff"

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        nonlinearity: str | None = None,
        init: str | None = None,
        **common: Unpack[StackOptions],
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, nonlinearity=nonlinearity, init=init, **common)

    def drive(self, w: Weights, x: Float[Tensor, "*time batch input"]) -> Float[Tensor, "*time batch n"]:
        """Return phi(U x + b)."""
        return activate(self.nonlinearity, super().drive(w, x), w.get("bias"))

    def unroll(
        self, w: Weights, x: Float[Tensor, "time batch input"], state: Tensor | None, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch n"], Tensor]:
        """Run whole sequences: a linear recurrence of what the input contributes."""
        if not can_fuse(w):
            return super().unroll(w, x, state, lengths)
        return self.fuse(w, self.drive(w, x), None, None, "identity", state, lengths)

    def advance(
        self, w: Weights, a: Float[Tensor, "batch n"], state: Float[Tensor, "batch n"]
    ) -> tuple[Float[Tensor, "batch n"], Float[Tensor, "batch n"]]:
        """Add V h."""
        h = self.multiply(w, state) + a
        return h, h
