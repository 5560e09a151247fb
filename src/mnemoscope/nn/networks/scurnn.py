"""scuRNN: V by the complex scaled Cayley transform with learned phases."""

from __future__ import annotations

from mnemoscope.nn.first_order import FirstOrder
from mnemoscope.nn.maps.cayley import ComplexScaledCayley
from mnemoscope.nn.registry import network

__all__ = ["SCURNN"]


@network(
    "scurnn",
    family="unitary",
    equations=(
        "h_t = phi(V h_{t-1} + U x_t + b), h complex, y_t = [Re h_t, Im h_t]",
        "V = (I + A)^-1 (I - A) diag(e^{i theta}), A* = -A, theta learned",
    ),
    state="2n",
    references=("maduranga2019",),
    notes=("For odd n the last row of the initial A is zero (henaff, cayley).",),
)
class SCURNN(FirstOrder):
    """The scaled Cayley unitary network, with a complex state."""

    field = "complex"
    init_default = "cayley"

    def make_transition(self) -> ComplexScaledCayley:
        """Return the complex scaled Cayley transform."""
        return ComplexScaledCayley(self.hidden_size, self.init)
