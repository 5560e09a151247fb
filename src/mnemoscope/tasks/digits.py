"""What the tasks on images of digits share: splits, labels, pictures."""

from __future__ import annotations

import math
import os
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import choice, expected
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, Splits, at_the_end, place
from mnemoscope.tasks.mnist_files import PIXELS, Images, Order, images

__all__ = ["RECIPES", "Digits"]

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
        if not isinstance(self.verify, bool):
            raise expected("verify", "true or false", self.verify)

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
