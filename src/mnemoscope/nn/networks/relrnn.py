"""relrnn and rellstm: attention to a buffer of the last states and a screened set of relevant ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mnemoscope.core.errors import Description, choice, expected
from mnemoscope.nn.attention import Attentive, AttentiveOptions, put
from mnemoscope.nn.registry import network

__all__ = ["RelLSTM", "RelRNN"]

Screening = Callable[[Tensor, Tensor, Tensor], Tensor]


class Screened(NamedTuple):
    """A buffer of the last states, then relevant ones: the state of one layer.

    Attributes
    ----------
    macro, carried, states, steps, length
        As in `mnemoscope.nn.attention.Past`; the first slots are the buffer, in which a new state takes the place of
        the oldest.
    relevance
        Sum of the weights that a state in the buffer has received; the score of one in the relevant set.
    """

    macro: Float[Tensor, "batch n"]
    carried: tuple[Tensor, ...]
    states: Float[Tensor, "batch slots n"]
    steps: Int[Tensor, "batch slots"]
    relevance: Float[Tensor, "batch slots"]
    length: Int[Tensor, " batch"]


class ScreenedOptions(AttentiveOptions, total=False):
    """The options of networks that screen what they remember."""

    buffer: int
    relevant: int
    screening: str | Screening


class ScreenedAttention(Attentive):
    """Attention to the last states and to those that were relevant while they were among the last.

    At each step h_t enters the buffer. When it is full, its oldest state leaves it for the relevant set: if there is
    room, or else in place of the one with the lowest score, if its own is strictly larger.

    Parameters
    ----------
    buffer
        States in the buffer, nu.
    relevant
        States in the relevant set at most, rho.
    screening
        Score of a state that leaves the buffer: ``"relevance"``, the sum of the weights that it received there;
        ``"recency"``, its step; ``"random"``, a number that depends on its step alone, as if drawn; or a function of
        the states (batch, n), their relevance (batch) and their steps (batch) that returns scores (batch).
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        buffer: int = 10,
        relevant: int = 10,
        screening: str | Screening = "relevance",
        **common: Any,
    ) -> None:
        for name, size in (("buffer", buffer), ("relevant", relevant)):
            if isinstance(size, bool) or not isinstance(size, int) or size < 0:
                raise expected(name, "an integer that is not negative", size)
        if buffer == relevant == 0:
            raise expected("buffer or relevant", "above 0", Description("0 for both"))
        self.buffer, self.relevant = buffer, relevant
        self.screens = screening == "relevance"
        self.full_after = buffer + relevant
        self.screening = screening
        if not callable(screening):
            choice("screening", screening, ("relevance", "recency", "random"))
        super().__init__(input_size, hidden_size, num_layers, **common)

    def slots(self, count: int) -> int:
        """Return all slots."""
        return self.buffer + self.relevant

    def _fuses(self, x: Tensor, state: Any) -> bool:
        return not callable(self.screening) and super()._fuses(x, state)

    def _empty(self, batch: int, slots: int, factory: dict[str, Any]) -> Screened:
        past = super()._empty(batch, slots, factory)._asdict()
        return Screened(relevance=self._zeros(batch, slots, **factory), **past)

    def store(self, memory: Screened, h: Tensor) -> Screened:
        """Put h into the buffer, and what leaves it into the relevant set if it is relevant enough."""
        slots = torch.arange(self.buffer + self.relevant, device=memory.steps.device)
        if self.buffer == 0:
            leaving = (h, memory.length, memory.relevance.new_zeros(memory.length.shape))
            return self._screen(memory, slots, leaving, memory.length >= 0)
        place = memory.length % self.buffer
        oldest = tuple(_at(part, place) for part in (memory.states, memory.steps, memory.relevance))
        if self.relevant:
            memory = self._screen(memory, slots, oldest, memory.length >= self.buffer)
        here = slots == place[:, None]
        return memory._replace(
            states=put(here, h, memory.states),
            steps=put(here, memory.length, memory.steps),
            relevance=torch.where(here, 0.0, memory.relevance),
        )

    def _screen(self, memory: Screened, slots: Tensor, leaving: Any, leaves: Tensor) -> Screened:
        states, steps, relevance = leaving
        score = self._score(states, relevance, steps)
        held = memory.relevance[:, self.buffer :]
        filled = (memory.length - self.buffer).clamp(0, self.relevant)
        least, place = held.min(-1)
        full = filled >= self.relevant
        place = self.buffer + torch.where(full, place, filled)
        here = (slots == place[:, None]) & (leaves & (~full | (score > least)))[:, None]
        return memory._replace(
            states=put(here, states, memory.states),
            steps=put(here, steps, memory.steps),
            relevance=put(here, score, memory.relevance),
        )

    @property
    def keeps(self) -> bool:
        """With a buffer: then all examples put a new state into the same slot."""
        return self.buffer > 0

    def keep(self, memory: Screened, row: int, count: int) -> None:
        """Put a row into the buffer in place, and what leaves it into the relevant set if it is relevant enough."""
        place = count % self.buffer
        if self.relevant and count >= self.buffer:
            self._keep_relevant(memory, place, count - self.buffer)
        memory.states[:, place] = row
        memory.steps[:, place] = count
        memory.relevance[:, place] = 0.0

    def _keep_relevant(self, memory: Screened, place: int, filled: int) -> None:
        parts = memory.states.squeeze(-1), memory.steps, memory.relevance
        states, steps, relevance = (part[:, place : place + 1] for part in parts)
        leaving = states, steps, self._score(states, relevance, steps)
        if filled < self.relevant:
            for part, new in zip(parts, leaving, strict=True):
                part[:, self.buffer + filled] = new.squeeze(1)
            return
        least, index = memory.relevance[:, self.buffer :].min(-1, keepdim=True)
        better, index = leaving[2] > least, index + self.buffer
        for part, new in zip(parts, leaving, strict=True):
            part.scatter_(1, index, torch.where(better, new, part.gather(1, index)))

    def _score(self, states: Tensor, relevance: Tensor, steps: Tensor) -> Tensor:
        if callable(self.screening):
            scores = self.screening(states, relevance, steps)
            if not isinstance(scores, Tensor) or scores.shape != relevance.shape:
                came = tuple(scores.shape) if isinstance(scores, Tensor) else Description(type(scores).__name__)
                raise expected("screening", f"a function that returns scores of shape {tuple(relevance.shape)}", came)
            return scores.to(relevance.dtype)
        if self.screening == "relevance":
            return relevance
        if self.screening == "recency":
            return steps.to(relevance.dtype)
        mixed = (steps + 1) * 2654435761 % 2**32  # Knuth's multiplicative hash, then once more to break its lattice
        return ((mixed ^ (mixed >> 15)) * 2246822519 % 2**32 / 2**32).to(relevance.dtype)

    def attended(self, memory: Screened, weights: Float[Tensor, "batch heads slots"]) -> Screened:
        """Add the weights of the states in the buffer to their relevance."""
        received = weights.squeeze(1) if self.heads == 1 else weights.mean(1)
        buffered = torch.arange(received.shape[1], device=received.device) < self.buffer
        return memory._replace(relevance=memory.relevance + torch.where(buffered, received, 0.0))


