"""deltanet and gated-deltanet: linear attention that corrects what is stored under a key."""

from __future__ import annotations

import math
from typing import Any, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.core.errors import expected
from mnemoscope.nn.block import HeadOptions, Heads, split_heads
from mnemoscope.nn.initialisers import uniform
from mnemoscope.nn.ops.delta_rule import delta_rule
from mnemoscope.nn.ops.gates import gate
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["DeltaNet", "GatedDeltaNet", "draw_rate", "draw_step"]


@network(
    "deltanet",
    family="delta rule",
    equations=(
        "S_t = (I - beta_t k_t k_t^T) S_{t-1} + beta_t k_t v_t^T, o_t = S_t^T q_t / sqrt(d_k), for each head",
        "q_t, k_t = z / sqrt(|z|^2 + 10^-6) of z = silu(W x_t), v_t = silu(W_v x_t), beta_t = sigmoid(w_b x_t)",
    ),
    state="n^2/heads",
    references=("yang2024delta", "schlag2021", "grazzi2025"),
    notes=("negative_eigenvalues=True doubles beta: I - beta k k^T can reflect, and the network can count parity.",),
)
class DeltaNet(Heads):
    """The delta rule; the weights have the rows of q, k and v.

    Parameters
    ----------
    negative_eigenvalues
        Whether beta goes up to 2, so that the transition I - beta k k^T has eigenvalues down to -1.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        negative_eigenvalues: bool = False,
        **common: Unpack[HeadOptions],
    ) -> None:
        if not isinstance(negative_eigenvalues, bool):
            raise expected("negative_eigenvalues", "True or False", negative_eigenvalues)
        self.negative_eigenvalues = negative_eigenvalues
        super().__init__(input_size, hidden_size, num_layers, **common)

    @property
    def transitions(self) -> str:
        """I - beta k k^T."""
        return "reflections" if self.negative_eigenvalues else "projections"

    @property
    def key_size(self) -> int | None:
        """d_k."""
        return self.head_size

    @property
    def cell_blocks(self) -> tuple[int, int, int] | None:
        """Heads."""
        return self.heads, self.head_size, self.head_size

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create the rows of q, k and v, and beta."""
        bound = uniform(1 / math.sqrt(size))
        self.parameter("weight_ih", 3 * self.hidden_size, size, init=bound, role="input")
        self.parameter("weight_beta", self.heads, size, init=bound, role="input")

    def log_decay(self, w: Weights, x: Tensor) -> Tensor:
        """Return the logarithm of each head's decay: 0."""
        return x.new_zeros(*x.shape[:-1], self.heads, 1)

    def drive_cell(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        """Return q, k, v, the decay's logarithm and beta, (.., heads, size or 1)."""
        mixed = F.silu(F.linear(x, w["weight_ih"]))
        q, k, v = (split_heads(part, self.heads) for part in mixed.chunk(3, -1))
        beta = torch.sigmoid(F.linear(x, w["weight_beta"]))[..., None]
        beta = 2 * beta if self.negative_eigenvalues else beta
        q, k = gate(_unit(q)) / math.sqrt(self.head_size), gate(_unit(k))
        return q, k, v, gate(self.log_decay(w, x)), gate(beta)

    def advance_cell(self, w: Weights, a: Any, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one step."""
        q, k, v, log_decay, beta = a
        decayed = torch.exp(log_decay)[..., None] * state
        corrected = v - (k[..., None, :] @ decayed).squeeze(-2)
        state = decayed + (beta * k)[..., None] * corrected[..., None, :]
        return (q[..., None, :] @ state).flatten(-3), state

    def unroll_cell(self, w: Weights, a: Any, state: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run the chunked delta rule."""
        q, k, v, log_decay, beta = a
        outputs, last = delta_rule(q, k, v, log_decay, beta, state, lengths)
        return outputs.flatten(-2), last


@network(
    "gated-deltanet",
    family="delta rule",
    equations=(
        "S_t = alpha_t (I - beta_t k_t k_t^T) S_{t-1} + beta_t k_t v_t^T, o_t = S_t^T q_t / sqrt(d_k), for each head",
        "alpha_t = exp(-exp(a) softplus(w_a x_t + b)), the rest as deltanet",
    ),
    state="n^2/heads",
    references=("yang2025", "grazzi2025"),
    notes=("negative_eigenvalues=True doubles beta, as in deltanet.",),
)
class GatedDeltaNet(DeltaNet):
    """The gated delta rule: what is stored also decays, by one gate for each head."""

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create what deltanet has, and the decay."""
        super().declare_cell(layer, size)
        heads = self.heads
        self.parameter("weight_decay", heads, size, init=uniform(1 / math.sqrt(size)), role="input")
        self.parameter("log_rate", heads, init=draw_rate, role="state-space")
        self.parameter("step", heads, init=draw_step, role="state-space")

    def log_decay(self, w: Weights, x: Tensor) -> Tensor:
        """Return log alpha."""
        step = F.softplus(F.linear(x, w["weight_decay"], w["step"]))
        return (-torch.exp(w["log_rate"]) * step)[..., None]


def _unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def draw_rate(log_rate: Tensor, generator: torch.Generator | None) -> None:
    """Draw the logarithm of a rate that is uniform between 1 and 16."""
    log_rate.uniform_(1, 16, generator=generator).log_()


def draw_step(bias: Tensor, generator: torch.Generator | None) -> None:
    """Draw what softplus maps to a number between 1e-3 and 0.1, uniform in its logarithm."""
    step = bias.uniform_(math.log(1e-3), math.log(0.1), generator=generator).exp()
    bias.copy_(step + torch.log(-torch.expm1(-step)))
