"""cprnn and cpbirnn: second-order networks whose tensor is a CP decomposition."""

from __future__ import annotations

from typing import Any, Unpack

from mnemoscope.core.errors import positive_int
from mnemoscope.nn.networks.birnn import Bilinear, BilinearOptions
from mnemoscope.nn.networks.second_order import SecondOrder, SecondOrderOptions
from mnemoscope.nn.polynomial import Operations
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["CPBIRNN", "CPRNN"]


@network(
    "cprnn",
    family="multiplicative",
    equations=("h_t = phi(C ((A^T h_{t-1}) * (B^T x_t)) + V h_{t-1} + U x_t + b)",),
    state="n",
    references=("lizaire2024", "sutskever2011", "lizaire2026"),
    notes=(
        "A 2rnn whose tensor is sum_r a_r o b_r o c_r.",
        "A (n x R), B (d x R) and C (n x R) are weight_a_l{k}, weight_b_l{k} and weight_c_l{k}.",
        'With nonlinearity="identity" the outputs are polynomials of the inputs.',
    ),
)
class CPRNN(SecondOrder):
    """The second-order network whose tensor is given by a CP decomposition.

    Parameters
    ----------
    rank
        R, the number of terms of the decomposition; by default n.
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        rank: int | None = None,
        **common: Unpack[SecondOrderOptions],
    ) -> None:
        self.rank = positive_int("hidden_size", hidden_size) if rank is None else positive_int("rank", rank)
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare(self, layer: Layer) -> None:
        """Create A, B, C, U, V and b."""
        n = self.hidden_size
        for name, size in (("weight_a", n), ("weight_b", layer.input_size), ("weight_c", n)):
            self.parameter(name, size, self.rank, role="bilinear")
        super().declare(layer)

    def enter(self, ops: Operations, w: Weights, x: Any) -> tuple[Any, Any]:
        """Return B^T x and U x + b."""
        return ops.matmul(x, w["weight_b"]), self.first_order(ops, w, x)

    def combine(self, ops: Operations, w: Weights, a: tuple[Any, Any], state: Any) -> Any:
        """Return the pre-activation."""
        factor, term = a
        second = ops.matmul(ops.mul(ops.matmul(state, w["weight_a"]), factor), w["weight_c"].T)
        return ops.add(ops.add(second, ops.matmul(state, w["weight_hh"].T)), term)


@network(
    "cpbirnn",
    family="multiplicative",
    equations=("h_t = C ((A^T h_{t-1}) * (B^T x_t)) (+ the layer's input where residual), h_0 = 1",),
    state="n",
    references=("lizaire2024", "lizaire2026"),
    notes=(
        "A birnn whose tensor is sum_r a_r o b_r o c_r.",
        "A (n x R), B (d x R) and C (n x R) are weight_a_l{k}, weight_b_l{k} and weight_c_l{k}.",
        "It has no biases, and without residual connections zero input makes it zero for ever.",
        "The weights start as U(-1/sqrt(n), 1/sqrt(n)), as published: states grow or shrink geometrically with time.",
    ),
)
class CPBIRNN(Bilinear):
    """The bilinear network whose tensor is given by a CP decomposition.

    Parameters
    ----------
    rank
        R, the number of terms of the decomposition; by default n.
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        rank: int | None = None,
        **common: Unpack[BilinearOptions],
    ) -> None:
        self.rank = positive_int("hidden_size", hidden_size) if rank is None else positive_int("rank", rank)
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare(self, layer: Layer) -> None:
        """Create A, B and C."""
        n = self.hidden_size
        for name, size in (("weight_a", n), ("weight_b", layer.input_size), ("weight_c", n)):
            self.parameter(name, size, self.rank, role="bilinear")
        super().declare(layer)

    def project(self, ops: Operations, w: Weights, x: Any) -> Any:
        """Return B^T x."""
        return ops.matmul(x, w["weight_b"])

    def multiply(self, ops: Operations, w: Weights, projected: Any, state: Any) -> Any:
        """Return C ((A^T h) * (B^T x))."""
        return ops.matmul(ops.mul(ops.matmul(state, w["weight_a"]), projected), w["weight_c"].T)
