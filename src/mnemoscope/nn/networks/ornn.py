"""oRNN: V a product of Householder reflections."""

from __future__ import annotations

from typing import Unpack

from mnemoscope.nn.first_order import Structured, StructuredOptions
from mnemoscope.nn.maps.householder import Householder
from mnemoscope.nn.registry import network

__all__ = ["ORNN"]


@network(
    "ornn",
    family="orthogonal",
    equations=(
        "h_t = phi(V h_{t-1} + U x_t + b)",
        "V = H_1 H_2 .. H_m D, H_k = I - 2 u_k u_k^T / |u_k|^2, u_k zero before entry k, D = diag(+-1) fixed",
    ),
    state="n",
    references=("mhammedi2017",),
    notes=(
        "With m = n reflections every orthogonal matrix is reached, with fewer a part of them.",
        "V starts with the determinant of m reflections, (-1)^m.",
    ),
)
class ORNN(Structured):
    """An orthogonal network whose V is a product of m reflections.

    Parameters
    ----------
    reflections
        m, from 1 to n; by default n, which reaches every orthogonal matrix.
    """

    inits = ("random",)

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        reflections: int | None = None,
        **common: Unpack[StructuredOptions],
    ) -> None:
        self.reflections = hidden_size if reflections is None else reflections
        super().__init__(input_size, hidden_size, num_layers, **common)

    def make_transition(self) -> Householder:
        """Return the product of reflections."""
        return Householder(self.hidden_size, self.reflections)
