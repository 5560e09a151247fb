"""transformer: causal attention, recurrent by the cache of its keys and values."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.nn.block import HeadOptions, Heads, split_heads
from mnemoscope.nn.initialisers import normal
from mnemoscope.nn.ops.scan import transforming
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights
from mnemoscope.nn.state import State

__all__ = ["Cache", "Transformer"]


class Cache(NamedTuple):
    """Keys and values of the past, (B, capacity, heads, size), and how many steps there are, (B,)."""

    keys: Tensor
    values: Tensor
    length: Tensor


@network(
    "transformer",
    family="attention",
    equations=(
        "o_t = sum_{s <= t} softmax_s(q_t . k_s / sqrt(d_k)) v_s, for each head",
        "q_t, k_t, v_t = W (x_t + p_t); entries j, j + d_k/2 of q_t and k_t are turned by t 10000^(-2j/d_k)",
    ),
    state="2n each step",
    references=("vaswani2017", "su2024"),
    notes=(
        "Its state, the cache, grows: give a capacity= to step, to go on from a state, or to measure it.",
        "positions=N learns vectors p_1 .. p_N for the first layer; by default there are none, and only the turning.",
    ),
)
class Transformer(Heads):
    """Causal attention; the weights have the rows of q, k and v.

    Parameters
    ----------
    capacity
        Steps that the cache holds; by default the length of each call.
    positions
        Steps that have a learned vector; longer sequences are an error. By default none, without a limit.
    """

    modes: ClassVar[tuple[str, ...]] = ("recurrent", "parallel")
    parts: ClassVar[tuple[str, ...]] = ("gate", "mlp")
    grows: ClassVar[bool] = True

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        capacity: int | None = None,
        positions: int | None = None,
        **common: Unpack[HeadOptions],
    ) -> None:
        self.capacity = None if capacity is None else positive_int("capacity", capacity)
        self.positions = None if positions is None else positive_int("positions", positions)
        super().__init__(input_size, hidden_size, num_layers, **common)

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create the rows of q, k and v, and in the first layer the positions."""
        self.parameter("weight_ih", 3 * self.hidden_size, size, role="input")
        if self.positions is not None and layer.index == 0:
            self.parameter("position", self.positions, size, init=normal(0.02), role="input")

    def start_cell(self, w: Weights, batch: int, **factory: Any) -> Cache:
        """Return an empty cache."""
        empty = torch.zeros(batch, factory.pop("capacity"), self.heads, self.head_size, **factory)
        return Cache(empty, empty.clone(), torch.zeros(batch, dtype=torch.int64, device=empty.device))

    def drive_cell(self, w: Weights, x: Tensor) -> Tensor:
        """Return the input itself, whose position is in the state."""
        return x

    def advance_cell(self, w: Weights, a: Tensor, state: Cache) -> tuple[Tensor, Cache]:
        """Advance by one step."""
        outputs, last = self.unroll_cell(w, a[None], state, None)
        return outputs[0], last

    def unroll_cell(self, w: Weights, a: Tensor, state: Cache, lengths: Tensor | None) -> tuple[Tensor, Cache]:
        """Write all keys and values into the cache, then attend."""
        steps, capacity = len(a), state.keys.shape[1]
        taken = torch.full_like(state.length, steps) if lengths is None else lengths.to(a.device)
        times = state.length[:, None] + torch.arange(steps, device=a.device)  # batch, time
        x = a.transpose(0, 1)
        if "position" in w:
            x = x + w["position"][times.clamp(max=len(w["position"]) - 1)]
        q, k, v = (split_heads(part, self.heads) for part in F.linear(x, w["weight_ih"]).chunk(3, -1))
        q, k = self._turn(q, times), self._turn(k, times)
        # Steps after a sequence's end, and beyond the capacity, are written to a slot that is cut off again.
        alive = times < (state.length + taken)[:, None]
        slots = torch.where(alive, times, capacity).clamp(max=capacity)[..., None, None].expand_as(k)
        keys, values = (
            F.pad(old, (0, 0, 0, 0, 0, 1)).scatter(1, slots, new)[:, :capacity]
            for old, new in ((state.keys, k), (state.values, v))
        )
        seen = torch.arange(capacity, device=a.device) <= times[..., None]  # batch, time, slot
        scores = torch.einsum("bthd,bshd->bhts", q / math.sqrt(self.head_size), keys)
        weights = torch.softmax(scores.masked_fill(~seen[:, None], -torch.inf), -1)
        outputs = torch.einsum("bhts,bshd->tbhd", weights, values).flatten(-2)
        outputs = torch.where(alive.mT[..., None], outputs, 0.0)
        return outputs, Cache(keys, values, state.length + taken)

    def _turn(self, x: Float[Tensor, "batch time heads size"], times: Int[Tensor, "batch time"]) -> Tensor:
        half = self.head_size // 2
        if not half:
            return x
        frequencies = 10000.0 ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
        angles = (times[..., None] * frequencies)[:, :, None]
        cos, sin = (f(angles).to(x.dtype) for f in (torch.cos, torch.sin))
        one, two, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        return torch.cat([cos * one - sin * two, sin * one + cos * two, rest], -1)

    def unroll(self, w: Weights, x: Tensor, state: Any, lengths: Tensor | None) -> tuple[Tensor, Any]:
        """Refuse sequences that are longer than the cache or the positions."""
        for name, limit in (("capacity", self.capacity), ("positions", self.positions)):
            if limit is not None and not torch.compiler.is_exporting() and x.shape[0] > limit:
                raise expected("the sequence", f"at most {name} = {limit} steps long", x.shape[0])
        return super().unroll(w, x, state, lengths)

    def _check_state(self, hx: State, x: Tensor) -> None:
        super()._check_state(hx, x)
        if transforming() or torch.compiler.is_compiling() or not x.shape[1]:
            return
        before = max(int(cell.length.max()) for cell in hx)
        limits = [limit for limit in (self.capacity, self.positions) if limit is not None]
        if limits and before + len(x) > min(limits):
            raise expected("the sequence", f"at most {min(limits)} steps long with those before it", before + len(x))
