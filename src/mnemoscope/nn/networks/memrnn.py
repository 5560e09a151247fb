"""memrnn and memlstm: attention to all past states."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor

from mnemoscope.core.errors import positive_int
from mnemoscope.nn.attention import Attentive, AttentiveOptions, Past, put
from mnemoscope.nn.registry import network

__all__ = ["MemLSTM", "MemRNN"]


class FullOptions(AttentiveOptions, total=False):
    """The options of networks that remember all states."""

    capacity: int | None


class FullAttention(Attentive):
    """Attention to all states so far.

    Parameters
    ----------
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
        capacity: int | None = None,
        **common: Any,
    ) -> None:
        self.capacity = None if capacity is None else positive_int("capacity", capacity)
        super().__init__(input_size, hidden_size, num_layers, **common)

    def slots(self, count: int) -> int:
        """Return one slot for every step."""
        return count

    def store(self, memory: Past, h: Tensor) -> Past:
        """Put h into the next slot."""
        here = torch.arange(memory.steps.shape[1], device=memory.steps.device) == memory.length[:, None]
        return memory._replace(states=put(here, h, memory.states), steps=put(here, memory.length, memory.steps))


_EQUATIONS = ("e_i = v . tanh(W s_{t-1} + U_a h_i), alpha = softmax(e) over i = 1 .. t, s_t = h_t + sum_i alpha_i h_i",)


@network(
    "memrnn",
    family="attention",
    equations=("h_t = phi(V s_{t-1} + U x_t + b)", *_EQUATIONS),
    state="n(T+1)",
    references=("bahdanau2015", "kerg2020"),
    notes=("T is the capacity, by default the length of the call: time and memory grow with its square.",),
)
class MemRNN(FullAttention):
    """The RNN with attention to all its past states."""

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        core: str = "rnn",
        nonlinearity: str | None = None,
        **common: Unpack[FullOptions],
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, core=core, nonlinearity=nonlinearity, **common)


@network(
    "memlstm",
    family="attention",
    equations=("h_t, c_t = LSTM(x_t, (s_{t-1}, c_{t-1}))", *_EQUATIONS),
    state="n(T+2)",
    references=("bahdanau2015", "kerg2020"),
    notes=("T is the capacity, by default the length of the call: time and memory grow with its square.",),
)
class MemLSTM(FullAttention):
    """The LSTM with attention to all its past states."""

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        **common: Unpack[FullOptions],
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, core="lstm", **common)
