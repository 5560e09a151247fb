"""Digits as sequences: pixel by pixel, in order or permuted, or patch by patch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.tasks.batch import Batch
from mnemoscope.tasks.checks import too_large
from mnemoscope.tasks.digits import RECIPES, Digits
from mnemoscope.tasks.mnist_files import PIXELS, Order
from mnemoscope.tasks.pixel_orders import Patches, Permuted
from mnemoscope.tasks.registry import task

__all__ = ["MNIST", "PermutedMNIST", "SequentialMNIST"]


@task("smnist")
@dataclass(frozen=True)
class SequentialMNIST(Digits):
    """Read a digit pixel by pixel, row by row, and say which it was.

    One pixel in [0, 1] per step, 784 steps, ten logits at the last step.

    Parameters
    ----------
    side
        Pixels of a side, up to 28; below that the image is averaged down, for a sequence of side^2 steps [o].
    recipe
        How training images are held out to validate: ``"ziv"``, ``"kerg"`` or ``"all"``.
    data
        The data folder; by default that of MNEMOSCOPE_DATA.
    verify
        Whether the files must be the published ones; false for another set of the same format.
    """

    side: int = PIXELS
    recipe: str = "ziv"
    data: str | None = field(default=None, compare=False)
    verify: bool = True

    difficulty: ClassVar[str] = "side"
    references: ClassVar[tuple[str, ...]] = ("lecun1998", "le2015")

    def __post_init__(self) -> None:
        """Check the settings."""
        if positive_int("side", self.side) > PIXELS:
            raise too_large("side", self.side, PIXELS, "the pixels of a side")
        self._check_data()

    @property
    def steps(self) -> int:
        """Pixels of an image."""
        return self.side**2

    @property
    def input_size(self) -> int:
        """One pixel."""
        return 1

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """Images have 28 x 28 pixels."""
        self._axis(axis)
        return 1, PIXELS


@task("pmnist")
@dataclass(frozen=True)
class PermutedMNIST(SequentialMNIST):
    """Read the pixels of a digit in a fixed random order, and say which digit it was.

    As `smnist`, in the order numpy.random.RandomState(seed).permutation(784): seed 92916 for the recipe ``"ziv"``, 1234
    for ``"kerg"``.

    Parameters
    ----------
    side
        Pixels of a side, up to 28; below that the image is averaged down, for a sequence of side^2 steps [o].
    recipe
        Which permutation, and how training images are held out to validate: ``"ziv"``, ``"kerg"`` or ``"all"``.
    data
        The data folder; by default that of MNEMOSCOPE_DATA.
    verify
        Whether the files must be the published ones; false for another set of the same format.
    """

    references: ClassVar[tuple[str, ...]] = ("lecun1998", "le2015", "ziv2020", "kerg2019")

    @property
    def order(self) -> Order:
        """The fixed random order."""
        return Permuted(RECIPES[self.recipe][0])


@task("mnist")
@dataclass(frozen=True)
class MNIST(Digits):
    """Read a digit patch by patch, for tensor networks that classify short sequences of vectors.

    16 patches of 7 x 7 pixels in [0, 1], row by row, flattened: 16 steps of 49 numbers; ten logits at the last [o].

    Parameters
    ----------
    grid
        Patches of a side: 1, 2, 4, 7, 14 or 28.
    recipe
        How training images are held out to validate: ``"ziv"``, ``"kerg"`` or ``"all"`` (none, as the thesis has it).
    data
        The data folder; by default that of MNEMOSCOPE_DATA.
    verify
        Whether the files must be the published ones; false for another set of the same format.
    """

    grid: int = 4
    recipe: str = "ziv"
    data: str | None = field(default=None, compare=False)
    verify: bool = True

    difficulty: ClassVar[str] = "grid"
    references: ClassVar[tuple[str, ...]] = ("lecun1998", "alkin2024")

    def __post_init__(self) -> None:
        """Check the settings."""
        if PIXELS % positive_int("grid", self.grid):
            raise expected("grid", "1, 2, 4, 7, 14 or 28", self.grid)
        self._check_data()

    @property
    def steps(self) -> int:
        """Patches."""
        return self.grid**2

    @property
    def shape(self) -> tuple[int, ...]:
        """A patch."""
        return (PIXELS // self.grid, PIXELS // self.grid)

    @property
    def input_size(self) -> int:
        """Pixels of a patch."""
        return (PIXELS // self.grid) ** 2

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """At most a patch for every pixel; only divisors of 28 are possible."""
        self._axis(axis)
        return 1, PIXELS

    def pictures(self, batch: Batch, which: int = 0) -> dict[str, Float[np.ndarray, "rows columns"]]:
        """Return the digit with a gap between its patches."""
        patch = PIXELS // self.grid
        tiles = batch.inputs[:, which].view(self.grid, self.grid, patch, patch).cpu().numpy()
        apart = np.pad(tiles, ((0, 0), (0, 0), (0, 1), (0, 1))).transpose(0, 2, 1, 3)
        side = self.grid * (patch + 1)
        label = f"digit {int(batch.targets[which])}, {self.steps} patches"
        return {label: apart.reshape(side, side)[:-1, :-1]}

    @property
    def order(self) -> Order:
        """Patch by patch."""
        return Patches(self.grid)
