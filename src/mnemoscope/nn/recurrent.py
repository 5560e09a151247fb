"""The contract of a recurrent network: torch.nn.RNN's calling forms above, a pure step beneath."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.nn import state as states
from mnemoscope.nn.causal import Causal
from mnemoscope.nn.state import State

__all__ = ["Recurrent"]


class Recurrent(Causal, nn.Module, ABC):
    """A network with a state: ``output, hx = layer(input, hx=None)``.

    A subclass sets `input_size`, `output_size`, `batch_first` and says how a state starts and how it steps.
    Every calling form of `torch.nn.RNN` follows: batched and unbatched input, either order of time and
    batch, PackedSequence in and out, states in and out.

    Attributes
    ----------
    kind
        ``"recurrent"``.
    batch_axis
        Where the batch stands in every leaf of the state: 1 in torch's layout, 0 in all others.
    """

    kind: ClassVar[str] = "recurrent"
    input_size: int
    output_size: int
    batch_first: bool = False
    batch_axis: int = 1

    @abstractmethod
    def init_state(
        self, batch: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> State:
        """Return the state before the first input, of `batch` examples; `dtype` is the real type."""

    @abstractmethod
    def step(self, x: Float[Tensor, "batch input"], state: State) -> tuple[Float[Tensor, "batch output"], State]:
        """Return the output and the state after one input. Pure: nothing is kept in the layer."""

    @abstractmethod
    def run(
        self, x: Float[Tensor, "time batch input"], state: Any, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch output"], State]:
        """Run whole sequences. `lengths` (descending) says where padded ones end; None: all are full."""

    def forward(self, input: Tensor | PackedSequence, hx: State | None = None) -> tuple[Tensor | PackedSequence, State]:
        """Run the network over `input`, as `torch.nn.RNN` does.

        Parameters
        ----------
        input
            ``(time, batch, input_size)``, or batch first where the layer says so, or unbatched
            ``(time, input_size)``, or a PackedSequence.
        hx
            The state to start from, as it was returned; by default that of `init_state`.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        self._check_input(input)
        batched = input.dim() == 3
        if batched:
            x = input.transpose(0, 1) if self.batch_first else input
        else:
            x = input.unsqueeze(1)
            hx = None if hx is None else self._batched_state(hx)
        y, state = self.run(x, self._starting_state(hx, x), None)
        if not batched:
            return y.squeeze(1), states.remove_batch(state, self.batch_axis)
        return (y.transpose(0, 1) if self.batch_first else y), state

    def flatten_state(self, state: State) -> Float[Tensor, "batch size"]:
        """Return the state as one real vector per example (complex numbers as pairs, integers left out)."""
        return states.flatten(state, self.batch_axis)

    def unflatten_state(self, flat: Float[Tensor, "batch size"], like: State | None = None) -> State:
        """Invert `flatten_state`; `like` gives the structure where it is not that of `init_state`."""
        if like is None:
            like = self.init_state(flat.shape[0], device=flat.device, dtype=flat.dtype)
        return states.unflatten(flat, like, self.batch_axis)

    def readout_state(self, state: State) -> State:
        """Return the part of the state that Fisher memory and Lyapunov exponents condition on: all of it."""
        return state

    @property
    def state_size(self) -> int | None:
        """Real numbers in the state of one example; None when it grows with time."""
        return int(self.flatten_state(self.init_state(1)).shape[1])

    def _forward_packed(self, packed: PackedSequence, hx: State | None) -> tuple[PackedSequence, State]:
        data, batch_sizes, order, inverse = packed
        _check_packed(packed)
        self._check_width(data, "input")
        # Padding the sorted sequences, and not the original ones, keeps torch's order among equal lengths.
        x, lengths = pad_packed_sequence(PackedSequence(data, batch_sizes))
        if hx is not None:
            states.check_state(hx, self.init_state(x.shape[1], device=x.device, dtype=x.dtype))
            hx = states.index_batch(hx, order, self.batch_axis)
        y, state = self.run(x, self._starting_state(hx, x), lengths)
        repacked = pack_padded_sequence(y, lengths)
        output = PackedSequence(repacked.data, batch_sizes, order, inverse)
        return output, states.index_batch(state, inverse, self.batch_axis)

    def _starting_state(self, hx: State | None, x: Tensor) -> State | None:
        initial = self.init_state(x.shape[1], device=x.device, dtype=x.dtype)
        if hx is None:
            return initial
        states.check_state(hx, initial)
        return states.as_type(hx, initial)

    def _batched_state(self, hx: State) -> State:
        states.check_state(hx, states.remove_batch(self.init_state(1), self.batch_axis))
        return states.insert_batch(hx, self.batch_axis)

    def _check_input(self, input: Any) -> None:
        if not isinstance(input, Tensor):
            raise expected("input", "a tensor or a PackedSequence", Description(type(input).__name__))
        if input.dim() not in (2, 3):
            order = "(batch, time, input_size)" if self.batch_first else "(time, batch, input_size)"
            raise expected("input", f"of shape {order} or (time, input_size)", tuple(input.shape))
        self._check_width(input, "input")
        steps = input.shape[1] if self.batch_first and input.dim() == 3 else input.shape[0]
        if steps == 0:
            raise expected("input", "at least one step long", tuple(input.shape))

    def _check_width(self, x: Tensor, name: str) -> None:
        if not x.is_floating_point():
            raise expected(name, "real floating point", x.dtype)
        if x.shape[-1] != self.input_size:
            raise expected(f"the last axis of {name}", f"input_size = {self.input_size}", x.shape[-1])


def _check_packed(packed: PackedSequence) -> None:
    data, sizes, order, inverse = packed
    if not isinstance(data, Tensor) or not isinstance(sizes, Tensor):
        raise expected("the PackedSequence", "made of tensors", Description(f"{type(data)} and {type(sizes)}"))
    if sizes.dim() != 1 or sizes.dtype != torch.int64 or sizes.numel() == 0:
        raise expected("batch_sizes of the PackedSequence", "a vector of int64", Description(f"{sizes!r}"))
    if bool((sizes[1:] > sizes[:-1]).any()) or int(sizes[-1]) < 1:
        raise expected("batch_sizes of the PackedSequence", "positive and never increasing", sizes.tolist())
    if data.dim() != 2 or data.shape[0] != int(sizes.sum()):
        raise expected("data of the PackedSequence", f"of shape ({int(sizes.sum())}, input_size)", tuple(data.shape))
    whole = torch.arange(int(sizes[0]))
    for name, index in (("sorted_indices", order), ("unsorted_indices", inverse)):
        if index is not None and (index.dtype != torch.int64 or not torch.equal(index.cpu().sort().values, whole)):
            raise UserError(f"{name} of the PackedSequence must be a permutation of {len(whole)}, got {index.tolist()}")
    if (order is None) != (inverse is None) or (order is not None and not torch.equal(order[inverse].cpu(), whole)):
        raise UserError("sorted_indices and unsorted_indices of the PackedSequence must be inverse to each other")
