"""Networks of products only, which start from ones: what rac, birnn and cpbirnn share."""

from __future__ import annotations

import math
from typing import Any, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.core.ring import Ring
from mnemoscope.nn.initialisers import constant, uniform
from mnemoscope.nn.polynomial import Polynomial
from mnemoscope.nn.stack import StackOptions, Weights
from mnemoscope.nn.state import State

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
        input_size: int,
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

    def declare(self, input_size: int) -> None:
        """Create what every such network has: the initial state and W_O, where they are asked for."""
        if self.learn_initial:
            self.parameter("initial", self.hidden_size, init=constant(1.0))
        if self.readout_size is not None and self._is_last(self._suffixes[-1]):
            shape = (self.readout_size, self.hidden_size)
            self.register_parameter(_readout(self._suffixes[-1]), nn.Parameter(torch.empty(*shape, **self._factory)))

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew."""
        super().reset_parameters(generator)
        for name in filter(self._parameters.__contains__, ("weight_out", "weight_out_reverse")):
            parameter = self.get_parameter(name)
            drawn = torch.empty_like(parameter, device=generator.device) if generator else parameter
            uniform(1 / math.sqrt(self.hidden_size))(drawn, generator)
            parameter.copy_(drawn)

    def start(self, batch: int, **factory: Any) -> Float[Tensor, "batch n"]:
        """Return ones."""
        return torch.ones(batch, self.hidden_size, **factory)

    def init_state(
        self, batch: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> State:
        """Return the state before the first input: ``(layers * directions, batch, n)``, ones or what was learned."""
        state = super().init_state(batch, device=device, dtype=dtype)
        if not self.learn_initial:
            return state
        learned = torch.stack([getattr(self, "initial" + suffix) for suffix in self._suffixes])
        return learned.to(state)[:, None] * state

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
        y, state = super().unroll({k: v for k, v in w.items() if k != "weight_out"}, x, state, lengths)
        return (F.linear(y, w["weight_out"]) if "weight_out" in w else y), state

    @property
    def cell_output_size(self) -> int:
        """n, or C once the last layer is there."""
        whole = len(self._suffixes) == self.num_layers * self.directions
        return self.hidden_size if self.readout_size is None or not whole else self.readout_size

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that build this network again; `output_size` as it was given, for one direction."""
        return super().options | {"output_size": self.readout_size}

    def _gather(self, suffix: str) -> Weights:
        return super()._gather(suffix) | self._readout_of(suffix, self._parameters)

    def _named(self, weights: dict[str, Any], suffix: str) -> Weights:
        return super()._named(weights, suffix) | self._readout_of(suffix, weights)

    def _readout_of(self, suffix: str, weights: Any) -> Weights:
        if self.readout_size is None or not self._is_last(suffix):
            return {}
        return {"weight_out": weights[_readout(suffix)]}

    def _is_last(self, suffix: str) -> bool:
        return suffix.removesuffix("_reverse") == f"_l{self.num_layers - 1}"


def _readout(suffix: str) -> str:
    return "weight_out_reverse" if suffix.endswith("_reverse") else "weight_out"
