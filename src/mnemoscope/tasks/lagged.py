"""Functions of the input p steps ago: itself (lag-copy), or its sine (sinus, copy-sinus)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.tasks.batch import place
from mnemoscope.tasks.checks import at_least, too_large
from mnemoscope.tasks.registry import task
from mnemoscope.tasks.signals import Signal

__all__ = ["CopySinus", "LagCopy", "Sinus"]


class Lagged(Signal):
    """y_t = f(x_{t-p}) with x ~ N(0, 1); steps 1..p are not asked for."""

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
