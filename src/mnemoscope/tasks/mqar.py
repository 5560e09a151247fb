"""Multi-query associative recall: which value belongs to which key, was given to it last, or lies two links on."""

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

__all__ = ["MQAR", "CompositionalMQAR", "ForgettingMQAR"]

POWER = 0.01
"""The exponent a of the power law of gaps: the weight of gap j is a j^(a-1)."""


_Tokens = Int64[Tensor, "steps batch"]


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
        share, keys = self.keys_each
        if positive_int("pairs", self.pairs) > self.vocabulary // share:
            raise too_large("pairs", self.pairs, self.vocabulary // share, keys)
        if self.written(self.pairs) + self.pairs > self.length:
            most = max(p for p in range(self.length) if self.written(p) + p <= self.length)
            raise too_large("pairs", self.pairs, most, self.room)

    keys_each: ClassVar[tuple[int, str]] = (2, "half of the vocabulary, since keys are distinct")
    """Of the vocabulary, the share that a pair can have, and why."""

    room: ClassVar[str] = "a third of the length: key, value, query"
    """Why a length has room for no more pairs."""

    def written(self, pairs: int) -> int:
        """Return the steps before the first query."""
        return 2 * pairs

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
        share, own = self.keys_each[0], self.pairs
        fits = max(p for p in range(self.length) if self.written(p) + p <= self.length)
        ends = {
            "pairs": (1, min(self.vocabulary // share, fits)),
            "length": (self.written(own) + own, None),
            "vocabulary": (max(4, share * own), None),
        }
        return ends[self._axis(axis)]

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences."""
        where = place(generator)
        shown, keys, values = self._pairs(batch, generator)
        tokens = torch.zeros(self.length, batch, dtype=torch.int64, device=where)
        tokens[: len(shown)] = shown
        asked = len(shown) + self._gaps(batch, generator)
        tokens.scatter_(0, asked, keys + 1)
        targets = torch.zeros_like(tokens).scatter_(0, asked, values)
        mask = torch.zeros_like(tokens, dtype=torch.bool).scatter_(0, asked, True)
        lengths = torch.full((batch,), self.length, device=where)
        return Batch(one_hot(tokens, self.input_size), targets, mask, lengths)

    def _pairs(self, batch: int, generator: torch.Generator | None) -> tuple[_Tokens, _Tokens, _Tokens]:
        """Return the tokens that come first, the keys that are asked for, and their values."""
        keys = self._keys(self.pairs, batch, generator)
        values = torch.randint(self.vocabulary // 2, (self.pairs, batch), generator=generator, device=place(generator))
        return self._shown(keys + 1, values + self.vocabulary // 2 + 1), keys, values

    def _keys(self, count: int, batch: int, generator: torch.Generator | None) -> _Tokens:
        """Return distinct keys for every sequence."""
        chances = torch.rand(batch, self.vocabulary // 2, generator=generator, device=place(generator))
        return chances.topk(count, dim=1).indices.T

    @staticmethod
    def _shown(first: _Tokens, second: _Tokens) -> _Tokens:
        """Return pairs of tokens, one after the other."""
        return torch.stack([first, second], dim=1).flatten(0, 1)

    def _gaps(self, batch: int, generator: torch.Generator | None) -> Int64[Tensor, "pairs batch"]:
        """Return distinct gaps by the power law, in random order, counted from 0."""
        where = place(generator)
        room = self.length - self.written(self.pairs)
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


@task("mqar-forgetting")
@dataclass(frozen=True)
class ForgettingMQAR(MQAR):
    """Associative recall in which half of the keys are given another value: the last one counts.

    As `mqar`; after the pairs every second of their keys comes again with a value drawn anew, and the queries ask for
    the value that a key was given last. What was true has to be forgotten.

    Parameters
    ----------
    pairs
        Keys with a value, at most half of the vocabulary.
    length
        Steps of a sequence: room for the pairs, for half of them again, and for a query each.
    vocabulary
        Keys and values together, even.

    Notes
    -----
    The layout is ours [o].
    """

    room: ClassVar[str] = "what fits into the length: key, value, half of them once more, query"

    def written(self, pairs: int) -> int:
        """Return the steps before the first query."""
        return 2 * pairs + 2 * (pairs // 2)

    def _pairs(self, batch: int, generator: torch.Generator | None) -> tuple[_Tokens, _Tokens, _Tokens]:
        shown, keys, values = super()._pairs(batch, generator)
        again = self.pairs // 2  # keys are in random order: the first are as good as any
        new = torch.randint(self.vocabulary // 2, (again, batch), generator=generator, device=values.device)
        second = self._shown(keys[:again] + 1, new + self.vocabulary // 2 + 1)
        return torch.cat([shown, second]), keys, torch.cat([new, values[again:]])


@task("mqar-compositional")
@dataclass(frozen=True)
class CompositionalMQAR(MQAR):
    """Associative recall over two links: a key leads to another key, and that one to the value.

    First come pairs of two keys, then in another order the second key of each with its value; the queries ask for the
    value to which the first key leads. All keys of a sequence are distinct.

    Parameters
    ----------
    pairs
        Keys that lead to a value, at most a quarter of the vocabulary.
    length
        Steps of a sequence, at least five for each pair.
    vocabulary
        Keys and values together, even.

    Notes
    -----
    The layout is ours [o].
    """

    keys_each: ClassVar[tuple[int, str]] = (4, "a quarter of the vocabulary: two keys each, all distinct")
    room: ClassVar[str] = "a fifth of the length: two keys, key and value, query"

    def written(self, pairs: int) -> int:
        """Return the steps before the first query."""
        return 4 * pairs

    def _pairs(self, batch: int, generator: torch.Generator | None) -> tuple[_Tokens, _Tokens, _Tokens]:
        half, where = self.vocabulary // 2, place(generator)
        first, middle = self._keys(2 * self.pairs, batch, generator).chunk(2)
        values = torch.randint(half, (self.pairs, batch), generator=generator, device=where)
        order = torch.rand(batch, self.pairs, generator=generator, device=where).argsort(1).T
        links = self._shown(first + 1, middle + 1)
        ends = self._shown(middle.gather(0, order) + 1, values.gather(0, order) + half + 1)
        return torch.cat([links, ends]), first, values
