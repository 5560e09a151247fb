"""Group composition: a running product of group elements, the purest test of state tracking."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
import torch

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.tasks.automaton import run_automaton
from mnemoscope.tasks.base import Evaluation, Task
from mnemoscope.tasks.batch import Batch, all_steps, one_hot, place
from mnemoscope.tasks.glyphs import letters
from mnemoscope.tasks.registry import task

__all__ = ["GroupComposition", "group_size", "multiplication_table"]


def group_size(name: str) -> int:
    """Return the number of elements of a group.

    Examples
    --------
    >>> group_size("A5")
    60
    """
    return len(multiplication_table(name))


@cache
def multiplication_table(name: str) -> np.ndarray:
    """Return the table of a group: entry (a, b) is the number of the product a b; element 0 is the identity.

    For permutations, a b means: first b, then a.
    """
    cyclic = re.fullmatch(r"Z([1-9]\d{0,3})", name) if isinstance(name, str) else None
    if cyclic and 2 <= int(cyclic[1]) <= 1000:
        numbers = np.arange(int(cyclic[1]))
        return (numbers[:, None] + numbers) % len(numbers)
    permutations = {"S3": (3, False), "A5": (5, True), "S5": (5, False)}
    if name not in permutations:
        raise expected("group", "Z2, Z3, .., Z1000, S3, A5 or S5", name)
    return _permutation_table(*permutations[name])


def _permutation_table(letters: int, only_even: bool) -> np.ndarray:
    elements = np.array([p for p in itertools.permutations(range(letters)) if not only_even or _is_even(p)])
    products = elements[:, elements]  # products[a, b, i] = a(b(i))
    weights = letters ** np.arange(letters)
    number = {int(code): index for index, code in enumerate(elements @ weights)}
    table: np.ndarray = np.vectorize(number.__getitem__)(products @ weights)
    return table


def _is_even(permutation: tuple[int, ...]) -> bool:
    return sum(a > b for a, b in itertools.combinations(permutation, 2)) % 2 == 0


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
