"""Start-end similarity: how alike the two halves of a sequence are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, at_the_end, one_hot, place
from mnemoscope.tasks.checks import at_least, too_large
from mnemoscope.tasks.glyphs import BLANK, letters
from mnemoscope.tasks.registry import task

__all__ = ["StartEndSimilarity"]


@task("start-end-similarity")
@dataclass(frozen=True)
class StartEndSimilarity(Task):
    """Say at the end whether two pieces of text have none, half or all of their letters in common.

    The class is uniform over 0, m/2 and m matching letters. The first piece has m uniform letters; the matching places
    are a uniform subset; each other letter of the second piece is uniform over the n - 1 that do not match. Both pieces
    start at the same offset t of their half of the sequence, uniform on 1..T/2 - m (1 when m = T/2); blanks (n)
    elsewhere; one-hot, n + 1 inputs. Three logits at the last step; the baseline is ln 3, the score the accuracy.

    Parameters
    ----------
    length
        T, at least 2m.
    symbols
        m, even.
    alphabet
        n, at least 2.

    Notes
    -----
    Where T is odd, T/2 is rounded down [o], so that a search for the longest T need not know. The default length is
    ours [o].
    """

    length: int = 120
    symbols: int = 30
    alphabet: int = 32

    difficulty: ClassVar[str] = "length"
    axes: ClassVar[tuple[str, ...]] = ("length", "symbols", "alphabet")
    naive: ClassVar[str] = "ln 3"
    references: ClassVar[tuple[str, ...]] = ("ziv2020",)

    def __post_init__(self) -> None:
        """Check the settings."""
        positive_int("length", self.length)
        at_least("alphabet", self.alphabet, 2)
        if positive_int("symbols", self.symbols) % 2:
            raise expected("symbols", "even, since half of them match in one class", self.symbols)
        if self.symbols > self.length // 2:
            raise too_large("symbols", self.symbols, self.length // 2, "half of the length")

    @property
    def steps(self) -> int:
        """T."""
        return self.length

    @property
    def input_size(self) -> int:
        """Letters and blank: n + 1."""
        return self.alphabet + 1

    @property
    def output_size(self) -> int:
        """None, half or all alike."""
        return 3

    @property
    def baseline(self) -> float:
        """The logarithm of 3."""
        return math.log(3)

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """Each piece must fit into its half."""
        ends = {"length": (2 * self.symbols, None), "symbols": (2, self.length // 2 // 2 * 2), "alphabet": (2, None)}
        return ends[self._axis(axis)]

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences."""
        where, half, m = place(generator), self.length // 2, self.symbols
        classes = torch.randint(3, (batch,), generator=generator, device=where)
        first = torch.randint(self.alphabet, (m, batch), generator=generator, device=where)
        order = torch.rand(m, batch, generator=generator, device=where).argsort(0)
        shift = torch.randint(1, self.alphabet, (m, batch), generator=generator, device=where)
        # The places of a random order that hold a number below k are a uniform subset of k places.
        shift.masked_fill_(order < classes * (m // 2), 0)
        start = torch.randint(max(half - m, 1), (1, batch), generator=generator, device=where)
        places = start + torch.arange(m, device=where).unsqueeze(1)
        tokens = torch.full((self.length, batch), self.alphabet, device=where)
        tokens.scatter_(0, places, first)
        tokens.scatter_(0, places + half, (first + shift) % self.alphabet)
        return at_the_end(one_hot(tokens, self.input_size), classes)

    def glyphs(self) -> tuple[list[str], list[str]]:
        """Letters and a dot for the blank; how much is alike."""
        return [*letters(self.alphabet), BLANK], ["0", "½", "1"]
