"""mamba: selective state spaces, whose decays, inputs and outputs depend on the input."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.nn.block import Block, BlockOptions
from mnemoscope.nn.initialisers import constant, uniform
from mnemoscope.nn.networks.deltanet import draw_step
from mnemoscope.nn.ops.gates import gate
from mnemoscope.nn.ops.linear_scan import linear_scan
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["Mamba"]


@network(
    "mamba",
    family="state space",
    equations=(
        "S_t = exp(-Delta_t exp(A)) * S_{t-1} + (Delta_t * x_t) B_t^T, y_t = S_t C_t + D * x_t, S and A n x N",
        "B_t, C_t = W x_t, Delta_t = softplus(W_2 W_1 x_t + b)",
    ),
    state="n N",
    references=("gu2024", "grazzi2025"),
    notes=(
        "Input of another width than n is projected to it first.",
        "negative_eigenvalues=True takes 2 exp(-Delta exp(A)) - 1 for the decay, and the network can count parity.",
    ),
)
class Mamba(Block):
    """Selective state spaces; the weights have the rows of B, C and W_1.

    Parameters
    ----------
    order
        N, numbers in the state of each feature.
    rank
        Rank of the matrix W_2 W_1 of the time steps; by default n / 16, rounded up.
    negative_eigenvalues
        Whether decays go down to -1.
    """

    parts: ClassVar[tuple[str, ...]] = ("convolution", "gate")
    square: ClassVar[bool] = True
    batch_axis = 0

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        order: int = 16,
        rank: int | None = None,
        negative_eigenvalues: bool = False,
        **common: Unpack[BlockOptions],
    ) -> None:
        if not isinstance(negative_eigenvalues, bool):
            raise expected("negative_eigenvalues", "True or False", negative_eigenvalues)
        self.order, self.negative_eigenvalues = positive_int("order", order), negative_eigenvalues
        self.rank = -(-positive_int("hidden_size", hidden_size) // 16) if rank is None else positive_int("rank", rank)
        super().__init__(input_size, hidden_size, num_layers, **common)

    @property
    def transitions(self) -> str:
        """The decays."""
        return "real diagonal" if self.negative_eigenvalues else "non-negative"

    @property
    def cell_blocks(self) -> tuple[int, int, int] | None:
        """All numbers."""
        return self.hidden_size * self.order, 1, 1

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create the rows of B, C and W_1, then W_2, b, A and D."""
        n = self.hidden_size
        self.parameter("weight_ih", 2 * self.order + self.rank, n, role="input")
        self.parameter("weight_step", n, self.rank, init=uniform(1 / math.sqrt(self.rank)), role="input")
        self.parameter("step", n, init=draw_step, role="state-space")
        self.parameter("log_rate", n, self.order, init=_rates, role="state-space")
        self.parameter("weight_skip", n, init=constant(1.0))

    def start_cell(self, w: Weights, batch: int, **factory: Any) -> Tensor:
        """Return zeros, (B, n, N)."""
        return torch.zeros(batch, self.hidden_size, self.order, **factory)

    def drive_cell(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        """Return the decays, what is added, both (.., n, N), C and D * x."""
        sizes = [self.order, self.order, self.rank]
        keys, queries, low = torch.split(gate(F.linear(x, w["weight_ih"])), sizes, -1)
        step = F.softplus(F.linear(low, w["weight_step"], w["step"]))
        decay = torch.exp(-step[..., None] * torch.exp(w["log_rate"]))
        decay = 2 * decay - 1 if self.negative_eigenvalues else decay
        return decay, (step * x)[..., None] * keys[..., None, :], queries, w["weight_skip"] * x

    def advance_cell(self, w: Weights, a: Any, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one step."""
        decay, added, queries, skip = a
        state = decay * state + added
        return (state @ queries[..., None]).squeeze(-1) + skip, state

    def unroll_cell(self, w: Weights, a: Any, state: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run the linear scan."""
        decay, added, queries, skip = a
        states, last = linear_scan(added, decay, state, lengths)
        return (states @ queries[..., None]).squeeze(-1) + skip, last


def _rates(parameter: Tensor, generator: torch.Generator | None) -> None:
    """Set exp(A) of every feature to 1, 2, .., N."""
    parameter.copy_(torch.arange(1, parameter.shape[1] + 1, dtype=parameter.dtype).log())
