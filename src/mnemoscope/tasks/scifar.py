"""CIFAR-10 as sequences: grey images pixel by pixel."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from mnemoscope.core.errors import UserError, expected
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, Splits, at_the_end, place
from mnemoscope.tasks.checks import at_least, too_large, true_or_false
from mnemoscope.tasks.datasets import DATASETS, data_folder, find, read, unsound
from mnemoscope.tasks.registry import task

__all__ = ["SequentialCIFAR"]

_SIDE = 32
_RECORD = 1 + 3 * _SIDE**2
"""Bytes of an image: its label, then red, green and blue."""

_GREY = (0.2989, 0.587, 0.114)
_MEAN, _DEVIATION = 0.4809, 0.2392
"""Of grey pixels between 0 and 1."""

_NAMES = ("aeroplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "lorry")
_HELD = 0.1
"""Share of the training images that validates."""


class _Images(NamedTuple):
    pixels: Float[Tensor, "count pixels"]
    labels: Int64[Tensor, " count"]


@task("scifar")
@dataclass(frozen=True)
class SequentialCIFAR(Task):
    """Read a photograph pixel by pixel, row by row, in shades of grey, and say which of ten things it shows.

    Grey is .2989 R + .587 G + .114 B between 0 and 1, of which .4809 is subtracted and which is divided by .2392; one
    pixel a step, 1,024 steps, ten logits at the end. The baseline is ln 10, the score the accuracy.

    Parameters
    ----------
    side
        Pixels of a side, up to 32; below that the image is averaged down, for a sequence of side^2 steps [o].
    data
        The data folder; by default that of MNEMOSCOPE_DATA.
    verify
        Whether the files must have the published size; false for another set of the same format.

    Notes
    -----
    45,000 / 5,000 / 10,000 images, the last 5,000 of the training files to validate [o]. Files: the binary version of
    CIFAR-10. The Python version consists of pickles, which can run a stranger's code when they are opened: refused.
    """

    side: int = _SIDE
    data: str | None = field(default=None, compare=False)
    verify: bool = True

    difficulty: ClassVar[str] = "side"
    naive: ClassVar[str] = "ln 10"
    baseline_is: ClassVar[str] = "by frequencies alone"
    dataset: ClassVar[str | None] = "cifar10"
    references: ClassVar[tuple[str, ...]] = ("krizhevsky2009", "tay2021")

    def __post_init__(self) -> None:
        """Check the settings."""
        if at_least("side", self.side, 1) > _SIDE:
            raise too_large("side", self.side, _SIDE, "the pixels of a side")
        if self.data is not None and not isinstance(self.data, str | os.PathLike):
            raise expected("data", "the path of a folder", self.data)
        true_or_false("verify", self.verify)

    def limits(self, axis: str | None = None) -> tuple[int, int | None]:
        """Images have 32 x 32 pixels."""
        self._axis(axis)
        return 1, _SIDE

    @property
    def steps(self) -> int:
        """Pixels of an image."""
        return self.side**2

    @property
    def input_size(self) -> int:
        """One pixel."""
        return 1

    @property
    def output_size(self) -> int:
        """The things."""
        return 10

    @property
    def baseline(self) -> float:
        """The logarithm of 10."""
        return math.log(10)

    @property
    def memoryless(self) -> None:
        """What the last pixel alone tells is not known."""
        return None

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw training images, with replacement."""
        train, _ = self._images()
        where = place(generator)
        which = torch.randint(self._trained(train), (batch,), generator=generator, device=where).cpu()
        drawn = _sequences(train, which)
        return drawn._replace(inputs=drawn.inputs.contiguous()).to(where)

    def splits(self, seed: int = 0) -> Splits:
        """Return the training, validation and test images, which no seed changes."""
        train, test = self._images()
        first = self._trained(train)
        return Splits(
            *(
                _sequences(*part)
                for part in ((train, slice(0, first)), (train, slice(first, None)), (test, slice(None)))
            )
        )

    def pictures(self, batch: Batch, which: int = 0) -> dict[str, Float[np.ndarray, "rows columns"]]:
        """Return the photograph, dark where it is dark."""
        grey = batch.inputs[:, which].float().view(self.side, self.side).cpu().numpy() * _DEVIATION + _MEAN
        return {_NAMES[int(batch.targets[which])]: 1 - np.clip(grey, 0, 1)}

    def _images(self) -> tuple[_Images, _Images]:
        return _read(data_folder(self.data), self.verify, self.side)

    def _trained(self, train: _Images) -> int:
        return len(train.labels) - round(_HELD * len(train.labels))


def _sequences(images: _Images, which: Tensor | slice) -> Batch:
    return at_the_end(images.pixels[which].unsqueeze(-1).transpose(0, 1), images.labels[which])


@lru_cache(maxsize=3)
def _read(folder: Path | None, verify: bool, side: int) -> tuple[_Images, _Images]:
    dataset = DATASETS["cifar10"]
    _refuse_pickles(folder)
    *train, test = (_records(folder, number, verify, side) for number in range(len(dataset.files)))
    return _Images(*(torch.cat(parts) for parts in zip(*train, strict=True))), test


def _records(folder: Path | None, number: int, verify: bool, side: int) -> _Images:
    dataset = DATASETS["cifar10"]
    file = dataset.files[number]
    found = np.frombuffer(read(dataset, file, folder, verify), dtype=np.uint8)
    path = None if folder is None else find(dataset, file, folder)
    if not len(found) or len(found) % _RECORD:
        raise unsound(dataset, path, f"an image has {_RECORD} bytes, and its {len(found)} are no multiple of it")
    records = torch.from_numpy(found.reshape(-1, _RECORD).copy())
    if int(records[:, 0].max()) > 9:
        raise unsound(dataset, path, f"a label is a digit, here one is {int(records[:, 0].max())}")
    colours = records[:, 1:].view(-1, 3, _SIDE, _SIDE).float()
    grey = (colours * torch.tensor(_GREY)[:, None, None]).sum(1) / 255
    small = grey if side == _SIDE else F.adaptive_avg_pool2d(grey, side)
    return _Images(((small - _MEAN) / _DEVIATION).flatten(1), records[:, 0].long())


def _refuse_pickles(folder: Path | None) -> None:
    """Raise one line where the Python version lies in the folder and the binary one does not."""
    dataset = DATASETS["cifar10"]
    if folder is None or find(dataset, dataset.files[0], folder) is not None:
        return
    for below in ("", "cifar-10-batches-py", *dataset.folders):
        if (folder / below / "data_batch_1").is_file():
            found = str(folder / below / "data_batch_1")
            raise UserError(
                f"{found!r} is a pickle, which can run code when it is opened, and is not read; {dataset.advice()}"
            )
