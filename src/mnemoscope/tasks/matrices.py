"""Tasks whose steps are matrices of bits: copy them, or recall the item after the one that is asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float, Int32
from torch import Tensor

from mnemoscope.core.errors import positive_int
from mnemoscope.tasks.base import Evaluation, Task
from mnemoscope.tasks.batch import Batch, place, steps_before
from mnemoscope.tasks.checks import at_least, too_large, true_or_false
from mnemoscope.tasks.registry import task

__all__ = ["MatrixCopy", "MatrixRecall"]

SIDE = 5
CONTENT = SIDE - 1
"""Rows of random bits; the last row is the channel of the delimiters."""

MARKER, DELIMITER = (1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 1.0, 1.0, 1.0, 0.0)
END = 1.0
"""Row 4 of the step after a piece: ones."""


class Matrices(Task):
    """A task whose steps are 5 x 5 matrices, rows 0-3 random bits and row 4 for delimiters.

    Inputs are (time, batch, 5, 5); targets (time, batch, 25), row by row. The score is the share of right bits in rows
    0-3: row 4 of the answer is always zero [o].
    """

    kind: ClassVar[str] = "binary"
    metric: ClassVar[str] = "accuracy of the random bits"
    naive: ClassVar[str] = "0.8 ln 2"
    references: ClassVar[tuple[str, ...]] = ("renanse2021", "graves2014")

    @property
    def input_shape(self) -> tuple[int, ...]:
        """A matrix."""
        return (SIDE, SIDE)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """A matrix."""
        return (SIDE, SIDE)

    @property
    def input_size(self) -> int:
        """A matrix, flattened."""
        return SIDE * SIDE

    @property
    def output_size(self) -> int:
        """A matrix, flattened."""
        return SIDE * SIDE

    @property
    def baseline(self) -> float:
        """0.8 ln 2: one row of five is known to be zero."""
        return CONTENT / SIDE * math.log(2)

    def score(self, output: Float[Tensor, "*time batch output"], batch: Batch) -> float:
        """Return the share of right bits in rows 0-3 of the answer."""
        answers, targets = self._counted(output, batch, batch.mask)
        bits = CONTENT * SIDE
        return float(((answers[:, :bits] > 0) == (targets[:, :bits] > 0.5)).double().mean())


@task("matrix-copy")
@dataclass(frozen=True)
class MatrixCopy(Matrices):
    """Copy a sequence of matrices of bits.

    A step is 5 x 5: rows 0-3 Bernoulli(1/2), row 4 the delimiter channel (0). l ~ U{shortest..longest} content steps,
    one end step (row 4 all ones, else 0), then l zero inputs, at which the content is said, its zero row included. The
    loss is the mean binary cross entropy over these steps, 0.8 ln 2 for whoever guesses; the score is the share of
    right bits in rows 0-3. Sequences are padded with zeros to 2 longest + 1 steps, 2 longest + 2 with a start step.

    Parameters
    ----------
    longest
        The most content steps.
    shortest
        The fewest.
    start
        Whether a step stands before the content (row 4 = 1,0,0,0,1 [o], else 0), as the document's text has it.
    """

    longest: int = 20
    shortest: int = 1
    start: bool = False

    difficulty: ClassVar[str] = "longest"

    def __post_init__(self) -> None:
        """Check the settings."""
        positive_int("longest", self.longest)
        if positive_int("shortest", self.shortest) > self.longest:
            raise too_large("shortest", self.shortest, self.longest, "longest")
        true_or_false("start", self.start)

    @property
    def steps(self) -> int:
        """2 longest + 1, and one more with a start step."""
        return 2 * self.longest + 1 + self.start

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """Nothing is longer than the longest."""
        self._axis(axis)
        return self.shortest, None

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences."""
        where, longest = place(generator), self.longest
        count = torch.randint(self.shortest, longest + 1, (batch,), generator=generator, device=where)
        content = _numbers((longest, batch), generator) * steps_before(count, longest)
        inputs = torch.zeros(self.steps, batch, SIDE * SIDE, device=where)
        shown = inputs[int(self.start) :][:longest]
        shown[:] = _bits(content)
        targets = torch.zeros_like(inputs)
        everyone, end = torch.arange(batch, device=where), count + int(self.start)
        # The i-th matrix is said i steps after the end step. Those beyond the count are zero, and fall on padding.
        targets[end + 1 + torch.arange(longest, device=where).unsqueeze(1), everyone] = shown
        inputs[end, everyone, CONTENT * SIDE :] = END
        if self.start:
            inputs[0, :, CONTENT * SIDE :] = inputs.new_tensor(MARKER)
        lengths = end + 1 + count
        mask = steps_before(lengths, self.steps) & ~steps_before(end + 1, self.steps)
        return Batch(inputs.view(self.steps, batch, SIDE, SIDE), targets, mask, lengths)


