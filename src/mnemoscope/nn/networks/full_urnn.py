"""Full-capacity unitary and orthogonal network: V moves on the whole group."""

from __future__ import annotations

from typing import Unpack

from mnemoscope.core.errors import choice, expected
from mnemoscope.nn.first_order import FirstOrder, FirstOrderOptions
from mnemoscope.nn.maps.cayley import RebasedCayley
from mnemoscope.nn.registry import network

__all__ = ["FullURNN"]


@network(
    "full-urnn",
    family="unitary",
    equations=(
        "h_t = phi(V h_{t-1} + U x_t + b)",
        "V = B (I + A)^-1 (I - A), A* = -A; after each step of the optimiser B <- V, A <- 0",
    ),
    state="n (real field), 2n (complex field)",
    references=("wisdom2016", "tagare2011"),
    notes=("Call after_step() after each step of the optimiser; without it V stays orthogonal but A may grow large.",),
)
class FullURNN(FirstOrder):
    """A network whose V is any orthogonal or unitary matrix, moved along the group by the Cayley transform.

    Parameters
    ----------
    field
        ``"real"`` (orthogonal V) or ``"complex"`` (unitary V, complex state).
    reorthogonalise
        Whether `after_step` projects V back onto the group, so that rounding errors do not add up.
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        field: str = "real",
        reorthogonalise: bool = True,
        **common: Unpack[FirstOrderOptions],
    ) -> None:
        self.field = choice("field", field, ("real", "complex"))
        if not isinstance(reorthogonalise, bool):
            raise expected("reorthogonalise", "True or False", reorthogonalise)
        self.reorthogonalise = reorthogonalise
        super().__init__(input_size, hidden_size, num_layers, **common)

    def make_transition(self) -> RebasedCayley:
        """Return the Cayley transform around a base that follows V."""
        return RebasedCayley(self.hidden_size, self.field, self.init, project=self.reorthogonalise)
