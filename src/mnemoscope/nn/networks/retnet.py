"""retnet: linear attention with a fixed decay and a rotation for each head."""

from __future__ import annotations

import math
from typing import Any, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import expected
from mnemoscope.nn.block import HeadOptions, Heads, split_heads
from mnemoscope.nn.ops.gates import gate
from mnemoscope.nn.ops.linear_attention import linear_attention
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["RetNet"]


@network(
    "retnet",
    family="linear attention",
    equations=(
        "S_t = gamma R S_{t-1} + k_t v_t^T, o_t = S_t^T q_t, for each head; gamma = 1 - 2^(-5 - head)",
        "q_t = W_q x_t, k_t = W_k x_t / sqrt(d_k), v_t = W_v x_t; R turns entries j, j + d_k/2 by -10000^(-2j/d_k)",
    ),
    state="n^2/heads",
    references=("sun2023",),
    notes=("R in the recurrence is the paper's rotation of q and k by their positions: nothing counts the steps.",),
)
class RetNet(Heads):
    """Multi-scale retention; the weights have the rows of q, k and v.

    Parameters
    ----------
    rotation
        Whether keys are turned, R; otherwise R = I.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        rotation: bool = True,
        **common: Unpack[HeadOptions],
    ) -> None:
        if not isinstance(rotation, bool):
            raise expected("rotation", "True or False", rotation)
        self.rotation = rotation
        super().__init__(input_size, hidden_size, num_layers, **common)

    @property
    def transitions(self) -> str:
        """Gamma R."""
        return "fixed diagonal" if self.rotation else "non-negative"

    @property
    def key_size(self) -> int | None:
        """d_k."""
        return self.head_size

    @property
    def cell_blocks(self) -> tuple[int, int, int] | None:
        """Heads."""
        return self.heads, self.head_size, self.head_size

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create the rows of q, k and v."""
        self.parameter("weight_ih", 3 * self.hidden_size, size, role="input")

    @property
    def log_decay(self) -> Float[Tensor, "heads 1"]:
        """Log gamma of each head."""
        return torch.log1p(-torch.exp2(-5.0 - torch.arange(self.heads, dtype=torch.float64, device="cpu")))[:, None]

    def drive_cell(self, w: Weights, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return q, k and v, (.., heads, size)."""
        q, k, v = (split_heads(part, self.heads) for part in F.linear(x, w["weight_ih"]).chunk(3, -1))
        return gate(q), gate(k) / math.sqrt(self.head_size), v

    def advance_cell(self, w: Weights, a: Any, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one step."""
        q, k, v = a
        decay = self.log_decay.exp().to(state)[..., None]
        state = decay * self._turn(state, torch.ones((), device=state.device)) + k[..., None] * v[..., None, :]
        return (q[..., None, :] @ state).flatten(-3), state

    def unroll_cell(self, w: Weights, a: Any, state: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run chunked linear attention in the frame that turns with R, and turn its last state back."""
        q, k, v = a
        times = torch.arange(1, len(v) + 1, device=v.device)[:, None, None]
        q, k = (self._turn(part[..., None], -times).squeeze(-1) for part in (q, k))
        outputs, last = linear_attention(q, k, v, self.log_decay.to(v), state, lengths)
        ends = times[-1] if lengths is None else lengths.to(v.device)[:, None]
        return outputs.flatten(-2), self._turn(last, ends)

    def _turn(self, keys: Float[Tensor, "*batch heads size any"], times: Tensor) -> Tensor:
        """Return R^times applied to the axis of keys; the angles, which grow with time, in float64.

        R turns back: what q meets of an older key is e^{i theta (t - s)} times the product of the two, as in the paper.
        """
        half = self.head_size // 2
        if not self.rotation or not half:
            return keys
        frequencies = 10000.0 ** (-torch.arange(half, dtype=torch.float64, device=keys.device) / half)
        angles = (-times[..., None] * frequencies)[..., None]
        cos, sin = (f(angles).to(keys.dtype) for f in (torch.cos, torch.sin))
        one, two, rest = keys[..., :half, :], keys[..., half : 2 * half, :], keys[..., 2 * half :, :]
        return torch.cat([cos * one - sin * two, sin * one + cos * two, rest], -2)
