"""Relational match to sample: which of two candidates has the relation of the source."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import torch

from mnemoscope.tasks.registry import task
from mnemoscope.tasks.relational.base import ColouredTask, Problems, SymbolTask, chosen, letters_of, tabulate

__all__ = ["RMTS", "RMTS3"]


def _matches(source: str, other: str) -> Problems:
    """Return the two problems in which `source` is the relation of source and match, `other` that of the distractor.

    The letters of source, match and distractor are all distinct.
    """
    used = len(set(source))
    shown, match, distractor = letters_of(source), letters_of(source, used), letters_of(other, 2 * used)
    return tabulate([(shown + match + distractor, 0), (shown + distractor + match, 1)])


def _all(pairs: list[tuple[str, str]]) -> Problems:
    parts = [_matches(source, other) for source, other in pairs]
    return Problems(torch.cat([part.letters for part in parts], 1), torch.cat([part.answers for part in parts]))


@cache
def _pairs() -> Problems:
    return _all([("AA", "AB"), ("AB", "AA")])


@cache
def _triplets(part: str) -> Problems:
    return _all(
        list(itertools.permutations(("AAA", "ABA", "BAA"), 2)) if part == "train" else [("AAB", "ABC"), ("ABC", "AAB")]
    )


@task("rmts")
@dataclass(frozen=True)
class RMTS(ColouredTask):
    """Say which of two pairs has the relation of the source pair: same or different, half of the examples each.

    Six panels: the source, pair 0, pair 1. The answer is the number of the pair.
    """

    rows: ClassVar[tuple[int, ...]] = (2, 2, 2)

    @property
    def needed(self) -> dict[str, int]:
        """Five: two different pairs and an equal one."""
        return {"train": 5, "test": 5}

    @property
    def output_size(self) -> int:
        """The two pairs."""
        return 2

    def problems(self, batch: int, generator: torch.Generator | None) -> Problems:
        """Draw source, match and distractor."""
        return chosen(_pairs(), batch, generator)


@task("rmts-3")
@dataclass(frozen=True)
class RMTS3(SymbolTask):
    """Say which of two triplets has the pattern of the source triplet.

    Training has all ordered pairs of the patterns AAA, ABA and BAA; the test has AAB against ABC, and ABC against AAB.
    """

    held_out: int = 94

    rows: ClassVar[tuple[int, ...]] = (3, 3, 3)

    @property
    def needed(self) -> dict[str, int]:
        """Six in training; eight in the test, whose patterns have up to three letters."""
        return {"train": 6, "test": 8}

    @property
    def output_size(self) -> int:
        """The two triplets."""
        return 2

    def problems(self, batch: int, generator: torch.Generator | None) -> Problems:
        """Draw source, match and distractor."""
        return chosen(_triplets(self.part), batch, generator)
