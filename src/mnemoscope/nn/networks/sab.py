"""SAB, sparse attentive backtracking: attention to the few best of the states that are stored now and then."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor

from mnemoscope.core.errors import positive_int
from mnemoscope.nn.attention import Attentive, AttentiveOptions, Past, put
from mnemoscope.nn.registry import network

__all__ = ["SAB"]


@network(
    "sab",
    family="attention",
    equations=(
        "h_t, c_t = LSTM(x_t, (s_{t-1}, c_{t-1})); every k-th h_t is stored",
        "e_i = v . tanh(W s_{t-1} + U_a h_i) of the stored ones, a_i = relu(e_i - the (kappa+1)-th largest e)",
        "alpha = a / sum a (no read where all are zero), s_t = h_t + sum_i alpha_i h_i",
    ),
    state="2n + nT/k",
    references=("ke2018", "kerg2020"),
    notes=(
        "In training its gradient is not that of its loss, by design: it goes back through local steps and reads only.",
        "T is the capacity, by default the length of the call.",
        "While at most kappa states are stored, the least score is subtracted, so that a single state is not read.",
    ),
)
class SAB(Attentive):
    """An LSTM whose gradient goes back a few steps, and from there to the past states that it chose to read.

    Parameters
    ----------
    every
        k: a state is stored at every k-th step.
    best
        kappa: stored states that are read at most.
    truncate
        Steps between two cuts of the recurrence, through which no gradient goes in training.
    capacity
        Steps for which there is room; needed to go on from a state and to step. By default the length of the call.
    """

    grows: ClassVar[bool] = True

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        every: int = 10,
        best: int = 5,
        truncate: int = 10,
        capacity: int | None = None,
        **common: Unpack[AttentiveOptions],
    ) -> None:
        self.every = positive_int("every", every)
        self.best = self.top = positive_int("best", best)
        self.truncate = positive_int("truncate", truncate)
        self.capacity = None if capacity is None else positive_int("capacity", capacity)
        super().__init__(input_size, hidden_size, num_layers, core="lstm", **common)

    def slots(self, count: int) -> int:
        """Return one slot for every k-th step."""
        return count // self.every

    def store(self, memory: Past, h: Tensor) -> Past:
        """Put every k-th h into the next slot."""
        slots = torch.arange(memory.steps.shape[1], device=memory.steps.device)
        stored = (memory.length + 1) % self.every == 0
        here = (slots == (memory.length // self.every)[:, None]) & stored[:, None]
        return memory._replace(states=put(here, h, memory.states), steps=put(here, memory.length, memory.steps))

    def enter(self, memory: Past) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return macro-state and cell, in training without their gradient at every `truncate`-th step."""
        if not self.training:
            return memory.macro, memory.carried
        cut = (memory.length % self.truncate == 0)[:, None]
        macro, cell = (torch.where(cut, part.detach(), part) for part in (memory.macro, *memory.carried))
        return macro, (cell,)

    def cuts(self, count: int, steps: int) -> frozenset[int]:
        """Return the steps at which the recurrence is cut."""
        return frozenset(t for t in range(steps) if (count + t) % self.truncate == 0) if self.training else frozenset()

    def _fuses(self, x: Tensor, state: Any) -> bool:
        if not super()._fuses(x, state):
            return False
        return not self.training or bool((state.length == state.length[0]).all())  # the same cuts for all examples