def _at(part: Tensor, place: Tensor) -> Tensor:
    """Return the content (batch, ..) of one slot of every example."""
    index = place.reshape(-1, *[1] * (part.dim() - 1)).expand(-1, 1, *part.shape[2:])
    return part.gather(1, index).squeeze(1)


_EQUATIONS = (
    "S_t: the last nu states; R_t: at most rho of those that left it, with the largest beta(i) = sum of alpha_i,j in S",
    "e_i = v . tanh(W s_{t-1} + U_a h_i), alpha = softmax(e) over S_t and R_t, s_t = h_t + sum_i alpha_i h_i",
)
_NOTES = (
    "m = nu + rho slots hold states.",
    "The relevance scores decide which states stay, and have no gradient through that choice.",
)


@network(
    "relrnn",
    family="attention",
    equations=("h_t = phi(V s_{t-1} + U x_t + b)", *_EQUATIONS),
    state="n + m(n+1)",
    references=("kerg2020",),
    notes=_NOTES,
)
class RelRNN(ScreenedAttention):
    """The RNN with relevancy screening: attention at a cost that does not grow with time."""

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        core: str = "rnn",
        nonlinearity: str | None = None,
        **common: Unpack[ScreenedOptions],
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, core=core, nonlinearity=nonlinearity, **common)


@network(
    "rellstm",
    family="attention",
    equations=("h_t, c_t = LSTM(x_t, (s_{t-1}, c_{t-1}))", *_EQUATIONS),
    state="2n + m(n+1)",
    references=("kerg2020",),
    notes=_NOTES,
)
class RelLSTM(ScreenedAttention):
    """The LSTM with relevancy screening: its gates read the macro-state, its cell is recurrent."""

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        **common: Unpack[ScreenedOptions],
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, core="lstm", **common)
