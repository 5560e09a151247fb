"""Group composition: follow a product of group elements, the purest test of state tracking."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from mnemoscope.core.errors import positive_int
from mnemoscope.tasks.automaton import run_automaton
from mnemoscope.tasks.base import Evaluation, Task
from mnemoscope.tasks.batch import Batch, all_steps, one_hot, place
from mnemoscope.tasks.glyphs import letters
from mnemoscope.tasks.groups import group_size, multiplication_table
from mnemoscope.tasks.registry import task

__all__ = ["GroupComposition"]


@task("group-composition")
@dataclass(frozen=True)
class GroupComposition(Task):
    """Say the product of all elements so far, at every step: y_t = g_t .. g_2 g_1.

    The elements g are uniform over a group, one-hot; the answer is the number of the product, one of |G| classes; all
    steps count. The baseline is ln |G|, the score the accuracy. `evaluations` gives tests at the length of training and
    at two and four times of it [o].

    Parameters
    ----------
    length
        Steps of a sequence.
    group
        ``"Z2"`` (parity), ``"Zk"`` for any k up to 1000, ``"S3"``, ``"A5"`` or ``"S5"``. The last two are not solvable:
        no network of bounded depth whose steps commute can follow them at all lengths.

    Notes
    -----
    Elements are numbered with the identity first, permutations in dictionary order; new elements multiply from the
    left [o]. Default length and group are ours [o].
    """

    length: int = 32
    group: str = "S3"

    difficulty: ClassVar[str] = "length"
    naive: ClassVar[str] = "ln |G|"
    references: ClassVar[tuple[str, ...]] = ("liu2023", "merrill2024")

    def __post_init__(self) -> None:
        """Check the settings."""
        positive_int("length", self.length)
        multiplication_table(self.group)

    @property
    def steps(self) -> int:
        """The length."""
        return self.length

    @property
    def input_size(self) -> int:
        """The elements of the group."""
        return group_size(self.group)

    @property
    def output_size(self) -> int:
        """The elements of the group."""
        return group_size(self.group)

    @property
    def baseline(self) -> float:
        """The logarithm of the number of elements."""
        return math.log(group_size(self.group))

    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return tests at the length of training, at twice and at four times of it."""
        lengths = (self.length, 2 * self.length, 4 * self.length)
        return tuple(Evaluation(f"length={length}", replace(self, length=length)) for length in lengths)

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences."""
        where = place(generator)
        table = multiplication_table(self.group)
        word = torch.randint(len(table), (self.length, batch), generator=generator, device=where)
        product = torch.from_numpy(run_automaton(table, word.cpu().numpy(), start=0)).to(where)
        return all_steps(one_hot(word, len(table)), product)

    def glyphs(self) -> tuple[list[str], list[str]]:
        """Letters, a for the identity; numbers for large groups."""
        marks = letters(group_size(self.group))
        return marks, marks
