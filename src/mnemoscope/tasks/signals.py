"""Functions of a random signal: its past, the sine of its past, the product of its signs."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, Splits, all_steps, place
from mnemoscope.tasks.checks import at_least, too_large
from mnemoscope.tasks.registry import task

__all__ = ["SIZES", "CopySinus", "LagCopy", "Parity", "Signal", "Sinus", "fixed_sets"]

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


class Lagged(Signal):
    """y_t = f(x_{t-p}) with x ~ N(0, 1); steps 1..p are not asked for."""

    baseline_is: ClassVar[str] = "saying the mean"
    difficulty: ClassVar[str] = "lag"
    axes: ClassVar[tuple[str, ...]] = ("lag", "dimensions")

    lag: int

    def __post_init__(self) -> None:
        """Check the settings."""
        positive_int("length", self.length)
        positive_int("dimensions", self.dimensions)
        if at_least("lag", self.lag, 0) >= self.length:
            raise too_large("lag", self.lag, self.length - 1, "the length less one step to answer at")

    @property
    def first(self) -> int:
        """The lag: before it nothing was seen that could be said."""
        return self.lag

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """One step must be left to answer at."""
        return {"lag": (0, self.length - 1), "dimensions": (1, None)}[self._axis(axis)]

    @property
    def memoryless(self) -> float:
        """Nothing at lag 0, where the present input says it all; else the baseline, since inputs are independent."""
        return self.baseline if self.lag else 0.0

    @abstractmethod
    def function(self, values: Tensor) -> Tensor:
        """Return f of what was seen."""

    def signal(self, batch: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Draw inputs, and give their targets; zero where nothing is asked for."""
        shape = (self.length, batch, self.dimensions)
        inputs = torch.randn(shape, generator=generator, device=place(generator))
        targets = torch.zeros_like(inputs)
        targets[self.lag :] = self.function(inputs[: self.length - self.lag])
        return inputs, targets


@task("lag-copy")
@dataclass(frozen=True)
class LagCopy(Lagged):
    """Say the input of p steps ago, all dimensions, at every step after the first p.

    Inputs N(0, 1) in R^d, y_t = x_{t-p}. The loss is the squared error over the steps t > p, 1 for whoever says 0; the
    score is 1 - MSE / baseline. 10,000 fixed training, 2,000 validation and 2,000 test sequences, or fresh batches.

    Parameters
    ----------
    lag
        p, below the length.
    length
        Steps of a sequence.
    dimensions
        d.
    """

    lag: int = 8
    length: int = 16
    dimensions: int = 5

    naive: ClassVar[str] = "1"

    @property
    def baseline(self) -> float:
        """1, the variance of the input."""
        return 1.0

    def function(self, values: Tensor) -> Tensor:
        """Return what was seen."""
        return values


@task("sinus")
@dataclass(frozen=True)
class Sinus(Lagged):
    """Say the sine of three times the input, all dimensions: y_t = sin(3 x_{t-p}), p = 0.

    Inputs N(0, 1) in R^d. The loss is the squared error over the steps t > p, (1 - e^-18)/2 for whoever says 0; the
    score is 1 - MSE / baseline. 10,000 fixed training, 2,000 validation and 2,000 test sequences, or fresh batches.

    Parameters
    ----------
    lag
        p, below the length.
    length
        Steps of a sequence.
    dimensions
        d.
    frequency
        3; the baseline is (1 - exp(-2 frequency^2))/2.
    """

    lag: int = 0
    length: int = 16
    dimensions: int = 5
    frequency: float = 3.0

    naive: ClassVar[str] = "(1 - exp(-2 frequency^2)) / 2"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        number = isinstance(self.frequency, int | float) and not isinstance(self.frequency, bool)
        if not number or not 0 < self.frequency < math.inf:
            raise expected("frequency", "a positive number", self.frequency)

    @property
    def baseline(self) -> float:
        """The variance of sin(w x) for x ~ N(0, 1): (1 - exp(-2 w^2))/2."""
        return -math.expm1(-2 * self.frequency**2) / 2

    def function(self, values: Tensor) -> Tensor:
        """Return sin(w x)."""
        return torch.sin(self.frequency * values)


@task("copy-sinus")
@dataclass(frozen=True)
class CopySinus(Sinus):
    """Say the sine of three times the input of p = 4 steps ago: `sinus`, with something to remember.

    Parameters
    ----------
    lag
        p, below the length.
    length
        Steps of a sequence.
    dimensions
        d.
    frequency
        3.
    """

    lag: int = 4


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
