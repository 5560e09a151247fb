"""repeat-previous: say at every step what was shown a few steps before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from mnemoscope.tasks.checks import at_least
from mnemoscope.tasks.control.base import TensorEnvironment
from mnemoscope.tasks.control.registry import environment

__all__ = ["RepeatPrevious"]


@environment("repeat-previous")
@dataclass(frozen=True)
class RepeatPrevious(TensorEnvironment):
    """Say at every step which symbol was shown `lag` steps before.

    Every step shows one of `symbols` at random; the action names one. From step `lag` on, counted from 0, a right
    answer is paid with 1 / (length - lag), so that a return is the share of right answers.

    The best policy remembers the last symbols: return 1. Without memory one guesses: 1 / symbols.

    Parameters
    ----------
    lag
        How far back, at least 1.
    symbols
        How many there are, at least 2.
    length
        Steps of an episode; None: lag + 32 [o].
    """

    lag: int = 4
    symbols: int = 4
    length: int | None = None

    references = ("morad2023",)
    metric = "share of right answers"
    difficulty = "lag"
    axes = ("lag", "symbols")

    def __post_init__(self) -> None:
        """Check the settings."""
        at_least("lag", self.lag, 1)
        at_least("symbols", self.symbols, 2)
        if self.length is not None:
            at_least("length", self.length, self.lag + 1)

    @property
    def input_size(self) -> int:
        """Numbers of an observation."""
        return self.symbols

    @property
    def actions(self) -> int:
        """How many actions there are."""
        return self.symbols

    @property
    def optimum(self) -> float:
        """The return of a policy that remembers."""
        return 1.0

    @property
    def memoryless(self) -> float:
        """The return of guessing."""
        return 1 / self.symbols

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """A lag must be below the length, where one was given."""
        least = 1 if self._axis(axis) == "lag" else 2
        return least, self.length - 1 if self._axis(axis) == "lag" and self.length is not None else None

    @property
    def steps(self) -> int:
        """The length of an episode."""
        return self.lag + 32 if self.length is None else self.length

    @property
    def frames(self) -> int:
        """A multiple of 128 that holds an episode."""
        return 128 * -(-self.steps // 128)

    def draw(self, steps: int, count: int, generator: torch.Generator) -> Tensor:
        """Draw symbols."""
        return torch.randint(self.symbols, (steps, count), generator=generator)

    def begin(self, chance: Tensor) -> dict[str, Tensor]:
        """Return copies that show their first symbol; before it there was nothing, -1."""
        past = torch.full((len(chance), self.lag), -1, device=chance.device)
        return {"shown": torch.cat([past, chance[:, None]], dim=1), "time": torch.zeros_like(chance)}

    def observe(self, state: Mapping[str, Tensor]) -> Tensor:
        """Return the present symbol, one-hot."""
        return F.one_hot(state["shown"][:, -1], self.symbols).float()

    def turn(
        self, state: Mapping[str, Tensor], action: Tensor, chance: Tensor
    ) -> tuple[dict[str, Tensor], Tensor, Tensor]:
        """Pay a right answer, and show the next symbol."""
        shown, time = state["shown"], state["time"] + 1
        reward = (action == shown[:, 0]).float() / (self.steps - self.lag)
        after = torch.cat([shown[:, 1:], chance[:, None]], dim=1)
        return {"shown": after, "time": time}, reward, time >= self.steps
