"""The adding problem: the sum of the two numbers, of many, that are marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, at_the_end, place
from mnemoscope.tasks.checks import at_least
from mnemoscope.tasks.registry import task

__all__ = ["Adding"]


@task("adding")
@dataclass(frozen=True)
class Adding(Task):
    """Say the sum of the two marked numbers at the last step.

    A step has two inputs: a number, uniform on (0, 1), and a marker, 1 at one random step of the first half (the first
    T // 2 steps) and at one of the second, else 0. The loss is the squared error; whoever says 1 always has 1/6, the
    variance of the sum. The score is 1 - MSE / baseline.

    Parameters
    ----------
    length
        T, at least 2.
    """

    length: int = 100

    kind: ClassVar[str] = "regression"
    metric: ClassVar[str] = "1 - MSE / baseline"
    difficulty: ClassVar[str] = "length"
    naive: ClassVar[str] = "1/6"
    references: ClassVar[tuple[str, ...]] = ("hochreiter1997", "le2015")

    def __post_init__(self) -> None:
        """Check the settings."""
        at_least("length", self.length, 2)

    @property
    def steps(self) -> int:
        """T."""
        return self.length

    @property
    def input_size(self) -> int:
        """A number and a marker."""
        return 2

    @property
    def output_size(self) -> int:
        """The sum."""
        return 1

    @property
    def baseline(self) -> float:
        """1/6, the variance of the sum of two uniform numbers."""
        return 1 / 6

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """Each half has a step at least."""
        self._axis(axis)
        return 2, None

    def input_names(self) -> list[str]:
        """A number and its marker."""
        return ["number", "marker"]

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences."""
        where = place(generator)
        inputs = torch.zeros(self.length, batch, 2, device=where)
        numbers = torch.rand(self.length, batch, generator=generator, device=where)
        inputs[..., 0] = numbers
        half = self.length // 2
        first = torch.randint(half, (1, batch), generator=generator, device=where)
        second = torch.randint(half, self.length, (1, batch), generator=generator, device=where)
        marked = torch.cat([first, second])
        inputs[..., 1].scatter_(0, marked, 1.0)
        return at_the_end(inputs, numbers.gather(0, marked).sum(0))
