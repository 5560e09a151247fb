"""scoRNN: V by the scaled Cayley transform."""

from __future__ import annotations

from typing import Unpack

from mnemoscope.nn.first_order import FirstOrder, FirstOrderOptions
from mnemoscope.nn.maps.cayley import ScaledCayley
from mnemoscope.nn.registry import network

__all__ = ["SCORNN"]


@network(
    "scornn",
    family="orthogonal",
    equations=(
        "h_t = phi(V h_{t-1} + U x_t + b)",
        "V = (I + A)^-1 (I - A) D, A^T = -A, D = diag(1, .., 1, -1, .., -1) fixed",
    ),
    state="n",
    references=("helfrich2018",),
    notes=("For odd n the last row of the initial A is zero.",),
)
class SCORNN(FirstOrder):
    """The scaled Cayley orthogonal network.

    Parameters
    ----------
    negative
        How many entries of D are -1; by default n/2 (rounded down).
    """

    init_default = "cayley"

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        negative: int | None = None,
        **common: Unpack[FirstOrderOptions],
    ) -> None:
        self.negative = negative
        super().__init__(input_size, hidden_size, num_layers, **common)

    def make_transition(self) -> ScaledCayley:
        """Return the scaled Cayley transform."""
        negative = self.hidden_size // 2 if self.negative is None else self.negative
        return ScaledCayley(self.hidden_size, negative, self.init)
