"""Networks of products only, which start from ones: what rac, birnn and cpbirnn share."""

from __future__ import annotations

from typing import Any, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.core.ring import Ring
from mnemoscope.nn.initialisers import constant
from mnemoscope.nn.polynomial import Polynomial
from mnemoscope.nn.stack import Layer, StackOptions, Weights

__all__ = ["Arithmetic", "ArithmeticOptions"]


class ArithmeticOptions(StackOptions, total=False):
    """The options that every network of products takes."""

    output_size: int | None
    learn_initial: bool


class Arithmetic(Polynomial):
    """A network of products: from zeros it could never leave zero, so its state starts as ones.

    Parameters
    ----------
    output_size
        C: the output is W_O h of the last layer, with ``weight_out`` of shape C x n (``weight_out_reverse`` for the
        other direction); by default the output is h.
    learn_initial
        Whether the state before the first input is learned, ``initial_l{k}``; it starts as ones.
    bias
        Changes nothing: there are no biases in products.
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        output_size: int | None = None,
        learn_initial: bool = False,
        **common: Unpack[StackOptions],
    ) -> None:
        self.readout_size = None if output_size is None else positive_int("output_size", output_size)
        if not isinstance(learn_initial, bool):
            raise expected("learn_initial", "True or False", learn_initial)
        self.learn_initial = learn_initial
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare(self, layer: Layer) -> None:
        """Create what every such network has: the initial state and W_O, where they are asked for."""
        if self.learn_initial:
            self.parameter("initial", self.hidden_size, init=constant(1.0), role="initial")
        if self.readout_size is not None and layer.last:
            full_name = "weight_out_reverse" if layer.reverse else "weight_out"
            self.parameter("weight_out", self.readout_size, self.hidden_size, role="readout", full_name=full_name)

    def start(self, w: Weights, batch: int, **factory: Any) -> Float[Tensor, "batch n"]:
        """Return ones, or what was learned."""
        ones = torch.ones(batch, self.hidden_size, **factory)
        return w["initial"].to(ones) * ones if self.learn_initial else ones

    def begin(self, ring: Ring, w: Weights, batch: int) -> Any:
        """Return the state before the first input, in a ring."""
        ones = ring.ones((batch, self.hidden_size))
        return ring.mul(ones, w["initial"]) if self.learn_initial else ones

    def advance(
        self, w: Weights, a: Any, state: Float[Tensor, "batch n"]
    ) -> tuple[Float[Tensor, "batch features"], Float[Tensor, "batch n"]]:
        """Advance by one step."""
        h, state = super().advance(w, a, state)
        return (F.linear(h, w["weight_out"]) if "weight_out" in w else h), state

    def unroll(
        self, w: Weights, x: Float[Tensor, "time batch input"], state: Any, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch features"], Any]:
        """Run whole sequences; W_O meets all steps at once."""
        y, state = super().unroll(w.without("weight_out"), x, state, lengths)
        return (F.linear(y, w["weight_out"]) if "weight_out" in w else y), state

    def layer_output_shape(self, index: int) -> tuple[int, ...]:
        """Return n, or C for the last layer, for each direction."""
        last = index == self.num_layers - 1
        width: int = self.readout_size if last and self.readout_size is not None else self.hidden_size
        return (width * self.directions,)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that build this network again; `output_size` as it was given, for one direction."""
        return super().options | {"output_size": self.readout_size}
