"""uRNN: V a product of diagonals, reflections and Fourier transforms."""

from __future__ import annotations

from mnemoscope.nn.first_order import Structured
from mnemoscope.nn.maps.fourier import Fourier
from mnemoscope.nn.registry import network

__all__ = ["URNN"]


@network(
    "urnn",
    family="unitary",
    equations=(
        "h_t = phi(V h_{t-1} + U x_t), h complex, y_t = [Re h_t, Im h_t]",
        "V = D_3 R_2 F^-1 D_2 P R_1 F D_1: diagonal phases D, reflections R, Fourier transform F, permutation P",
    ),
    state="2n",
    references=("arjovsky2016", "wisdom2016"),
    notes=(
        "V has 7n parameters, and V h costs O(n log n) with product='structured'.",
        "For n > 7 it cannot reach every unitary matrix (7n < n^2).",
    ),
)
class URNN(Structured):
    """The unitary evolution network, of restricted capacity, with a complex state."""

    field = "complex"
    inits = ("random",)

    def make_transition(self) -> Fourier:
        """Return the product of factors."""
        return Fourier(self.hidden_size)
