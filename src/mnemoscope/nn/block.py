"""Networks of today: a recurrence with a parallel form, bare or in the block that papers put around it."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar, NamedTuple, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.nn.initialisers import constant, uniform, zeros
from mnemoscope.nn.ops.linear_attention import linear_attention
from mnemoscope.nn.ops.scan import mask_of, scan
from mnemoscope.nn.parallel import Parallel, ParallelOptions
from mnemoscope.nn.stack import Layer, StackOptions, Weights

__all__ = ["Block", "BlockOptions", "BlockState", "HeadOptions", "Heads", "LinearAttention", "split_heads"]

_TAPS = 4
"""Steps that the convolution of a block reads."""


class BlockOptions(ParallelOptions, total=False):
    """The options of all networks of today."""

    block: bool


class BlockState(NamedTuple):
    """State of a cell with a convolution in front: its last inputs, (B, taps - 1, n), and that of the cell."""

    buffer: Tensor
    cell: Any


class Block(Parallel):
    """A stack of recurrences, each bare or in a block.

    A network declares the weights of its cell (`declare_cell`), prepares its input (`drive_cell`), advances it
    (`advance_cell`) and, where it has a parallel form, computes all steps at once (`unroll_cell`). A block is, with
    those of its `parts` that the network's paper has,

        u = norm(x),  c = silu(convolution(u)),  y = cell(c),
        z = x + W_o (silu(W_g u) * norm(y)),  or  z = x + GLU(W_o gelu(y)),  output z + MLP(norm(z)).

    Input of another width than n is projected to it first; the two directions of a block are added.

    Parameters
    ----------
    block
        Whether the recurrence stands in its block (norm, convolution, gate, residual, MLP); by default it is bare.
    """

    parts: ClassVar[tuple[str, ...]] = ("convolution", "gate", "mlp")
    """Of a block: ``"convolution"``, ``"gate"`` or ``"glu"``, ``"mlp"``."""

    square: ClassVar[bool] = False
    """Whether the cell reads as many features as it has units, so that other inputs are projected."""

    heads: int = 1

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        block: bool = False,
        mode: str = "auto",
        **common: Unpack[StackOptions],
    ) -> None:
        if not isinstance(block, bool):
            raise expected("block", "True or False", block)
        self.block = block
        self.convolves = block and "convolution" in self.parts
        super().__init__(input_size, hidden_size, num_layers, mode=mode, **common)

    # The cell -----------------------------------------------------------------------------------

    @abstractmethod
    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create the weights of one cell that reads `size` numbers."""

    @abstractmethod
    def advance_cell(self, w: Weights, a: Any, state: Any) -> tuple[Float[Tensor, "batch n"], Any]:
        """Return output and state of one cell after one prepared input."""

    def drive_cell(self, w: Weights, x: Float[Tensor, "*time batch size"]) -> Any:
        """Return what the input contributes, for all steps at once."""
        return F.linear(x, w["weight_ih"], w.get("bias"))

    @property
    def cell_blocks(self) -> tuple[int, int, int] | None:
        """Groups, rows and columns into which the state of a cell falls apart, as `transition_blocks` says."""
        return None

    @property
    def transition_blocks(self) -> tuple[int, int, int] | None:
        """Those of the cell, where it is the only one and no convolution stands before it."""
        alone = self.num_layers == 1 and self.directions == 1 and not self.convolves
        return self.cell_blocks if alone else None

    def start_cell(self, w: Weights, batch: int, **factory: Any) -> Any:
        """Return the state of a cell before the first input: zeros."""
        return self._zeros(batch, self.hidden_size, **factory)

    def unroll_cell(self, w: Weights, a: Any, state: Any, lengths: Tensor | None) -> tuple[Tensor, Any]:
        """Return outputs and last state of one cell over all steps, of what `drive_cell` made: step by step."""
        return scan(partial(self.advance_cell, w), a, state, mask_of(lengths, tree_leaves(a)[0]))

    # The block around it ------------------------------------------------------------------------

    def declare(self, layer: Layer) -> None:
        """Create the weights of one layer."""
        n, size = self.hidden_size, layer.input_size
        if (self.block or self.square) and size != n:
            self.parameter("weight_project", n, size, init=uniform(1 / math.sqrt(size)), role="input")
            size = n
        if self.block:
            self._declare_block(layer)
        self.declare_cell(layer, size)

    def _declare_block(self, layer: Layer) -> None:
        n = self.hidden_size
        self.parameter("norm", n, init=constant(1.0))
        if self.convolves:
            self.parameter("weight_taps", _TAPS, n, init=uniform(1 / math.sqrt(_TAPS)), role="input")
        if layer.reverse:
            return  # what comes after the two directions were added is the first one's
        if "glu" in self.parts:
            self.parameter("weight_glu", 2 * n, n, role="readout")
            self.parameter("bias_glu", 2 * n, init=zeros, role="bias")
        if "gate" in self.parts:
            self.parameter("norm_heads", n, init=constant(1.0))
            self.parameter("weight_swish", n, n, role="readout")
            self.parameter("weight_merge", n, n, role="readout")
        if "mlp" in self.parts:
            self.parameter("norm_mlp", n, init=constant(1.0))
            self.parameter("weight_up", 4 * n, n, role="readout")
            self.parameter("weight_down", n, 2 * n, init=uniform(1 / math.sqrt(2 * n)), role="readout")

    def start(self, w: Weights, batch: int, **factory: Any) -> Any:
        """Return the state of a cell, with zeros for the past of its convolution."""
        cell = self.start_cell(w, batch, **factory)
        if not self.convolves:
            return cell
        factory.pop("capacity", None)
        return BlockState(torch.zeros(batch, _TAPS - 1, self.hidden_size, **factory), cell)

    def drive(self, w: Weights, x: Float[Tensor, "*time batch input"]) -> Any:
        """Return what the cell reads, or what the convolution before it reads."""
        u = self._projected(w, x)
        u = _norm(u, w["norm"]) if self.block else u
        return u if self.convolves else self.drive_cell(w, u)

    def advance(self, w: Weights, a: Any, state: Any) -> tuple[Float[Tensor, "batch n"], Any]:
        """Advance by one step."""
        if not self.convolves:
            return self.advance_cell(w, a, state)
        window = torch.cat([state.buffer, a[:, None]], 1)
        c = F.silu((window * w["weight_taps"]).sum(1))
        y, cell = self.advance_cell(w, self.drive_cell(w, c), state.cell)
        return y, BlockState(window[:, 1:], cell)

    def unroll(
        self, w: Weights, x: Float[Tensor, "time batch input"], state: Any, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch n"], Any]:
        """Run one cell over whole sequences in the form that `mode` says."""
        if state is None and (self.convolves or self.form(x.shape[0]) == "recurrent"):
            state = self.start(w, x.shape[1], device=x.device, dtype=x.dtype)
        y, last = super().unroll(w, x, state, lengths)
        return y, last if self.batch_axis else tree_map(Tensor.clone, last)  # memory of its own, as of stacked vectors

    def unroll_parallel(
        self, w: Weights, x: Float[Tensor, "time batch input"], state: Any, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch n"], Any]:
        """Return outputs and last state by an operation on all steps at once; numbers of 16 bits in float32."""
        a = self.drive(w, x)
        if self.convolves:
            c, buffer = _convolve(a, w["weight_taps"], state.buffer, lengths)
            a, state = self.drive_cell(w, c), state.cell
        if x.dtype.itemsize < 4:
            wide = torch.float32
            y, last = self.unroll_cell(w.to(wide), _cast(a, wide), _cast(state, wide), lengths)
            y, last = y.to(x.dtype), _cast(last, x.dtype)
        else:
            y, last = self.unroll_cell(w, a, state, lengths)
        return y, BlockState(buffer, last) if self.convolves else last

    def unroll_chunked(
        self, w: Weights, x: Float[Tensor, "time batch input"], state: Any, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch n"], Any]:
        """Return outputs and last state chunk by chunk."""
        return self.unroll_parallel(w, x, state, lengths)

    def between(self, w: Weights, x: Tensor, y: Tensor) -> Tensor:
        """Return what a layer hands on: y, or what the rest of the block makes of it."""
        if not self.block:
            return y
        x = self._projected(w, x)
        y = sum(y.chunk(self.directions, -1), torch.zeros((), dtype=y.dtype, device=y.device))
        if "glu" in self.parts:
            z = x + F.glu(F.linear(F.gelu(y), w["weight_glu"], w["bias_glu"]), -1)
        else:
            normed = _norm(split_heads(y, self.heads)).flatten(-2)
            gate = F.silu(F.linear(_norm(x, w["norm"]), w["weight_swish"]))
            z = x + F.linear(gate * normed * w["norm_heads"], w["weight_merge"])
        if "mlp" in self.parts:
            up, gate = F.linear(_norm(z, w["norm_mlp"]), w["weight_up"]).chunk(2, -1)
            z = z + F.linear(up * F.silu(gate), w["weight_down"])
        return z

    def _projected(self, w: Weights, x: Tensor) -> Tensor:
        return F.linear(x, w["weight_project"]) if "weight_project" in w else x

    @property
    def merges_directions(self) -> bool:
        """Whether the two directions are added, as in a block, and not concatenated."""
        return self.block

    @property
    def cell_output_size(self) -> int:
        """Numbers that one cell gives out per step: n."""
        return int(self.hidden_size)

    def layer_output_shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of what layer `index` hands on at a step."""
        return (int(self.hidden_size),) if self.block else super().layer_output_shape(index)


class HeadOptions(BlockOptions, total=False):
    """The options of networks with heads."""

    heads: int | None


class Heads(Block):
    """A block whose cell has heads, each with a matrix (d_k, d_v) for its state: (B, heads, d_k, d_v).

    Parameters
    ----------
    heads
        Heads of n / heads units each; by default the largest number up to 4 that divides n.
    """

    modes: ClassVar[tuple[str, ...]] = ("recurrent", "chunked")
    batch_axis = 0

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        heads: int | None = None,
        **common: Unpack[BlockOptions],
    ) -> None:
        n = positive_int("hidden_size", hidden_size)
        self.heads = next(k for k in (4, 3, 2, 1) if n % k == 0) if heads is None else positive_int("heads", heads)
        if n % self.heads:
            raise expected("heads", f"a divisor of hidden_size = {n}", heads)
        self.head_size = n // self.heads
        super().__init__(input_size, hidden_size, num_layers, **common)

    def start_cell(self, w: Weights, batch: int, **factory: Any) -> Any:
        """Return matrices of zeros."""
        return torch.zeros(batch, self.heads, self.head_size, self.head_size, **factory)


class LinearAttention(Heads):
    """Heads with S_t = diag(exp g_t) S_{t-1} + k_t v_t^T, o_t = S_t^T q_t; `drive_cell` returns q, k, v and g."""

    @property
    def key_size(self) -> int | None:
        """d_k."""
        return self.head_size

    @property
    def cell_blocks(self) -> tuple[int, int, int] | None:
        """The rows of all heads."""
        return self.hidden_size, 1, self.head_size

    def advance_cell(self, w: Weights, a: Any, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one step."""
        q, k, v, log_decay = a
        state = torch.exp(log_decay)[..., None] * state + k[..., None] * v[..., None, :]
        return (q[..., None, :] @ state).flatten(-3), state

    def unroll_cell(self, w: Weights, a: Any, state: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run chunked linear attention."""
        q, k, v, log_decay = a
        outputs, last = linear_attention(q, k, v, log_decay, state, lengths)
        return outputs.flatten(-2), last


def split_heads(x: Float[Tensor, "*batch n"], heads: int) -> Float[Tensor, "*batch heads size"]:
    """Return the features of each head."""
    return torch.unflatten(x, -1, (heads, x.shape[-1] // heads))


def _norm(x: Tensor, gain: Tensor | None = None) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], gain, eps=1e-5)  # the same in every type of numbers


def _convolve(u: Tensor, taps: Tensor, buffer: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return silu of the causal convolution of (T, B, n), and the last inputs of each sequence."""
    steps, past = len(u), len(taps) - 1
    whole = torch.cat([buffer.movedim(1, 0), u])
    c = sum((whole[k : k + steps] * taps[k] for k in range(1, past + 1)), whole[:steps] * taps[0])
    if lengths is None:
        return F.silu(c), whole[steps:].movedim(0, 1)
    rows = lengths.to(u.device) + torch.arange(past, device=u.device)[:, None]
    return F.silu(c), whole[rows, torch.arange(u.shape[1], device=u.device)].movedim(0, 1)


def _cast(tree: Any, dtype: torch.dtype) -> Any:
    return tree_map(lambda leaf: leaf.to(dtype) if leaf.is_floating_point() else leaf, tree)