@task("matrix-recall")
@dataclass(frozen=True)
class MatrixRecall(Matrices):
    """Associative recall of matrices of bits: say the item that followed the one that is shown.

    An item is a marker (row 4 = 1,0,0,0,1, else 0) and n = 2 content steps (rows 0-3 Bernoulli(1/2)). There are
    k ~ U{fewest..items} items, a delimiter (row 4 = 0,1,1,1,0, else 0), the contents of item c ~ U{1..k-1} as a query,
    and n zero steps at which the contents of item c + 1 are said. The loss is the mean binary cross entropy over
    these steps, 0.8 ln 2 for whoever guesses; the score is the share of right bits in rows 0-3. Sequences are padded
    with zeros to (n + 1) items + 2n + 1 steps, (n + 2) items + 2n + 1 where items end with a step of their own.
    `evaluations` has the published validation with 12 items beside it.

    Parameters
    ----------
    items
        The most items.
    fewest
        The fewest, at least 2.
    item_length
        Content steps of an item, n.
    item_end
        Whether every item ends with a step (row 4 all ones [o], else 0), as the document's text has it.
    """

    items: int = 10
    fewest: int = 2
    item_length: int = 2
    item_end: bool = False

    difficulty: ClassVar[str] = "items"

    def __post_init__(self) -> None:
        """Check the settings."""
        at_least("items", self.items, 2)
        positive_int("item_length", self.item_length)
        if at_least("fewest", self.fewest, 2) > self.items:
            raise too_large("fewest", self.fewest, self.items, "items")
        true_or_false("item_end", self.item_end)

    @property
    def steps(self) -> int:
        """(n + 1) items + 2n + 1, and one more for each item that ends with a step of its own."""
        return (self.item_length + 1 + self.item_end) * self.items + 2 * self.item_length + 1

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """Nothing is more than the most."""
        self._axis(axis)
        return self.fewest, None

    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return the task itself, and 12 items."""
        return (*super().evaluations(), Evaluation("items=12", replace(self, items=12, fewest=12)))

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences."""
        where, items, item = place(generator), self.items, self.item_length
        each = item + 1 + self.item_end
        count = torch.randint(self.fewest, items + 1, (batch,), generator=generator, device=where)
        there = steps_before(count, items)
        content = _numbers((items, item, batch), generator) * there.unsqueeze(1)
        # c from 0 to k - 2, by one uniform number for each sequence: k differs.
        asked = (torch.rand(batch, generator=generator, device=where, dtype=torch.float64) * (count - 1)).long()
        everyone = torch.arange(batch, device=where)
        inputs = torch.zeros(self.steps, batch, SIDE * SIDE, device=where)
        shown = inputs[: each * items].view(items, each, batch, SIDE * SIDE)
        shown[:, 0, :, CONTENT * SIDE :] = there.unsqueeze(-1) * inputs.new_tensor(MARKER)
        shown[:, 1 : item + 1] = _bits(content)
        if self.item_end:
            shown[:, -1, :, CONTENT * SIDE :] = END * there.unsqueeze(-1)
        targets = torch.zeros_like(inputs)
        end = each * count
        inputs[end, everyone, CONTENT * SIDE :] = inputs.new_tensor(DELIMITER)
        step = torch.arange(item, device=where).unsqueeze(1)
        inputs[end + 1 + step, everyone] = shown[asked, 1 + step, everyone]
        said = end + 1 + item + step
        targets[said, everyone] = shown[asked + 1, 1 + step, everyone]
        mask = torch.zeros(self.steps, batch, dtype=torch.bool, device=where)
        mask[said, everyone] = True
        return Batch(inputs.view(self.steps, batch, SIDE, SIDE), targets, mask, end + 1 + 2 * item)


def _numbers(shape: tuple[int, ...], generator: torch.Generator | None) -> Int32[Tensor, "*shape"]:
    """Return whole numbers that each hold the random bits of a matrix: drawn faster than the bits one by one."""
    return torch.randint(1 << CONTENT * SIDE, shape, generator=generator, device=place(generator), dtype=torch.int32)


def _bits(numbers: Int32[Tensor, "*shape"]) -> Int32[Tensor, "*shape 25"]:
    """Return the matrices, flattened; their last row is zero."""
    places = torch.arange(SIDE * SIDE, device=numbers.device, dtype=torch.int32)
    return (numbers.unsqueeze(-1) >> places).bitwise_and_(1)
