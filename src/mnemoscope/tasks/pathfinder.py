"""Pathfinder: do two discs end the same dashed path? A picture, read pixel by pixel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import UserError
from mnemoscope.core.seeds import seed_of
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, Splits, at_the_end
from mnemoscope.tasks.checks import at_least
from mnemoscope.tasks.pathfinder_drawing import draw_pictures
from mnemoscope.tasks.registry import task

__all__ = ["Pathfinder"]

_PAIRS = (1_000, 4_000)
"""Pairs of paths that are walked at once, at least and at most; an eighth of them or less make a picture."""

_TRIES = 12
"""How often in a row walking may give nothing before it is called impossible."""


@task("pathfinder")
@dataclass(frozen=True)
class Pathfinder(Task):
    """Say whether two discs end one dashed path, or two different ones.

    A picture of 32 x 32 pixels, -1 for paper and 1 for ink, is read row by row, one pixel a step: 1,024 steps, two
    logits at the end. It has two paths of 14 dashes that do not touch, up to four distractors of 4 or 5 dashes, and a
    disc at two of the four ends. The classes are balanced. The baseline is ln 2, the score the accuracy.

    Parameters
    ----------
    dashes
        Dashes of a long path; distractors have a third of them, or one more.
    side
        Pixels of a side; a sequence has side^2 steps.
    distractors
        Most distractors; at least two fewer, where they fit.
    examples
        Pictures to learn from; an eighth as many to validate and to test.

    Notes
    -----
    The published pictures are rendered by a program of their own; ours [o] have dashes of two or three pixels with gaps
    of one, turns of at most 0.4 radians from dash to dash, and discs of radius 1.5. In every picture the ends could
    have had the discs either way, equally far apart within a quarter of a pixel, and a coin decided: neither ink nor
    distance tells the class.
    """

    dashes: int = 14
    side: int = 32
    distractors: int = 4
    examples: int = 160_000

    difficulty: ClassVar[str] = "dashes"
    naive: ClassVar[str] = "ln 2"
    references: ClassVar[tuple[str, ...]] = ("linsley2018", "tay2021")

    def __post_init__(self) -> None:
        """Check the settings."""
        at_least("side", self.side, 10)
        at_least("dashes", self.dashes, 2)
        at_least("distractors", self.distractors, 0)
        at_least("examples", self.examples, 8)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Pictures to train, to validate and to test."""
        held = max(self.examples // 8, 1)
        return self.examples, held, held

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """Two dashes at least; how many fit into the square is found out by drawing."""
        self._axis(axis)
        return 2, None

    @property
    def steps(self) -> int:
        """Pixels of a picture."""
        return self.side**2

    @property
    def input_size(self) -> int:
        """One pixel."""
        return 1

    @property
    def output_size(self) -> int:
        """One path, or two."""
        return 2

    @property
    def baseline(self) -> float:
        """The logarithm of 2."""
        return math.log(2)

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh pictures."""
        ink, same = self._pictures(batch, generator)
        return at_the_end((2 * ink - 1).flatten(1).T.unsqueeze(-1).contiguous(), same)

    def splits(self, seed: int = 0) -> Splits:
        """Return 160,000 pictures to train, 20,000 to validate and 20,000 to test; a seed gives the same ones."""
        return _sets(self, seed)

    def pictures(self, batch: Batch, which: int = 0) -> dict[str, Float[np.ndarray, "rows columns"]]:
        """Return the picture."""
        label = "one path" if batch.targets[which] else "two paths"
        return {label: (batch.inputs[:, which].float().view(self.side, self.side).cpu().numpy() + 1) / 2}

    def _pictures(self, count: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Return pictures of 0 and 1, and whether their discs end one path."""
        found: list[tuple[Tensor, Tensor]] = []
        left, vain = count, 0
        while left > 0:
            pairs = min(max(16 * left, _PAIRS[0]), _PAIRS[1])
            ink, same, _ = draw_pictures(pairs, self.side, self.dashes, self.distractors, generator)
            vain = 0 if len(same) else vain + 1
            if vain >= _TRIES:
                raise UserError(
                    f"two paths of {self.dashes} dashes hardly ever fit into {self.side} x {self.side} pixels: take "
                    "fewer dashes or more pixels"
                )
            found.append((ink[:left], same[:left]))
            left -= len(same)
        inks, labels = zip(*found, strict=True)
        return torch.cat(inks), torch.cat(labels)


@lru_cache(maxsize=2)
def _sets(own: Pathfinder, seed: int) -> Splits:
    """Draw three sets; kept, since each run of a population asks for them. In half precision -1 and 1 are exact."""
    # Not the seed itself: fresh batches of the same seed would repeat the training set.
    generator = torch.Generator().manual_seed(seed_of(seed, f"{own.name} splits"))
    parts = []
    for size in own.sizes:
        chunks = [min(4096, size - start) for start in range(0, size, 4096)]
        drawn = [own._pictures(chunk, generator) for chunk in chunks]
        ink, same = (
            torch.cat(pieces) for pieces in zip(*((2 * one.half() - 1, two) for one, two in drawn), strict=True)
        )
        parts.append(at_the_end(ink.flatten(1).T.unsqueeze(-1), same))
    return Splits(*parts)
