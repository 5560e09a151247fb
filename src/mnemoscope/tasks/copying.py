"""Copying: remember the first symbols through a delay, then say them in order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import positive_int
from mnemoscope.tasks.base import Batch, Task, task

__all__ = ["Copy"]


@task("copy")
@dataclass(frozen=True)
class Copy(Task):
    """Copy 10 symbols of 8 letters after a delay of T steps.

    A sequence has T + 20 steps: 10 symbols from {1..8}, T - 1 blanks (0), the cue 9, 10 blanks; one-hot, 10 inputs. The
    answer is T + 10 blanks, then the symbols: 9 classes. The loss is the mean cross entropy over all steps, and
    10 ln 8 / (T + 20) for whoever says blank until the end and then guesses; the score is the accuracy on the last 10.

    Parameters
    ----------
    delay
        T, at least 1.
    """

    delay: int = 200

    symbols: ClassVar[int] = 10
    alphabet: ClassVar[int] = 8
    difficulty: ClassVar[str] = "delay"
    references: ClassVar[tuple[str, ...]] = ("hochreiter1997", "arjovsky2016", "kerg2019")

    def __post_init__(self) -> None:
        """Check the settings."""
        positive_int("delay", self.delay)

    @property
    def length(self) -> int:
        """Steps of a sequence: T + 20."""
        return self.delay + 2 * self.symbols

    @property
    def input_size(self) -> int:
        """Blank, letters, cue: 10."""
        return self.alphabet + 2

    @property
    def output_size(self) -> int:
        """Blank and letters: 9."""
        return self.alphabet + 1

    @property
    def baseline(self) -> float:
        """10 ln 8 / (T + 20)."""
        return self.symbols * math.log(self.alphabet) / self.length

    def sample(
        self, batch: int, generator: torch.Generator | None = None, *, device: torch.device | str | None = None
    ) -> Batch:
        """Draw fresh sequences."""
        self._check_batch(batch, generator)
        if device is None and generator is not None:
            device = generator.device
        letters = torch.randint(1, self.alphabet + 1, (self.symbols, batch), generator=generator, device=device)
        tokens = torch.zeros(self.length, batch, dtype=torch.int64, device=device)
        tokens[: self.symbols] = letters
        tokens[self.delay + self.symbols - 1] = self.alphabet + 1
        targets = torch.zeros_like(tokens)
        targets[-self.symbols :] = letters
        inputs = torch.zeros(self.length, batch, self.input_size, device=device)
        inputs.scatter_(2, tokens.unsqueeze(2), 1.0)
        mask = torch.ones_like(tokens, dtype=torch.bool)
        return Batch(inputs, targets, mask, torch.full((batch,), self.length, device=device))

    def score(self, output: Float[Tensor, "time batch output"], batch: Batch) -> float:
        """Return the accuracy on the last 10 steps."""
        self._check_output(output, batch)
        answers = output[-self.symbols :].argmax(-1)
        return float((answers == batch.targets[-self.symbols :]).double().mean())
