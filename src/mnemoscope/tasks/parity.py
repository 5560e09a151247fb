"""Parity: whether the number of minus signs so far is odd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from mnemoscope.core.errors import positive_int
from mnemoscope.tasks.batch import place
from mnemoscope.tasks.registry import task
from mnemoscope.tasks.signals import Signal

__all__ = ["Parity"]


@task("parity")
@dataclass(frozen=True)
class Parity(Signal):
    """Say the product of all signs so far, dimension by dimension, at every step.

    Inputs x = sign(N(0, 1)) in R^d, y_t = x_1 x_2 .. x_t. The loss is the squared error over all steps, 1 for whoever
    says 0; the score is 1 - MSE / baseline. 10,000 fixed training, 2,000 validation and 2,000 test sequences, or fresh
    batches.

    Parameters
    ----------
    length
        Steps of a sequence.
    dimensions
        d.
    """

    length: int = 20
    dimensions: int = 5

    difficulty: ClassVar[str] = "length"
    axes: ClassVar[tuple[str, ...]] = ("length", "dimensions")
    naive: ClassVar[str] = "1"

    def __post_init__(self) -> None:
        """Check the settings."""
        positive_int("length", self.length)
        positive_int("dimensions", self.dimensions)

    @property
    def baseline(self) -> float:
        """1, since the answers are signs."""
        return 1.0

    def signal(self, batch: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Draw signs, and give their running products."""
        shape = (self.length, batch, self.dimensions)
        # The sign of a Gaussian number, without its zero.
        bits = torch.randint(2, shape, generator=generator, device=place(generator), dtype=torch.int8)
        inputs = (2 * bits - 1).float()
        return inputs, inputs.cumprod(0)
