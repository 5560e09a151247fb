"""Comparison: which of two copies of a symbol is the larger."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from mnemoscope.nn.panels import Panels
from mnemoscope.tasks.batch import place
from mnemoscope.tasks.registry import task
from mnemoscope.tasks.relational.base import Problems, SymbolTask, chosen, compact, tabulate
from mnemoscope.tasks.relational.shapes import SIDE
from mnemoscope.tasks.relational.symbols import symbols

__all__ = ["Comparison", "TransitiveComparison"]


@lru_cache(maxsize=4)
def _scaled(source: str, data: str | None, scale: float) -> Float[Tensor, "100 3 32 32"]:
    """Return the symbols made smaller, in the middle of a white image."""
    ink = 1 - symbols(source, data)
    side = round(scale * SIDE)
    if side == SIDE:
        return 1 - ink
    small = F.interpolate(ink, (side, side), mode="bilinear", antialias=True, align_corners=False).clamp(0, 1)
    before = (SIDE - side) // 2
    after = SIDE - side - before
    return 1 - F.pad(small, (before, after, before, after))


@task("comparison")
@dataclass(frozen=True)
class Comparison(SymbolTask):
    """Say at which of two places a symbol is larger: it is shown at the scales 0.5 and 1, in either order."""

    held_out: int = 98

    rows: ClassVar[tuple[int, ...]] = (2,)
    scales: ClassVar[tuple[float, ...]] = (0.5, 1.0)

    @property
    def needed(self) -> dict[str, int]:
        """One."""
        return {"train": 1, "test": 1}

    @property
    def output_size(self) -> int:
        """The two places."""
        return 2

    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of scales, smaller first, by their numbers."""
        return [(0, 1)]

    def problems(self, batch: int, generator: torch.Generator | None) -> Problems:
        """Draw the scales of both panels, by their numbers, and where the larger one is."""
        both = [row for small, large in self.pairs() for row in (((small, large), 1), ((large, small), 0))]
        return chosen(tabulate(both), batch, generator)

    def show(self, letters: Int64[Tensor, "panels batch"], generator: torch.Generator | None) -> Panels:
        """Show a symbol at the scales of the problem."""
        pool = self.pool()
        images = [_scaled(self.images, self.data, scale)[pool] for scale in self.scales]
        index = letters * len(pool) + self.distinct(letters.shape[1], generator)
        return compact(Panels(torch.cat(images).to(place(generator)), index))


@task("transitive-comparison")
@dataclass(frozen=True)
class TransitiveComparison(Comparison):
    """Say at which of two places a symbol is larger, having learned from neighbouring sizes only.

    The scales are 0.4, 0.7 and 1. Training compares neighbours, the test the smallest with the largest.
    """

    scales: ClassVar[tuple[float, ...]] = (0.4, 0.7, 1.0)

    def pairs(self) -> list[tuple[int, int]]:
        """Return neighbours in training, the two ends in the test."""
        return [(0, 1), (1, 2)] if self.part == "train" else [(0, 2)]
