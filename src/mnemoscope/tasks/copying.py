"""Copying: symbols at the start or scattered among blanks, remembered through a delay and said in order."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.tasks.base import Evaluation, Task
from mnemoscope.tasks.batch import Batch, all_steps, final_steps, one_hot, place
from mnemoscope.tasks.checks import at_least, too_large
from mnemoscope.tasks.glyphs import BLANK, CUE, letters
from mnemoscope.tasks.registry import task

__all__ = ["Copy", "Copying", "Denoise", "SelectiveCopy", "TransferCopy", "subset"]


@task("copying")
@dataclass(frozen=True)
class Copying(Task):
    """Copy m symbols of n letters after a delay of B steps.

    A sequence has B + 2m steps: m letters (0..n-1), B blanks (n), the trigger (n+1) at the step of the first answer,
    m - 1 blanks; one-hot, n + 2 inputs. The answer is m + B blanks, then the letters: n + 2 classes. The loss is the
    mean cross entropy over all steps, and m ln n / (B + 2m) for whoever says blank and then guesses; the score is the
    accuracy on the last m.

    Parameters
    ----------
    delay
        B, at least 0.
    symbols
        m, at least 1.
    alphabet
        n, at least 2.

    Notes
    -----
    Ziv's figures have 30 symbols of 32 letters; the smaller defaults are ours [o].
    """

    delay: int = 200
    symbols: int = 10
    alphabet: int = 8

    difficulty: ClassVar[str] = "delay"
    axes: ClassVar[tuple[str, ...]] = ("delay", "symbols", "alphabet")
    metric: ClassVar[str] = "accuracy on the recalled symbols"
    naive: ClassVar[str] = "symbols ln(alphabet) / (delay + 2 symbols)"
    references: ClassVar[tuple[str, ...]] = ("hochreiter1997", "arjovsky2016", "ziv2020")

    def __post_init__(self) -> None:
        """Check the settings."""
        at_least("delay", self.delay, 0)
        positive_int("symbols", self.symbols)
        at_least("alphabet", self.alphabet, 2)

    @property
    def steps(self) -> int:
        """B + 2m."""
        return self.delay + 2 * self.symbols

    @property
    def input_size(self) -> int:
        """Letters, blank, trigger: n + 2."""
        return self.alphabet + 2

    @property
    def output_size(self) -> int:
        """As the inputs: n + 2. The trigger is never an answer."""
        return self.alphabet + 2

    @property
    def baseline(self) -> float:
        """The loss of guessing the letters: m ln n / (B + 2m)."""
        return self.symbols * math.log(self.alphabet) / self.steps

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """No delay at all is the easiest."""
        return {"delay": 0, "symbols": 1, "alphabet": 2}[self._axis(axis)], None

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences."""
        where = place(generator)
        data = torch.randint(self.alphabet, (self.symbols, batch), generator=generator, device=where)
        tokens = torch.full((self.steps, batch), self.alphabet, device=where)
        targets = tokens.clone()
        tokens[: self.symbols] = data
        tokens[self.symbols + self.delay] = self.alphabet + 1
        targets[-self.symbols :] = data
        return all_steps(one_hot(tokens, self.input_size), targets)

    def scored(self, batch: Batch) -> Bool[Tensor, "time batch"]:
        """Return the last m steps."""
        return final_steps(batch, self.symbols)

    def glyphs(self) -> tuple[list[str], list[str]]:
        """Letters, a dot for the blank, a mark for the trigger."""
        marks = [*letters(self.alphabet), BLANK, CUE]
        return marks, marks


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
    metric: ClassVar[str] = "accuracy on the recalled symbols"
    naive: ClassVar[str] = "10 ln 8 / (delay + 20)"
    references: ClassVar[tuple[str, ...]] = ("hochreiter1997", "arjovsky2016", "kerg2019")

    def __post_init__(self) -> None:
        """Check the settings."""
        positive_int("delay", self.delay)

    @property
    def steps(self) -> int:
        """T + 20."""
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
        return self.symbols * math.log(self.alphabet) / self.steps

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences."""
        where = place(generator)
        data = torch.randint(1, self.alphabet + 1, (self.symbols, batch), generator=generator, device=where)
        tokens = torch.zeros(self.steps, batch, dtype=torch.int64, device=where)
        targets = tokens.clone()
        tokens[: self.symbols] = data
        tokens[self.delay + self.symbols - 1] = self.alphabet + 1
        targets[-self.symbols :] = data
        return all_steps(one_hot(tokens, self.input_size), targets)

    def scored(self, batch: Batch) -> Bool[Tensor, "time batch"]:
        """Return the last 10 steps."""
        return final_steps(batch, self.symbols)

    def glyphs(self) -> tuple[list[str], list[str]]:
        """A dot for the blank, letters, a mark for the cue."""
        marks = [BLANK, *letters(self.alphabet), CUE]
        return marks, marks[:-1]


@task("transfer-copy")
@dataclass(frozen=True)
class TransferCopy(Copy):
    """Learn to copy at one delay, and be tested at others: `copy`, with T = 100 in training.

    `evaluations` gives the tests: the mean over 100 batches of 100 sequences at each delay.

    Parameters
    ----------
    delay
        T in training.
    tests
        The delays of the tests.
    """

    delay: int = 100
    tests: tuple[int, ...] = (100, 200, 400, 2000, 5000)

    references: ClassVar[tuple[str, ...]] = ("kerg2020",)

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        given = [self.tests] if isinstance(self.tests, int) else self.tests
        if not isinstance(given, list | tuple) or not given:
            raise expected("tests", "one delay or more", self.tests)
        # A list comes from JSON or TOML, one number from a command line; a tuple can be hashed.
        object.__setattr__(self, "tests", tuple(positive_int("a delay of tests", delay) for delay in given))

    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return the tests, one for each delay."""
        return tuple(Evaluation(f"delay={delay}", Copy(delay)) for delay in self.tests)


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
