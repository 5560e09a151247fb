"""Multi-query associative recall: remember which value belongs to which key."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, one_hot, place
from mnemoscope.tasks.checks import at_least, too_large
from mnemoscope.tasks.glyphs import BLANK, letters
from mnemoscope.tasks.registry import task

__all__ = ["MQAR"]

POWER = 0.01
"""The exponent a of the power law of gaps: the weight of gap j is a j^(a-1)."""


@task("mqar")
@dataclass(frozen=True)
class MQAR(Task):
    """Multi-query associative recall: say the value of each key when the key comes again.

    A sequence begins with `pairs` distinct keys, each followed by its value; keys and values are the two halves of the
    vocabulary. In the steps that are left every key comes once more, in random order, at distinct gaps after the last
    pair that are drawn without replacement by a power law (weight j^(0.01 - 1) for the gap j = 1, 2, ..); blanks
    elsewhere. One-hot: blank 0, keys, values. The target is the value, one of vocabulary/2 classes, at every query; the
    other steps are masked. The baseline is ln(vocabulary/2), the score the accuracy on the queries.

    Parameters
    ----------
    pairs
        Keys with a value, at most half of the vocabulary.
    length
        Steps of a sequence, at least three for each pair.
    vocabulary
        Keys and values together, even.

    Notes
    -----
    The layout is ours [o], after the recall test of the literature: values are independent, each key is asked for once,
    the blank is a token of its own.
    """

    pairs: int = 8
    length: int = 64
    vocabulary: int = 64

    difficulty: ClassVar[str] = "pairs"
    axes: ClassVar[tuple[str, ...]] = ("pairs", "length", "vocabulary")
    metric: ClassVar[str] = "accuracy on the queries"
    naive: ClassVar[str] = "ln(vocabulary / 2)"
    references: ClassVar[tuple[str, ...]] = ("arora2024",)

    def __post_init__(self) -> None:
        """Check the settings."""
        if at_least("vocabulary", self.vocabulary, 4) % 2:
            raise expected("vocabulary", "even: one half keys, one half values", self.vocabulary)
        positive_int("length", self.length)
        if positive_int("pairs", self.pairs) > self.vocabulary // 2:
            raise too_large(
                "pairs", self.pairs, self.vocabulary // 2, "half of the vocabulary, since keys are distinct"
            )
        if self.pairs > self.length // 3:
            raise too_large("pairs", self.pairs, self.length // 3, "a third of the length: key, value, query")

    @property
    def steps(self) -> int:
        """The length."""
        return self.length

    @property
    def input_size(self) -> int:
        """Blank, keys, values."""
        return self.vocabulary + 1

    @property
    def output_size(self) -> int:
        """The values."""
        return self.vocabulary // 2

    @property
    def baseline(self) -> float:
        """The logarithm of the number of values."""
        return math.log(self.vocabulary // 2)

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """Each pair needs a key of its own and three steps."""
        most = min(self.vocabulary // 2, self.length // 3)
        ends = {"pairs": (1, most), "length": (3 * self.pairs, None), "vocabulary": (max(4, 2 * self.pairs), None)}
        return ends[self._axis(axis)]

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences."""
        where, half, pairs = place(generator), self.vocabulary // 2, self.pairs
        keys = torch.rand(batch, half, generator=generator, device=where).topk(pairs, dim=1).indices.T
        values = torch.randint(half, (pairs, batch), generator=generator, device=where)
        tokens = torch.zeros(self.length, batch, dtype=torch.int64, device=where)
        tokens[0 : 2 * pairs : 2] = keys + 1
        tokens[1 : 2 * pairs : 2] = values + half + 1
        asked = 2 * pairs + self._gaps(batch, generator)
        tokens.scatter_(0, asked, keys + 1)
        targets = torch.zeros_like(tokens).scatter_(0, asked, values)
        mask = torch.zeros_like(tokens, dtype=torch.bool).scatter_(0, asked, True)
        lengths = torch.full((batch,), self.length, device=where)
        return Batch(one_hot(tokens, self.input_size), targets, mask, lengths)

    def _gaps(self, batch: int, generator: torch.Generator | None) -> Int64[Tensor, "pairs batch"]:
        """Return distinct gaps by the power law, in random order, counted from 0."""
        where = place(generator)
        room = self.length - 2 * self.pairs
        rarity = torch.arange(1, room + 1, device=where) ** (1 - POWER)
        # Draws without replacement: of exponential times with these means, the gaps whose time comes first.
        times = torch.rand(batch, room, generator=generator, device=where).log_().mul_(-rarity)
        gaps = times.topk(self.pairs, dim=1, largest=False, sorted=False).indices
        order = torch.rand(batch, self.pairs, generator=generator, device=where).argsort(1)
        return gaps.gather(1, order).T

    def glyphs(self) -> tuple[list[str], list[str]]:
        """A dot for the blank, letters for keys, numbers for values."""
        half = self.vocabulary // 2
        values = [str(number) for number in range(half)]
        return [BLANK, *letters(half), *values], values
