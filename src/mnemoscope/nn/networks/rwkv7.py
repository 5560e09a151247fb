"""rwkv7: a delta rule with decays, keys to remove and rates of their own for each channel."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.core.errors import positive_int
from mnemoscope.nn.block import HeadOptions, Heads, split_heads
from mnemoscope.nn.initialisers import constant, uniform, zeros
from mnemoscope.nn.ops.delta_rule import rank_one_update
from mnemoscope.nn.ops.gates import gate
from mnemoscope.nn.ops.recurrence import last_alive
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["RWKV7", "RWKV7State"]


class RWKV7State(NamedTuple):
    """The last input, (B, n), and S, (B, heads, d_k, d_v)."""

    previous: Tensor
    memory: Tensor


@network(
    "rwkv7",
    family="delta rule",
    equations=(
        "S_t = (diag(w_t) - (a_t * h_t) h_t^T) S_{t-1} + k'_t v_t^T, for each head",
        "y_t = S_t^T r_t + (r_t . (rho * k'_t)) v_t",
        "r_t, k_t, v_t = W (x_t + mu * (x_{t-1} - x_t)), each with a mu of its own",
        "h_t = z / sqrt(|z|^2 + 10^-6) of z = k_t * xi, k'_t = k_t * (1 + (a_t - 1) * alpha)",
        "w_t = exp(-exp(-1/2) sigmoid(w_0 + W_2 tanh(W_1 .))), a_t = sigmoid(a_0 + A_2 A_1 .)",
    ),
    state="n^2/heads + n",
    references=("peng2025",),
    notes=(
        "Input of another width than n is projected to it first.",
        "The values of the first layer are not mixed into those of later ones.",
    ),
)
class RWKV7(Heads):
    """RWKV-7's time mixing: vectors mu, W, W_1 and A_1 in the order r, k, v, w, a.

    Parameters
    ----------
    rank
        Rank of the matrices W_2 W_1 and A_2 A_1.
    """

    square: ClassVar[bool] = True
    transitions = "fading negative"  # similar to diag(w) - u u^T, w above exp(-exp(-1/2)) = 0.545, |u| at most 1
    parts: ClassVar[tuple[str, ...]] = ("gate", "mlp")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        rank: int = 16,
        **common: Unpack[HeadOptions],
    ) -> None:
        self.rank = positive_int("rank", rank)
        super().__init__(input_size, hidden_size, num_layers, **common)

    @property
    def key_size(self) -> int | None:
        """d_k."""
        return self.head_size

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create the shifts, the maps of r, k and v, decays and rates of low rank, and vectors."""
        n, rank = self.hidden_size, self.rank
        self.parameter("shift", 5, n, init=constant(0.5), role="input")
        self.parameter("weight_ih", 3, n, n, init=uniform(1 / math.sqrt(n)), role="input")
        self.parameter("weight_low", 2, rank, n, init=uniform(1 / math.sqrt(n)), role="input")
        self.parameter("weight_high", 2, n, rank, init=uniform(1 / math.sqrt(rank)), role="input")
        self.parameter("decay", n, init=lambda t, _: t.copy_(torch.linspace(-6, -1, n)), role="state-space")
        self.parameter("rate", n, init=zeros, role="state-space")
        self.parameter("removal", n, init=constant(0.85), role="input")
        self.parameter("replacement", n, init=constant(1.0), role="input")
        self.parameter("bonus", n, init=zeros, role="readout")

    def start_cell(self, w: Weights, batch: int, **factory: Any) -> RWKV7State:
        """Return zeros."""
        return RWKV7State(torch.zeros(batch, self.hidden_size, **factory), super().start_cell(w, batch, **factory))

    def drive_cell(self, w: Weights, x: Tensor) -> Tensor:
        """Return the input itself, which the next step needs, too."""
        return x

    def _vectors(self, w: Weights, x: Tensor, previous: Tensor) -> tuple[Tensor, ...]:
        """Return r, k', v, log w, h and -a * h, (.., heads, size)."""
        r, k, v, d, a = ((x + mu * (previous - x)) for mu in w["shift"].unbind(0))
        r, k, v = (F.linear(part, weight) for part, weight in zip((r, k, v), w["weight_ih"].unbind(0), strict=True))
        (d_low, a_low), (d_high, a_high) = w["weight_low"].unbind(0), w["weight_high"].unbind(0)
        d = F.linear(torch.tanh(F.linear(d, d_low)), d_high) + w["decay"]
        a = torch.sigmoid(F.linear(F.linear(a, a_low), a_high) + w["rate"])
        r, k, a = gate(r), gate(k), gate(a)
        log_decay = -math.exp(-0.5) * gate(torch.sigmoid(d))
        removed, kept = k * w["removal"], k * (1 + (a - 1) * w["replacement"])
        r, kept, v, log_decay, removed, a = (
            split_heads(part, self.heads) for part in (r, kept, v, log_decay, removed, a)
        )
        removed = removed * torch.rsqrt(removed.square().sum(-1, keepdim=True) + 1e-6)
        return r, kept, v, log_decay, removed, -a * removed

    def advance_cell(self, w: Weights, a: Tensor, state: RWKV7State) -> tuple[Tensor, RWKV7State]:
        """Advance by one step."""
        r, k, v, log_decay, lookup, feedback = self._vectors(w, a, state.previous)
        found = (lookup[..., None, :] @ state.memory).squeeze(-2)
        memory = torch.exp(log_decay)[..., None] * state.memory
        memory = memory + feedback[..., None] * found[..., None, :] + k[..., None] * v[..., None, :]
        return self._read(w, (r[..., None, :] @ memory).squeeze(-2), r, k, v), RWKV7State(a, memory)

    def unroll_cell(
        self, w: Weights, a: Tensor, state: RWKV7State, lengths: Tensor | None
    ) -> tuple[Tensor, RWKV7State]:
        """Run the chunked update of rank one."""
        before = torch.cat([state.previous[None], a[:-1]])
        r, k, v, log_decay, lookup, feedback = self._vectors(w, a, before)
        outputs, last = rank_one_update(r, k, v, log_decay, lookup, feedback, state.memory, lengths)
        previous = a[-1] if lengths is None else last_alive(a, lengths)
        return self._read(w, outputs, r, k, v), RWKV7State(previous, last)

    def _read(self, w: Weights, found: Tensor, r: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weight = (r * k * split_heads(w["bonus"], self.heads)).sum(-1, keepdim=True)
        return (found + weight * v).flatten(-2)
