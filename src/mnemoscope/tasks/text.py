"""Text, character by character: say the next one."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import UserError, choice, expected, positive_int
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, Splits, all_steps, place
from mnemoscope.tasks.checks import true_or_false
from mnemoscope.tasks.registry import task
from mnemoscope.tasks.text_files import Corpus, corpus

__all__ = ["PennTreebank", "Shakespeare"]


class Text(Task):
    """Say the next character at every step.

    Inputs are the numbers of the characters, to embed. The loss is the mean cross entropy over all steps; `reported`
    gives it as bits per character, loss / ln 2. The baseline is the entropy of a character of the training text, the
    loss of whoever knows only how frequent each is. The score is 1 - loss / baseline.

    `splits` cuts each part of the text into pieces of `length`; `windows` gives it as contiguous streams.
    """

    metric: ClassVar[str] = "1 - BPC / baseline"
    baseline_is: ClassVar[str] = "by frequencies alone"
    naive: ClassVar[str] = "entropy of a character"
    difficulty: ClassVar[str] = "length"
    streams: ClassVar[bool] = True
    embedding_size: ClassVar[int]

    length: int
    data: str | None
    verify: bool

    def __post_init__(self) -> None:
        """Check the settings."""
        positive_int("length", self.length)
        if self.data is not None and not isinstance(self.data, str | os.PathLike):
            raise expected("data", "the path of a folder", self.data)
        true_or_false("verify", self.verify)

    @property
    def text(self) -> Corpus:
        """The text as numbers."""
        return corpus(str(self.dataset), self.data, self.verify)

    @property
    def steps(self) -> int:
        """Characters of a piece."""
        return self.length

    @property
    def input_size(self) -> int:
        """The size of the vocabulary."""
        return len(self.text.vocabulary)

    @property
    def output_size(self) -> int:
        """The size of the vocabulary."""
        return len(self.text.vocabulary)

    @property
    def embedding(self) -> int:
        """The size of the vocabulary."""
        return len(self.text.vocabulary)

    @property
    def baseline(self) -> float:
        """The entropy of a character of the training text, in nats."""
        return self.text.entropy

    @property
    def memoryless(self) -> float:
        """The entropy of a character of the training text whose predecessor is known, in nats."""
        return self.text.conditional

    def reported(self, loss: float) -> dict[str, float]:
        """Return bits per character."""
        return {"bpc": loss / math.log(2)}

    def score(self, output: Float[Tensor, "*time batch output"], batch: Batch) -> float:
        """Return 1 - loss / baseline."""
        return 1 - float(self.loss(output, batch)) / self.baseline

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw pieces of the training text at random places."""
        where, train = place(generator), self._part("train")
        starts = torch.randint(len(train) - self.length, (batch,), generator=generator, device=where)
        places = starts.cpu() + torch.arange(self.length + 1).unsqueeze(1)
        return _next_character(train[places].long().to(where))

    def splits(self, seed: int = 0) -> Splits:
        """Return the pieces of the training, validation and test text, in order; no seed changes them."""
        return Splits(*(_next_character(_pieces(self._part(name), self.length)) for name in Splits._fields))

    def windows(self, split: str, batch: int, length: int | None = None) -> Iterator[Batch]:
        """Give a part of the text as `batch` streams of equal length side by side, window after window.

        Stream b reads on in each window where it stopped in the one before. The last window may be shorter; up to
        `batch` characters at the end of the text are left out.

        Parameters
        ----------
        split
            ``"train"``, ``"validation"`` or ``"test"``.
        batch
            Streams.
        length
            Steps of a window, by default the task's.
        """
        text = self._part(choice("split", split, Splits._fields))
        window = self.length if length is None else positive_int("length", length)
        steps = (len(text) - 1) // positive_int("batch", batch)
        if steps < 1:
            raise expected("batch", f"at most {len(text) - 1}, a character for each stream", batch)
        places = torch.arange(batch) * steps
        for start in range(0, steps, window):
            count = min(window, steps - start)
            yield _next_character(text[places + start + torch.arange(count + 1).unsqueeze(1)].long())

    def _part(self, name: str) -> Tensor:
        text: Tensor = getattr(self.text, name)
        if len(text) <= self.length:
            raise UserError(f"length must be below {len(text)}, the characters of the {name} text, got {self.length}")
        return text

    def glyphs(self) -> tuple[list[str], list[str]]:
        """The characters."""
        marks = [{" ": "␣", "\n": "↵", "\t": "⇥"}.get(letter, letter) for letter in self.text.vocabulary]
        return marks, marks


def _pieces(text: Tensor, length: int) -> Tensor:
    """Return consecutive pieces (length + 1, count); the last character of one is the first of the next."""
    count = (len(text) - 1) // length
    return text[torch.arange(count) * length + torch.arange(length + 1).unsqueeze(1)].long()


def _next_character(tokens: Tensor) -> Batch:
    return all_steps(tokens[:-1], tokens[1:])


@task("shakespeare")
@dataclass(frozen=True)
class Shakespeare(Text):
    """Tiny Shakespeare: say the next character. Pieces of 64, 0.8 / 0.1 / 0.1 of the text.

    The parts are contiguous, the first 0.8 to train [o]: the release cuts at random, and neighbours of a test piece are
    then trained on. Embedding of 107 numbers; results in bits per character.

    Parameters
    ----------
    length
        Characters of a piece.
    data
        The data folder; by default that of MNEMOSCOPE_DATA.
    verify
        Whether the file must be the published one; false for a text of yours.
    """

    length: int = 64
    data: str | None = field(default=None, compare=False)
    verify: bool = True

    embedding_size: ClassVar[int] = 107
    dataset: ClassVar[str | None] = "tinyshakespeare"
    references: ClassVar[tuple[str, ...]] = ("karpathy2015", "lizaire2026")


@task("ptb")
@dataclass(frozen=True)
class PennTreebank(Text):
    """Penn Treebank: say the next character. Windows of 150, in contiguous streams.

    ptb.train.txt, ptb.valid.txt and ptb.test.txt as Mikolov prepared them (or ptb.char.*.txt, the same with a space
    between characters): one sentence a line, spaces at its ends removed [o], the end of the line a character.
    Embedding of 200 numbers; results in bits per character. The files are checked by their size, not by SHA-256.

    Parameters
    ----------
    length
        Characters of a window.
    data
        The data folder; by default that of MNEMOSCOPE_DATA.
    verify
        Whether the files must be the published ones, as far as that is known.
    """

    length: int = 150
    data: str | None = field(default=None, compare=False)
    verify: bool = True

    embedding_size: ClassVar[int] = 200
    dataset: ClassVar[str | None] = "ptb"
    references: ClassVar[tuple[str, ...]] = ("marcus1993", "mikolov2012", "kerg2019")
