"""Distribution of three or more: the symbol of the first row that the second row still lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from mnemoscope.tasks.batch import place
from mnemoscope.tasks.checks import at_least, too_large
from mnemoscope.tasks.registry import task
from mnemoscope.tasks.relational.base import ColouredTask, Problems, SymbolTask
from mnemoscope.tasks.relational.symbols import SYMBOLS

__all__ = ["Distribution3", "DistributionN", "RestrictedDistributionN"]

_FREE = 3
"""Places at the end of a row that the permutations of restricted training keep apart from the others."""


def _permutations(count: int, batch: int, generator: torch.Generator | None) -> Int64[Tensor, "count batch"]:
    return torch.rand(count, batch, generator=generator, device=place(generator)).argsort(0)


def _rows_and_choices(row: Int64[Tensor, "count batch"], batch: int, generator: torch.Generator | None) -> Problems:
    """Return the first row 0, 1, .., a second one without its last symbol, and all symbols with one more as choices."""
    count = len(row)
    first = torch.arange(count, device=row.device).unsqueeze(1).expand(-1, batch)
    choices = _permutations(count + 1, batch, generator)
    answers = (choices == row[-1]).int().argmax(0)
    return Problems(torch.cat([first, row[:-1], choices]), answers)


@task("dist3")
@dataclass(frozen=True)
class Distribution3(ColouredTask):
    """Say which of four choices completes the second row, a permutation of the three symbols of the first.

    Nine panels: a row of three; the first two of a random permutation of it; the three and one more, shuffled, as
    choices.
    """

    rows: ClassVar[tuple[int, ...]] = (3, 2, 4)

    @property
    def needed(self) -> dict[str, int]:
        """Four."""
        return {"train": 4, "test": 4}

    @property
    def output_size(self) -> int:
        """The choices."""
        return 4

    def problems(self, batch: int, generator: torch.Generator | None) -> Problems:
        """Draw a permutation, and shuffle the choices."""
        return _rows_and_choices(_permutations(3, batch, generator), batch, generator)


@task("dist-n")
@dataclass(frozen=True)
class DistributionN(SymbolTask):
    """Say which of N + 1 choices completes the second row, a permutation of the N symbols of the first.

    As `dist3`, with 3 N panels: N, then N - 1, then N + 1 choices.

    Parameters
    ----------
    n
        N, symbols of a row.
    """

    held_out: int = 89
    n: int = 10

    axes: ClassVar[tuple[str, ...]] = ("held_out", "n")
    fewest: ClassVar[int] = 2

    def __post_init__(self) -> None:
        """Check the settings."""
        if at_least("n", self.n, self.fewest) + 1 > SYMBOLS:
            raise too_large("n", self.n, SYMBOLS - 1, "there are 100 symbols")
        super().__post_init__()

    @property
    def rows(self) -> tuple[int, ...]:  # type: ignore[override]
        """Row, row, choices."""
        return (self.n, self.n - 1, self.n + 1)

    @property
    def needed(self) -> dict[str, int]:
        """N + 1."""
        return {"train": self.n + 1, "test": self.n + 1}

    @property
    def output_size(self) -> int:
        """The choices."""
        return self.n + 1

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """As many symbols as each part has must be enough."""
        if self._axis(axis) == "held_out":
            return super().limits(axis)
        parts = (SYMBOLS - self.held_out, self.held_out or SYMBOLS)
        return self.fewest, min(parts) - 1

    def problems(self, batch: int, generator: torch.Generator | None) -> Problems:
        """Draw a permutation, and shuffle the choices."""
        return _rows_and_choices(_permutations(self.n, batch, generator), batch, generator)


@task("dist-n-restricted")
@dataclass(frozen=True)
class RestrictedDistributionN(DistributionN):
    """`dist-n` whose test has permutations that training never shows.

    Training permutes the first N - 3 places among themselves, and the last three; the test has all other permutations.

    Parameters
    ----------
    n
        N, symbols of a row, at least 4.
    """

    fewest: ClassVar[int] = _FREE + 1

    def problems(self, batch: int, generator: torch.Generator | None) -> Problems:
        """Draw a permutation of the part, and shuffle the choices."""
        if self.part == "train":
            kept = self.n - _FREE
            row = torch.cat([_permutations(kept, batch, generator), kept + _permutations(_FREE, batch, generator)])
        else:
            row = _permutations(self.n, batch, generator)
            # At most a quarter of all permutations is restricted: what is drawn again is soon none.
            while bool((again := _is_restricted(row)).any()):
                row[:, again] = _permutations(self.n, int(again.sum()), generator)
        return _rows_and_choices(row, batch, generator)


def _is_restricted(row: Int64[Tensor, "count batch"]) -> Bool[Tensor, " batch"]:
    """Say of permutations whether they keep the first places, all but three, among themselves."""
    kept = len(row) - _FREE
    return (row[:kept] < kept).all(0)
