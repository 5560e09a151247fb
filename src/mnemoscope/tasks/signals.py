"""What the tasks on Gaussian inputs share: fixed sets, squared error, dimensions that are all asked for."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, Splits, all_steps

__all__ = ["SIZES", "Signal", "fixed_sets"]

SIZES = (10_000, 2_000, 2_000)
"""Sequences to train, to validate, to test."""


class Signal(Task):
    """A function of a random signal, dimension by dimension, asked for at every step from `first` on."""

    kind: ClassVar[str] = "regression"
    metric: ClassVar[str] = "1 - MSE / baseline"
    references: ClassVar[tuple[str, ...]] = ("lizaire2026",)

    length: int
    dimensions: int

    @property
    def first(self) -> int:
        """The first step that counts, from 0."""
        return 0

    @abstractmethod
    def signal(self, batch: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Draw inputs, and give their targets; both (time, batch, dimensions)."""

    @property
    def steps(self) -> int:
        """The length."""
        return self.length

    @property
    def input_size(self) -> int:
        """The dimensions."""
        return self.dimensions

    @property
    def output_size(self) -> int:
        """The dimensions."""
        return self.dimensions

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences."""
        drawn = all_steps(*self.signal(batch, generator))
        drawn.mask[: self.first] = False
        return drawn

    def splits(self, seed: int = 0) -> Splits:
        """Return 10,000 sequences to train, 2,000 to validate and 2,000 to test; a seed gives the same ones."""
        return fixed_sets(self, seed)


def fixed_sets(task: Task, seed: int, sizes: tuple[int, int, int] = SIZES) -> Splits:
    """Draw three sets at once, so that no sequence is drawn for two of them."""
    # Not the seed itself: fresh batches of the same seed would repeat the training set.
    digest = hashlib.sha256(f"{task.name} splits {seed}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
    drawn = task.draw(sum(sizes), generator)
    stored = drawn._replace(inputs=_by_sequence(drawn.inputs), targets=_by_sequence(drawn.targets))
    train, validation, _ = sizes
    cuts = (0, train, train + validation, sum(sizes))
    return Splits(*(_part(stored, slice(cuts[i], cuts[i + 1])) for i in range(3)))


def _by_sequence(values: Tensor) -> Tensor:
    return values.transpose(0, 1).contiguous().transpose(0, 1)


def _part(batch: Batch, which: slice) -> Batch:
    inputs, targets, mask, lengths = batch
    return Batch(inputs[:, which], targets[:, which], mask[:, which], lengths[which])
