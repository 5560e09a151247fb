"""MNIST as sequences: digits pixel by pixel, in order or permuted, or patch by patch."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from mnemoscope.core.errors import choice, expected, positive_int
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, Splits, at_the_end, place
from mnemoscope.tasks.checks import too_large, true_or_false
from mnemoscope.tasks.mnist_files import PIXELS, Images, Order, images
from mnemoscope.tasks.registry import task

__all__ = ["MNIST", "RECIPES", "Digits", "Patches", "Permuted", "PermutedMNIST", "SequentialMNIST"]


@dataclass(frozen=True)
class Permuted:
    """A random order of pixels that a seed of NumPy's RandomState fixes."""

    seed: int

    def __call__(self, side: int) -> Int64[Tensor, " pixels"]:
        """Return the order for images of this side."""
        return torch.from_numpy(np.random.RandomState(self.seed).permutation(side**2))


@dataclass(frozen=True)
class Patches:
    """The pixels of one patch after those of another, both row by row."""

    grid: int

    def __call__(self, side: int) -> Int64[Tensor, " pixels"]:
        """Return the order for images of this side."""
        patch = side // self.grid
        return torch.arange(side**2).view(self.grid, patch, self.grid, patch).transpose(1, 2).flatten()


RECIPES = {"ziv": (92916, 5_000), "kerg": (1234, 10_000), "all": (92916, 0)}
"""By name: the seed of the permutation, and how many of 60,000 training images are held out to validate."""


class Digits(Task):
    """MNIST as sequences; one of ten labels at the last step. The baseline is ln 10, the score the accuracy.

    Splits by recipe: ``"ziv"`` 55,000 / 5,000 / 10,000, the first 5,000 to validate; ``"kerg"`` 50,000 / 10,000 /
    10,000, the last 10,000 to validate [o]; ``"all"`` 60,000 / 0 / 10,000. A smaller file is cut in proportion.
    """

    naive: ClassVar[str] = "ln 10"
    dataset: ClassVar[str | None] = "mnist"

    recipe: str
    data: str | None
    verify: bool

    @property
    def order(self) -> Order | None:
        """In which order the pixels are read, step after step: None for row by row."""
        return None

    @property
    def output_size(self) -> int:
        """The digits."""
        return 10

    @property
    def baseline(self) -> float:
        """The logarithm of 10."""
        return math.log(10)

    @property
    def side(self) -> int:
        """Pixels of a side."""
        return PIXELS

    def _check_data(self) -> None:
        choice("recipe", self.recipe, RECIPES)
        if self.data is not None and not isinstance(self.data, str | os.PathLike):
            raise expected("data", "the path of a folder", self.data)
        true_or_false("verify", self.verify)

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw training images, with replacement."""
        train, _ = images(self.data, self.verify, self.side, self.order)
        where, part = place(generator), self._training_part(len(train.labels))
        which = torch.randint(part.start, part.stop, (batch,), generator=generator, device=where).cpu()
        pixels = self._steps_of(train.pixels.index_select(0, which)).contiguous()
        return at_the_end(pixels / 255, train.labels[which]).to(where)

    def splits(self, seed: int = 0) -> Splits:
        """Return the training, validation and test images, which no seed changes."""
        train, test = images(self.data, self.verify, self.side, self.order)
        count = len(train.labels)
        part = self._training_part(count)
        held = slice(0, part.start) if part.start else slice(part.stop, count)
        return Splits(self._set(train, part), self._set(train, held), self._set(test, slice(None)))

    def pictures(self, batch: Batch, which: int = 0) -> dict[str, Float[np.ndarray, "rows columns"]]:
        """Return the digit, and where it is read in another order, its pixels in that order."""
        read = batch.inputs[:, which].flatten().cpu()
        label = f"digit {int(batch.targets[which])}"
        if self.order is None:
            return {label: read.view(self.side, -1).numpy()}
        image = torch.empty_like(read).scatter_(0, self.order(self.side), read)
        return {label: image.view(self.side, -1).numpy(), "as it is read": read.view(self.side, -1).numpy()}

    def _training_part(self, count: int) -> slice:
        """Return which of the training images are not held out."""
        held = round(count * RECIPES[self.recipe][1] / 60_000)
        return slice(0, count - held) if self.recipe == "kerg" else slice(held, count)

    def _set(self, given: Images, part: slice) -> Batch:
        # One image after the other in memory, behind a transposed view: a batch of them is then read in few pieces.
        return at_the_end(self._steps_of(given.pixels[part]) / 255, given.labels[part])

    def _steps_of(self, pixels: Tensor) -> Tensor:
        return pixels.view(-1, self.steps, self.input_size).transpose(0, 1)


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
    pixels_per_step
        Pixels that are read at once; they must divide those of an image.
    """

    side: int = PIXELS
    recipe: str = "ziv"
    data: str | None = field(default=None, compare=False)
    verify: bool = True
    pixels_per_step: int = 1

    difficulty: ClassVar[str] = "side"
    references: ClassVar[tuple[str, ...]] = ("lecun1998", "le2015")

    def __post_init__(self) -> None:
        """Check the settings."""
        if positive_int("side", self.side) > PIXELS:
            raise too_large("side", self.side, PIXELS, "the pixels of a side")
        if self.side**2 % positive_int("pixels_per_step", self.pixels_per_step):
            raise expected(
                "pixels_per_step", f"a divisor of {self.side**2}, the pixels of an image", self.pixels_per_step
            )
        self._check_data()

    @property
    def steps(self) -> int:
        """Pixels of an image, by those that are read at once."""
        return self.side**2 // self.pixels_per_step

    @property
    def input_size(self) -> int:
        """The pixels of a step."""
        return self.pixels_per_step

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
    pixels_per_step
        Pixels that are read at once; they must divide those of an image.
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
