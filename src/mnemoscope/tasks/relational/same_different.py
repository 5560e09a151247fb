"""Same or different: two symbols, two triplets of them, or two symbols with colours shown in between."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from mnemoscope.nn.panels import Panels
from mnemoscope.tasks.batch import place
from mnemoscope.tasks.registry import task
from mnemoscope.tasks.relational.base import (
    ColouredTask,
    Problems,
    SymbolTask,
    chosen,
    colours,
    compact,
    letters_of,
    tabulate,
)
from mnemoscope.tasks.relational.shapes import SIDE

__all__ = ["SameDifferent", "SameDifferent6", "SeparatedInputs"]

_SAME, _DIFFERENT = 0, 1


@cache
def _pairs() -> Problems:
    return tabulate([((0, 0), _SAME), ((0, 1), _DIFFERENT)])


@task("same-different")
@dataclass(frozen=True)
class SameDifferent(ColouredTask):
    """Say whether two symbols are the same (0) or different (1), half of the examples each."""

    held_out: int = 98

    rows: ClassVar[tuple[int, ...]] = (2,)

    @property
    def needed(self) -> dict[str, int]:
        """Two."""
        return {"train": 2, "test": 2}

    @property
    def output_size(self) -> int:
        """Same or different."""
        return 2

    def problems(self, batch: int, generator: torch.Generator | None) -> Problems:
        """Draw AA or AB."""
        return chosen(_pairs(), batch, generator)


@task("separated-inputs")
@dataclass(frozen=True)
class SeparatedInputs(SymbolTask):
    """Say whether two symbols are the same (0) or different (1) when each is followed by a field of a random colour.

    Four panels: symbol, colour, symbol, colour. The colours are the 100 of ``colour="spurious"``, and say nothing of
    the answer.
    """

    held_out: int = 98

    rows: ClassVar[tuple[int, ...]] = (4,)

    @property
    def needed(self) -> dict[str, int]:
        """Two."""
        return {"train": 2, "test": 2}

    @property
    def output_size(self) -> int:
        """Same or different."""
        return 2

    def problems(self, batch: int, generator: torch.Generator | None) -> Problems:
        """Draw AA or AB."""
        return chosen(_pairs(), batch, generator)

    def show(self, letters: Int64[Tensor, "panels batch"], generator: torch.Generator | None) -> Panels:
        """Show two symbols, and a colour behind each."""
        images, shown = super().show(letters, generator)
        fields = colours().to(place(generator))[:, :, None, None].expand(-1, -1, SIDE, SIDE)
        tints = torch.randint(len(fields), shown.shape, generator=generator, device=shown.device)
        index = torch.stack([shown, len(images) + tints], 1).flatten(0, 1)
        return compact(Panels(torch.cat([images, fields]), index))


_TRIPLETS, _UNSEEN = ("AAA", "ABA", "BAA"), "AAB"


@cache
def _triplets(part: str) -> Problems:
    """Return both orders of different arrangements, and as many equal ones."""
    if part == "train":
        different = list(itertools.permutations(_TRIPLETS, 2))
        same = [(pattern, pattern) for pattern in _TRIPLETS] * 2
    else:
        different = [pair for other in _TRIPLETS for pair in ((_UNSEEN, other), (other, _UNSEEN))]
        same = [(_UNSEEN, _UNSEEN)] * len(different)
    rows = [(pair, _SAME) for pair in same] + [(pair, _DIFFERENT) for pair in different]
    return tabulate([(letters_of(first + second), answer) for (first, second), answer in rows])


@task("same-different-6")
@dataclass(frozen=True)
class SameDifferent6(SymbolTask):
    """Say whether two triplets are the same (0) or different arrangements of the same two symbols (1).

    Training has the arrangements AAA, ABA and BAA; the test has AAB, against itself and against those, in both orders.
    """

    held_out: int = 98

    rows: ClassVar[tuple[int, ...]] = (3, 3)

    @property
    def needed(self) -> dict[str, int]:
        """Two."""
        return {"train": 2, "test": 2}

    @property
    def output_size(self) -> int:
        """Same or different."""
        return 2

    def problems(self, batch: int, generator: torch.Generator | None) -> Problems:
        """Draw two triplets."""
        return chosen(_triplets(self.part), batch, generator)
