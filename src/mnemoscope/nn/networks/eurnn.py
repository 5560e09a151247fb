"""EURNN: V layers of Givens rotations, as many as the user chooses."""

from __future__ import annotations

from typing import Unpack

from mnemoscope.nn.first_order import Structured, StructuredOptions
from mnemoscope.nn.maps.givens import Givens
from mnemoscope.nn.registry import network

__all__ = ["EURNN"]


@network(
    "eurnn",
    family="orthogonal",
    equations=(
        "h_t = phi(V h_{t-1} + U x_t + b)",
        "V = F_A F_B F_A .. (m layers), F_A rotates the pairs (1,2), (3,4), .., F_B the pairs (2,3), (4,5), ..",
    ),
    state="n",
    references=("jing2017",),
    notes=(
        "The real form, one angle per pair; m = n layers reach every rotation, with fewer a part of them.",
        "A unit without a partner in a layer (the last of an odd n in F_A) passes it unchanged.",
        "The angles start as U(-pi, pi): V is then no uniform rotation, also with m = n.",
    ),
)
class EURNN(Structured):
    """An orthogonal network of tunable capacity: V is m layers of rotations of neighbouring pairs.

    Parameters
    ----------
    rotations
        m, from 1 to n layers; by default n, which reaches every rotation.
    """

    inits = ("random",)

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        rotations: int | None = None,
        **common: Unpack[StructuredOptions],
    ) -> None:
        self.rotations = hidden_size if rotations is None else rotations
        super().__init__(input_size, hidden_size, num_layers, **common)

    def make_transition(self) -> Givens:
        """Return the layers of rotations."""
        return Givens(self.hidden_size, self.rotations)
