"""Selective recall: symbols scattered among blanks must be remembered, the blanks between them not."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from mnemoscope.core.errors import positive_int
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, all_steps, final_steps, one_hot, place
from mnemoscope.tasks.checks import at_least, too_large
from mnemoscope.tasks.glyphs import BLANK, CUE, letters
from mnemoscope.tasks.registry import task

__all__ = ["Denoise", "SelectiveCopy", "subset"]


class Scattered(Task):
    """Letters at sorted distinct random places among the first steps, a cue, then recall in order.

    Tokens: blank 0, letters 1..n, cue n + 1.
    """

    metric: ClassVar[str] = "accuracy on the recalled symbols"

    @abstractmethod
    def sizes(self) -> tuple[int, int, int]:
        """Return the steps before the cue, the number of symbols, and the alphabet."""

    @property
    def steps(self) -> int:
        """Steps before the cue, the cue, one step for each symbol."""
        before, symbols, _ = self.sizes()
        return before + 1 + symbols

    @property
    def input_size(self) -> int:
        """Blank, letters, cue."""
        return self.sizes()[2] + 2

    @property
    def output_size(self) -> int:
        """Blank and letters."""
        return self.sizes()[2] + 1

    @property
    def baseline(self) -> float:
        """The loss of saying blank, and guessing the letters at the end, over all steps."""
        _, symbols, alphabet = self.sizes()
        return symbols * math.log(alphabet) / self.steps

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences."""
        where = place(generator)
        before, symbols, alphabet = self.sizes()
        data = torch.randint(1, alphabet + 1, (symbols, batch), generator=generator, device=where)
        tokens = torch.zeros(self.steps, batch, dtype=torch.int64, device=where)
        targets = tokens.clone()
        tokens.scatter_(0, subset(before, symbols, batch, generator), data)
        tokens[before] = alphabet + 1
        targets[-symbols:] = data
        return all_steps(one_hot(tokens, self.input_size), targets)

    def scored(self, batch: Batch) -> Bool[Tensor, "time batch"]:
        """Return the last steps, one for each symbol."""
        return final_steps(batch, self.sizes()[1])

    def glyphs(self) -> tuple[list[str], list[str]]:
        """A dot for the blank, letters, a mark for the cue."""
        marks = [BLANK, *letters(self.sizes()[2]), CUE]
        return marks, marks[:-1]


def subset(places: int, chosen: int, batch: int, generator: torch.Generator | None) -> Int64[Tensor, "chosen batch"]:
    """Return for every sequence a uniform subset of the places 0, 1, .., sorted."""
    # The places of the largest of independent random numbers are a uniform subset.
    scores = torch.rand(batch, places, generator=generator, device=place(generator))
    return scores.topk(chosen, dim=1, sorted=False).indices.sort(dim=1).values.T


@task("denoise")
@dataclass(frozen=True)
class Denoise(Scattered):
    """Copy 10 symbols of 8 letters that are scattered among blanks.

    A sequence has T + 20 steps: 10 symbols from {1..8} at sorted distinct random places among the first T + 9, blanks
    (0) elsewhere; the cue 9; 10 blanks. Answer, loss, baseline and score as in `copy`.

    Parameters
    ----------
    delay
        T, at least 1.
    """

    delay: int = 200

    difficulty: ClassVar[str] = "delay"
    naive: ClassVar[str] = "10 ln 8 / (delay + 20)"
    references: ClassVar[tuple[str, ...]] = ("jing2019", "kerg2020")

    def __post_init__(self) -> None:
        """Check the settings."""
        positive_int("delay", self.delay)

    def sizes(self) -> tuple[int, int, int]:
        """Return T + 9, 10, 8."""
        return self.delay + 9, 10, 8


@task("selective-copy")
@dataclass(frozen=True)
class SelectiveCopy(Scattered):
    """Copy symbols that are scattered among noise: `denoise` in all sizes.

    A sequence has `length` steps, of which `symbols` at random places are letters and the others noise (token 0); the
    cue; one blank for each symbol, at which the letters are said in order. All steps count in the loss; the baseline is
    symbols ln(alphabet) / (length + symbols + 1); the score is the accuracy on the last `symbols` steps.

    Parameters
    ----------
    symbols
        How many letters are to be remembered.
    length
        Steps before the cue, letters and noise together.
    alphabet
        How many letters there are.

    Notes
    -----
    The default sizes are ours [o]: 16 symbols of 16 letters in 256 steps.
    """

    symbols: int = 16
    length: int = 256
    alphabet: int = 16

    difficulty: ClassVar[str] = "symbols"
    axes: ClassVar[tuple[str, ...]] = ("symbols", "length", "alphabet")
    naive: ClassVar[str] = "symbols ln(alphabet) / (length + symbols + 1)"
    references: ClassVar[tuple[str, ...]] = ("jing2019", "gu2024")

    def __post_init__(self) -> None:
        """Check the settings."""
        positive_int("length", self.length)
        at_least("alphabet", self.alphabet, 2)
        if positive_int("symbols", self.symbols) > self.length:
            raise too_large("symbols", self.symbols, self.length, "the length")

    def sizes(self) -> tuple[int, int, int]:
        """Return the settings."""
        return self.length, self.symbols, self.alphabet

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """The letters must fit into the length."""
        return {"symbols": (1, self.length), "length": (self.symbols, None), "alphabet": (2, None)}[self._axis(axis)]
