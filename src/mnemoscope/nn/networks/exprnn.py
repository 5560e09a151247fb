"""expRNN: V the exponential of a skew matrix."""

from __future__ import annotations

from typing import Unpack

from mnemoscope.core.errors import choice
from mnemoscope.nn.first_order import FirstOrder, FirstOrderOptions
from mnemoscope.nn.maps.exponential import Exponential
from mnemoscope.nn.registry import network

__all__ = ["ExpRNN"]


@network(
    "exprnn",
    family="orthogonal",
    equations=(
        "h_t = phi(V h_{t-1} + U x_t + b)",
        "V = exp(A), A* = -A; with rebase=K: V = B exp(A), and every K steps B <- V, A <- 0",
    ),
    state="n (real field), 2n (complex field)",
    references=("lezcano2019", "lezcano2019dtriv", "hyland2017"),
    notes=(
        "With rebase=K, call after_step() after each step of the optimiser.",
        "For odd n the last row of the initial A is zero (henaff, cayley).",
    ),
)
class ExpRNN(FirstOrder):
    """The exponential network: V is any rotation, or any unitary matrix.

    Parameters
    ----------
    field
        ``"real"`` (V in SO(n)) or ``"complex"`` (V in U(n), the parametrisation of Hyland and Raetsch).
    rebase
        Steps after which the exponential is taken around the present V (dynamic trivialisation; the literature
        uses 100); by default never.
    """

    init_default = "henaff"

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        field: str = "real",
        rebase: int | None = None,
        **common: Unpack[FirstOrderOptions],
    ) -> None:
        self.field = choice("field", field, ("real", "complex"))
        self.rebase = rebase
        super().__init__(input_size, hidden_size, num_layers, **common)

    def make_transition(self) -> Exponential:
        """Return the exponential."""
        return Exponential(self.hidden_size, self.field, self.init, every=self.rebase)
