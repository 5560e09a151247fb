"""The contract of a recurrent network: torch.nn.RNN's calling forms above, a pure step beneath."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.nn import state as states
from mnemoscope.nn.network import Network
from mnemoscope.nn.state import State

__all__ = ["Recurrent"]


class Recurrent(Network):
    """A network with a state: ``output, hx = layer(input, hx=None)``.

    A subclass sets `input_size`, `output_size`, `batch_first` and says how a state starts and how it steps.
    Every calling form of `torch.nn.RNN` follows: batched and unbatched input, either order of time and
    batch, PackedSequence in and out, states in and out.

    Attributes
    ----------
    batch_axis
        Where the batch stands in every leaf of the state: 1 in torch's layout, 0 in all others.
    grows
        Whether the state is a memory that grows with time, of fixed size only where `capacity` is given.
    capacity
        Steps that a memory that grows can hold.
    """

    stateful: ClassVar[bool] = True
    modes: ClassVar[tuple[str, ...]] = ("recurrent",)
    batch_axis: int = 1
    grows: ClassVar[bool] = False
    capacity: int | None = None

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

    def forward(
        self, input: Tensor | PackedSequence, hx: State | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor | PackedSequence, State]:
        """Run the network over `input`, as `torch.nn.RNN` does.

        Parameters
        ----------
        input
            ``(time, batch, input_size)``, or batch first where the layer says so, or unbatched
            ``(time, input_size)``, or a PackedSequence.
        hx
            The state to start from, as it was returned; by default that of `init_state`.
        mask
            Booleans (time, batch), or batch first where the layer says so, as torchrl gives them: True until a sequence
            ends. From there on its outputs are zero and its state stays.
        """
        if mask is not None:
            return self._forward_masked(input, hx, mask)
        hx = tuple(hx) if isinstance(hx, list) else hx
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        self._check_input(input)
        batched = input.dim() == 2 + len(self.input_shape)
        if batched:
            x = input.transpose(0, 1) if self.batch_first else input
        else:
            x = input.unsqueeze(1)
            hx = None if hx is None else self._batched_state(hx)
        x = self._as_read(x)
        y, state = self.run(x, self._starting_state(hx, x), None)
        if not batched:
            return y.squeeze(1), states.remove_batch(state, self.batch_axis)
        return (y.transpose(0, 1) if self.batch_first else y), state

    def stepper(self) -> Callable[[Tensor, State], tuple[Tensor, State]]:
        """Return `step` for many steps: maps computed once, nothing checked, states perhaps views of outputs."""
        return self.step

    def probe_states(self, batch: int, generator: torch.Generator, steps: int = 32) -> State:
        """Return states that occur: those after `steps` inputs drawn from N(0, 1), of the network's own type.

        A memory that grows is filled to half of its capacity at most, so that there is room to go on. A network whose
        states are not driven by such inputs says here which ones occur.
        """
        if self.grows and self.capacity is not None:
            steps = min(steps, max(1, self.capacity // 2))
        own = next((p for p in self.parameters() if p.is_floating_point()), None)
        like = self.flatten_state(self.init_state(1)) if own is None else own
        shape = (steps, batch, *self.input_shape)
        x = torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)
        with torch.no_grad():
            order = x.transpose(0, 1) if self.batch_first else x
            state: State = self(order.to(device=like.device, dtype=like.dtype))[1]
        return state

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
    def transition_blocks(self) -> tuple[int, int, int] | None:
        """How the state falls apart under h_t = A(x_t) h_{t-1} + b(x_t): (groups, rows, columns); None: it does not.

        The flat state is then that many matrices of rows x columns, and A multiplies each of them from the left by a
        square matrix of its own: measures compute with these, and never form A.
        """
        return None

    @property
    def state_size(self) -> int | None:
        """Real numbers in the state of one example; None when it grows with time and no `capacity` was given."""
        if self.grows and self.capacity is None:
            return None
        return int(self.flatten_state(self.init_state(1)).shape[1])

    def state_size_at(self, steps: int) -> int:
        """Return the real numbers in the state of one example after so many steps."""
        return int(self.flatten_state(self.init_state(1)).shape[1])

    def _forward_packed(self, packed: PackedSequence, hx: State | None) -> tuple[PackedSequence, State]:
        data, batch_sizes, order, inverse = packed
        _check_packed(packed, self.input_shape)
        self._check_width(data, "input")
        # Padding the sorted sequences, and not the original ones, keeps torch's order among equal lengths.
        x, lengths = pad_packed_sequence(PackedSequence(data, batch_sizes))
        x = self._as_read(x)
        if hx is not None:
            self._check_state(hx, x)
            hx = states.index_batch(hx, order, self.batch_axis)
        y, state = self.run(x, self._starting_state(hx, x), lengths)
        repacked = pack_padded_sequence(y, lengths)
        output = PackedSequence(repacked.data, batch_sizes, order, inverse)
        return output, states.index_batch(state, inverse, self.batch_axis)

    def _forward_masked(self, input: Any, hx: State | None, mask: Any) -> tuple[Tensor, State]:
        """Run padded sequences, whose ends a mask tells, from the longest to the shortest."""
        self._check_input(input)
        axes = input.shape[:2] if input.dim() == 2 + len(self.input_shape) else ()
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != axes:
            came = f"{mask.dtype} of {tuple(mask.shape)}" if isinstance(mask, Tensor) else type(mask).__name__
            raise expected("mask", f"booleans of shape {tuple(axes)}, for batched input", Description(came))
        x, alive = (part.transpose(0, 1) if self.batch_first else part for part in (input, mask))
        lengths = alive.sum(0)
        if not torch.equal(alive, torch.arange(len(x), device=x.device)[:, None] < lengths) or bool(
            (lengths < 1).any()
        ):
            raise UserError("mask must be True from the first step of each sequence to its end, and False after it")
        order = lengths.argsort(descending=True, stable=True)
        x, back = self._as_read(x[:, order]), order.argsort()
        if hx is not None:
            hx = tuple(hx) if isinstance(hx, list) else hx
            self._check_state(hx, x)
            hx = states.index_batch(hx, order, self.batch_axis)
        y, state = self.run(x, self._starting_state(hx, x), lengths[order].cpu())
        y = torch.where(alive.reshape(*alive.shape, *[1] * (y.dim() - 2)), y[:, back], 0.0)
        return y.transpose(0, 1) if self.batch_first else y, states.index_batch(state, back, self.batch_axis)

    def _as_read(self, x: Tensor) -> Tensor:
        """Return inputs (time, batch, *shape) as the cells read them: as vectors unless they read arrays."""
        return x.flatten(2) if self.input_axes == 1 and x.dim() > 3 else x

    def _starting_state(self, hx: State | None, x: Tensor) -> State | None:
        if hx is None:
            return self.init_state(x.shape[1], device=x.device, dtype=x.dtype)
        self._check_state(hx, x)
        return states.as_type(hx, x.dtype) if torch.is_autocast_enabled(x.device.type) else hx

    def _check_state(self, hx: State, x: Tensor) -> None:
        """Raise unless `hx` is a state for the inputs `x`, (time, batch, ..)."""
        states.check_state(hx, self.init_state(x.shape[1], device=x.device, dtype=x.dtype))

    def _batched_state(self, hx: State) -> State:
        states.check_state(hx, states.remove_batch(self.init_state(1), self.batch_axis))
        return states.insert_batch(hx, self.batch_axis)

    def _check_input(self, input: Any) -> None:
        if not isinstance(input, Tensor):
            raise expected("input", "a tensor or a PackedSequence", Description(type(input).__name__))
        axes = len(self.input_shape)
        if input.dim() not in (1 + axes, 2 + axes):
            one = ", ".join(map(str, self.input_shape)) if axes > 1 else "input_size"
            order = f"(batch, time, {one})" if self.batch_first else f"(time, batch, {one})"
            raise expected("input", f"of shape {order} or (time, {one})", tuple(input.shape))
        self._check_width(input, "input")
        steps = input.shape[1] if self.batch_first and input.dim() == 2 + axes else input.shape[0]
        if steps == 0:
            raise expected("input", "at least one step long", tuple(input.shape))

    def _check_width(self, x: Tensor, name: str) -> None:
        if not x.is_floating_point():
            raise expected(name, "real floating point", x.dtype)
        self.require_filled(x)
        shape = self.input_shape
        if len(shape) == 1 and x.shape[-1] != self.input_size:
            raise expected(f"the last axis of {name}", f"input_size = {self.input_size}", x.shape[-1])
        if x.shape[-len(shape) :] != shape:
            raise expected(f"the last axes of {name}", f"input_shape = {shape}", tuple(x.shape[-len(shape) :]))


def _check_packed(packed: PackedSequence, shape: tuple[int, ...]) -> None:
    data, sizes, order, inverse = packed
    if not isinstance(data, Tensor) or not isinstance(sizes, Tensor):
        raise expected("the PackedSequence", "made of tensors", Description(f"{type(data)} and {type(sizes)}"))
    if sizes.dim() != 1 or sizes.dtype != torch.int64 or sizes.numel() == 0:
        raise expected("batch_sizes of the PackedSequence", "a vector of int64", Description(f"{sizes!r}"))
    if bool((sizes[1:] > sizes[:-1]).any()) or int(sizes[-1]) < 1:
        raise expected("batch_sizes of the PackedSequence", "positive and never increasing", sizes.tolist())
    if data.dim() != 1 + len(shape) or data.shape[0] != int(sizes.sum()):
        one = "input_size" if len(shape) == 1 else ", ".join(map(str, shape))
        raise expected("data of the PackedSequence", f"of shape ({int(sizes.sum())}, {one})", tuple(data.shape))
    whole = torch.arange(int(sizes[0]))
    for name, index in (("sorted_indices", order), ("unsorted_indices", inverse)):
        if index is not None and (index.dtype != torch.int64 or not torch.equal(index.cpu().sort().values, whole)):
            raise UserError(f"{name} of the PackedSequence must be a permutation of {len(whole)}, got {index.tolist()}")
    if (order is None) != (inverse is None) or (order is not None and not torch.equal(order[inverse].cpu(), whole)):
        raise UserError("sorted_indices and unsorted_indices of the PackedSequence must be inverse to each other")
