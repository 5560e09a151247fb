"""matrix-queue: a matrix network that reads a queue of its own past states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import choice, expected
from mnemoscope.nn.activation import activate
from mnemoscope.nn.bilinear import Pair, bilinear, matrix_size, unit_gain_factor
from mnemoscope.nn.initialisers import uniform, zeros
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Stack, StackOptions, Weights

__all__ = ["MatrixQueue"]


class Queue(NamedTuple):
    """The last states, the latest first: the state of one layer."""

    states: Float[Tensor, "batch slots p q"]


@network(
    "matrix-queue",
    family="matrix states",
    equations=("X(n) = phi(U^T X(n-1) V + W s(n) + sum_k alpha_k X(n-1-k) + B), B = 0 at the start",),
    state="(K+1)pq",
    references=("renanse2021",),
    notes=(
        "hidden_size is a pair (p, q); outputs are the p q numbers of X, row by row.",
        "With phi the identity it is the system of queue_fisher_memory.",
    ),
)
class MatrixQueue(Stack):
    """The linear network of matrices with an external memory of its last states.

    Parameters
    ----------
    hidden_size
        (rows, columns) of the state.
    queue
        alpha_1 .. alpha_K, constants: weights of the K states before the last one.
    nonlinearity
        phi: ``"identity"``, ``"tanh"`` or ``"relu"``.
    """

    batch_axis = 0
    small_sizes: ClassVar[dict[str, Any]] = {"input_size": 3, "hidden_size": (2, 3)}
    counted_at: ClassVar[dict[str, Any]] = {"input_size": 10, "hidden_size": (8, 8)}

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: Pair,
        num_layers: int = 1,
        *,
        queue: Sequence[float] = (0.3,),
        nonlinearity: str = "identity",
        **common: Unpack[StackOptions],
    ) -> None:
        if not isinstance(queue, list | tuple) or not queue or not all(_is_number(alpha) for alpha in queue):
            raise expected("queue", "one or more finite numbers, such as (0.3,)", queue)
        self.queue = tuple(float(alpha) for alpha in queue)
        self.nonlinearity = choice("nonlinearity", nonlinearity, ("identity", "tanh", "relu"))
        super().__init__(input_size, hidden_size, num_layers, **common)

    def _checked_hidden_size(self, hidden_size: Any) -> Pair:
        return matrix_size("hidden_size", hidden_size)

    @property
    def cell_output_size(self) -> int:
        """Numbers that one cell gives out per step: p q."""
        return math.prod(self.hidden_size)

    def declare(self, layer: Layer) -> None:
        """Create U, V, W and B."""
        p, q = self.hidden_size
        self.parameter("weight_ih", layer.input_size, p, q, init=uniform(1 / math.sqrt(p * q)), role="input")
        self.parameter("weight_hh_rows", p, p, init=unit_gain_factor(p), role="recurrent")
        self.parameter("weight_hh_columns", q, q, init=unit_gain_factor(q), role="recurrent")
        if self.bias:
            self.parameter("bias", p, q, init=zeros, role="bias")

    def start(self, w: Weights, batch: int, **factory: Any) -> Queue:
        """Return zeros."""
        return Queue(self._zeros(batch, 1 + len(self.queue), *self.hidden_size, **factory))

    def drive(self, w: Weights, x: Float[Tensor, "*time batch input"]) -> Float[Tensor, "*time batch p q"]:
        """Return W s + B."""
        a: Tensor = (x @ w["weight_ih"].flatten(1)).reshape(*x.shape[:-1], *self.hidden_size)
        return a + w["bias"] if self.bias else a

    def advance(self, w: Weights, a: Tensor, state: Queue) -> tuple[Float[Tensor, "batch pq"], Queue]:
        """Advance by one step."""
        last, *earlier = state.states.unbind(1)
        z = a + bilinear(last, w["weight_hh_rows"], w["weight_hh_columns"])
        for alpha, before in zip(self.queue, earlier, strict=True):
            z = z + alpha * before
        x = activate(self.nonlinearity, z)
        return x.flatten(1), Queue(torch.cat([x.unsqueeze(1), state.states[:, :-1]], 1))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
