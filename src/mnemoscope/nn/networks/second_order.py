"""2rnn: the second-order network."""

from __future__ import annotations

from typing import Any, Unpack

from mnemoscope.core.errors import choice
from mnemoscope.nn.activation import NONLINEARITIES
from mnemoscope.nn.initialisers import uniform
from mnemoscope.nn.polynomial import Operations, Polynomial, bilinear
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, StackOptions, Weights

__all__ = ["SecondOrder", "SecondOrderOptions", "SecondOrderRNN"]


class SecondOrderOptions(StackOptions, total=False):
    """The options of second-order networks."""

    nonlinearity: str


class SecondOrder(Polynomial):
    """h_t = phi(bilinear(h_{t-1}, x_t) + V h_{t-1} + U x_t + b): a subclass says what the bilinear term is.

    Parameters
    ----------
    nonlinearity
        phi: ``"tanh"``, ``"relu"``, ``"modrelu"`` (its own bias, and no other) or ``"identity"``.
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        nonlinearity: str = "tanh",
        **common: Unpack[StackOptions],
    ) -> None:
        self.nonlinearity = choice("nonlinearity", nonlinearity, NONLINEARITIES)
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare(self, layer: Layer) -> None:
        """Create U, V and b."""
        self.parameter("weight_ih", self.hidden_size, layer.input_size, role="input")
        self.parameter("weight_hh", self.hidden_size, self.hidden_size, role="recurrent")
        if self.bias:
            self.parameter("bias", self.hidden_size, role="bias")

    def first_order(self, ops: Operations, w: Weights, x: Any) -> Any:
        """Return U x + b."""
        ux = ops.matmul(x, w["weight_ih"].T)
        return ops.add(ux, w["bias"]) if self.bias and self.nonlinearity != "modrelu" else ux


@network(
    "2rnn",
    family="multiplicative",
    equations=(
        "h_t = phi(A x1 h_{t-1} x2 x_t + V h_{t-1} + U x_t + b)",
        "(A x1 h x2 x)_k = sum_ij A_ijk h_i x_j",
    ),
    state="n",
    references=("giles1992", "lizaire2026"),
    notes=(
        "A, of shape n x d x n, is weight_bilinear_l{k}.",
        'With nonlinearity="identity" the outputs are polynomials of the inputs.',
    ),
)
class SecondOrderRNN(SecondOrder):
    """The second-order network: Elman's with a bilinear term of state and input.

    Parameters
    ----------
    init
        How A starts: ``"uniform"`` on +-1/sqrt(n), as published, which suits inputs of norm 1 (one-hot symbols), or
        ``"fan-in"``, uniform on +-1/sqrt(n d), for d inputs of size 1: with the former their states would explode.
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        init: str = "uniform",
        **common: Unpack[SecondOrderOptions],
    ) -> None:
        self.init = choice("init", init, ("uniform", "fan-in"))
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare(self, layer: Layer) -> None:
        """Create A, U, V and b."""
        n, d = self.hidden_size, layer.input_size
        bound = n if self.init == "uniform" else n * d
        self.parameter("weight_bilinear", n, d, n, init=uniform(bound**-0.5), role="bilinear")
        super().declare(layer)

    def enter(self, ops: Operations, w: Weights, x: Any) -> tuple[Any, Any]:
        """Return x and U x + b."""
        return x, self.first_order(ops, w, x)

    def combine(self, ops: Operations, w: Weights, a: tuple[Any, Any], state: Any) -> Any:
        """Return the pre-activation."""
        x, term = a
        second = bilinear(ops, w["weight_bilinear"], state, x)
        return ops.add(ops.add(second, ops.matmul(state, w["weight_hh"].T)), term)
