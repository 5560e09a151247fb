"""Neural Turing machines: a controller that writes to an external memory and reads from it, whatever its slots are."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemoscope.core.errors import choice, positive_int
from mnemoscope.nn.addressing import Heads, Trace, address, read_heads, shift_count, write_heads
from mnemoscope.nn.initialisers import normal
from mnemoscope.nn.ops.scan import mask_of, scan
from mnemoscope.nn.stack import Stack, StackOptions, Weights
from mnemoscope.nn.state import State

__all__ = ["Machine", "MachineOptions", "MachineState"]

_BLANK = 1e-5
"""What every number of the memory is at the start."""


class MachineState(NamedTuple):
    """Controller, memory and heads: the state of one layer.

    Attributes
    ----------
    controller
        What the controller carries: h, or h and c.
    memory
        The slots.
    read
        What the read heads read last.
    weights
        Of the read heads, then of the write heads.
    """

    controller: tuple[Tensor, ...]
    memory: Float[Tensor, "batch slots *slot"]
    read: Float[Tensor, "batch heads *slot"]
    weights: Float[Tensor, "batch heads slots"]


class MachineOptions(StackOptions, total=False):
    """The options that every machine takes."""

    read_heads: int
    write_heads: int
    shifts: int
    add: str
    focus: str


class Machine(Stack):
    """A controller with an external memory: it writes, then reads; reads go back to the controller at the next step.

    Parameters
    ----------
    read_heads, write_heads
        Heads that read and that write.
    shifts
        Places by which a head can move at a step, an odd number: 3 for -1, 0, 1.
    add
        What is added to the memory: ``"linear"``, or ``"tanh"`` of it.
    focus
        Where the heads are at the start: at the ``"first"`` slot; ``"uniform"``, under which all slots stay alike for
        ever, as a memory of one slot; or ``"learned"``.
    """

    batch_axis = 0
    slot: tuple[int, ...]
    slots: int

    def __init__(
        self,
        input_size: Any,
        hidden_size: Any,
        num_layers: int = 1,
        *,
        read_heads: int = 1,
        write_heads: int = 1,
        shifts: int = 3,
        add: str = "linear",
        focus: str = "first",
        **common: Any,
    ) -> None:
        self.read_heads = positive_int("read_heads", read_heads)
        self.write_heads = positive_int("write_heads", write_heads)
        self.shifts = shift_count(shifts)
        self.add = choice("add", add, ("linear", "tanh"))
        self.focus = choice("focus", focus, ("first", "uniform", "learned"))
        super().__init__(input_size, hidden_size, num_layers, **common)

    @property
    def heads(self) -> int:
        """Heads that read or write."""
        return self.read_heads + self.write_heads

    # What a machine says ----------------------------------------------------------------------------

    @abstractmethod
    def control(
        self, w: Weights, a: Any, controller: tuple[Tensor, ...], read: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the controller's output h and what it carries on."""

    @abstractmethod
    def instruct(self, w: Weights, h: Tensor) -> tuple[Heads, Tensor, Tensor]:
        """Return what the heads say, and what is erased and added, (batch, write heads, width)."""

    @abstractmethod
    def output(self, w: Weights, h: Float[Tensor, "*time batch *hidden"], read: Tensor) -> Tensor:
        """Return what is given out, of the controller's output and what was read."""

    @abstractmethod
    def controller_start(self, w: Weights, batch: int, **factory: Any) -> tuple[Tensor, ...]:
        """Return what the controller carries before the first input."""

    def declare_focus(self) -> None:
        """Create where the heads start, if that is learned."""
        if self.focus == "learned":
            self.parameter("focus", self.heads, self.slots, init=normal(1.0), role="initial")

    # The cell ---------------------------------------------------------------------------------------

    def start(self, w: Weights, batch: int, **factory: Any) -> MachineState:
        """Return a blank memory, and heads in their places."""
        memory = torch.full((batch, self.slots, *self.slot), _BLANK, **factory)
        if self.focus == "learned":
            weights = torch.softmax(w["focus"], -1).to(**factory)
        else:
            weights = torch.full((self.heads, self.slots), 1 / self.slots, **factory)
            if self.focus == "first":
                weights = torch.eye(1, self.slots, **factory).expand(self.heads, -1)
        read = self._zeros(batch, self.read_heads, *self.slot, **factory)
        return MachineState(
            self.controller_start(w, batch, **factory), memory, read, weights.expand(batch, -1, -1).clone()
        )

    def advance(self, w: Weights, a: Any, state: MachineState) -> tuple[Tensor, MachineState]:
        """Advance by one step."""
        (h, read), state = self._turn(w, a, state)
        return self.output(w, h, read), state

    def _turn(self, w: Weights, a: Any, state: MachineState) -> tuple[tuple[Tensor, Tensor], MachineState]:
        h, controller = self.control(w, a, state.controller, state.read)
        heads, erase, add = self.instruct(w, h)
        memory = state.memory.flatten(2)
        readers = self.read_heads
        writing = address(memory, heads.part(readers, self.heads), state.weights[:, readers:])
        memory = write_heads(memory, writing, erase, torch.tanh(add) if self.add == "tanh" else add)
        reading = address(memory, heads.part(0, readers), state.weights[:, :readers])
        read = read_heads(memory, reading).reshape(-1, readers, *self.slot)
        weights = torch.cat([reading, writing], 1)
        return (h, read), MachineState(controller, memory.reshape(state.memory.shape), read, weights)

    def unroll(
        self, w: Weights, x: Float[Tensor, "time batch *input"], state: Any, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch *features"], Any]:
        """Run whole sequences; outputs are computed for all steps at once."""
        mask = mask_of(lengths, x)

        def turn(a: Any, state: MachineState) -> tuple[Tensor, MachineState]:
            (h, read), state = self._turn(w, a, state)
            return torch.cat([h.flatten(1), read.flatten(1)], -1), state

        made, state = scan(turn, self.drive(w, x), state, mask)
        state = tree_map(torch.clone, state)  # its parts are views of each other
        width = math.prod(self.hidden_shape)
        h = made[..., :width].reshape(*made.shape[:2], *self.hidden_shape)
        y = self.output(w, h, made[..., width:].reshape(*made.shape[:2], self.read_heads, *self.slot))
        return (y if mask is None else torch.where(mask.reshape(*mask.shape, *[1] * (y.dim() - 2)), y, 0.0)), state

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """Shape of the controller's output."""
        return (self.hidden_size,)

    def readout_state(self, state: State) -> State:
        """Return controller and memory of every layer."""
        return tuple((cell.controller, cell.memory) for cell in state)

    def trace(self, input: Float[Tensor, "time batch *input"], hx: State | None = None, *, layer: int = 0) -> Trace:
        """Return the weights of the heads and the memory at every step of a sequence, in one layer."""
        weights, x, cells = self.before_layer(input, hx, layer)
        w, state = weights[layer * self.directions], cells[layer * self.directions]

        def turn(a: Any, state: MachineState) -> tuple[Tensor, MachineState]:
            _, state = self._turn(w, a, state)
            return torch.cat([state.weights.flatten(1), state.memory.flatten(1)], -1), state

        made, _ = scan(turn, self.drive(w, x), state)
        width, readers = self.heads * self.slots, self.read_heads
        at = made[..., :width].reshape(*made.shape[:2], self.heads, self.slots)
        memory = made[..., width:].reshape(*made.shape[:2], self.slots, *self.slot)
        return Trace(at[:, :, :readers], at[:, :, readers:], memory)
