"""mirnn: multiplicative integration inside a nonlinearity."""

from __future__ import annotations

from typing import Any, Unpack

from mnemoscope.core.errors import choice
from mnemoscope.nn.activation import NONLINEARITIES
from mnemoscope.nn.initialisers import constant
from mnemoscope.nn.polynomial import Operations, Polynomial
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, StackOptions, Weights

__all__ = ["MIRNN"]


@network(
    "mirnn",
    family="multiplicative",
    equations=("h_t = phi(alpha * (V h_{t-1}) * (U x_t) + beta_h * (V h_{t-1}) + beta_x * (U x_t) + b)",),
    state="n",
    references=("wu2016",),
    notes=(
        "alpha starts as 1, beta_h and beta_x as 1/2; with alpha = 0 and both betas 1 it is Elman's network.",
        'With nonlinearity="identity" the outputs are polynomials of the inputs.',
    ),
)
class MIRNN(Polynomial):
    """Elman's network whose two terms are multiplied as well as added.

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
        """Create U, V, the three vectors that weigh the terms, and b."""
        n = self.hidden_size
        self.parameter("weight_ih", n, layer.input_size, role="input")
        self.parameter("weight_hh", n, n, role="recurrent")
        for name, value in (("alpha", 1.0), ("beta_h", 0.5), ("beta_x", 0.5)):
            self.parameter(name, n, init=constant(value))
        if self.bias:
            self.parameter("bias", n, role="bias")

    def enter(self, ops: Operations, w: Weights, x: Any) -> tuple[Any, Any]:
        """Return what V h is multiplied by, alpha * U x + beta_h, and what is added, beta_x * U x + b."""
        ux = ops.matmul(x, w["weight_ih"].T)
        factor = ops.add(ops.mul(ux, w["alpha"]), w["beta_h"])
        term = ops.mul(ux, w["beta_x"])
        return factor, ops.add(term, w["bias"]) if self.bias and self.nonlinearity != "modrelu" else term

    def combine(self, ops: Operations, w: Weights, a: tuple[Any, Any], state: Any) -> Any:
        """Return the pre-activation."""
        factor, term = a
        return ops.add(ops.mul(ops.matmul(state, w["weight_hh"].T), factor), term)
