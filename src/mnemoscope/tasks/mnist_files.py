"""MNIST as arrays: read once, checked, kept while the process lives."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int64
from torch import Tensor

from mnemoscope.tasks.datasets import DATASETS, data_folder, find, read, unsound
from mnemoscope.tasks.reading import Damaged, idx_array

__all__ = ["PIXELS", "Images", "Order", "images"]

PIXELS = 28
"""Of a side."""

Order = Callable[[int], Int64[Tensor, " pixels"]]
"""Returns the pixels of an image, by its side, in the order in which they are read; to be compared by equality."""


class Images(NamedTuple):
    """Images (count, pixels) in 0..255, and their labels."""

    pixels: Tensor
    labels: Int64[Tensor, " count"]


def images(
    data: str | os.PathLike[str] | None, verify: bool, side: int = PIXELS, order: Order | None = None
) -> tuple[Images, Images]:
    """Return the training and the test images, averaged down to `side` x `side` where that is below 28.

    At 28 the pixels are bytes; below, numbers. `order` gives the order of the pixels for an image's side; row by row
    without it.
    """
    return _read(data_folder(data), verify, side, order)


@lru_cache(maxsize=3)
def _read(folder: Path | None, verify: bool, side: int, order: Order | None) -> tuple[Images, Images]:
    if order is not None:
        train, test = _read(folder, verify, side, None)
        places = order(side)
        return _ordered(train, places), _ordered(test, places)
    if side < PIXELS:
        train, test = _read(folder, verify, PIXELS, None)
        return _averaged(train, side), _averaged(test, side)
    arrays = [_array(folder, verify, which, axes) for which, axes in ((0, 3), (1, 1), (2, 3), (3, 1))]
    train, test = (_pair(folder, arrays[i], arrays[i + 1], i) for i in (0, 2))
    return train, test


def _array(folder: Path | None, verify: bool, which: int, axes: int) -> np.ndarray:
    dataset = DATASETS["mnist"]
    file = dataset.files[which]
    data = read(dataset, file, folder, verify)
    try:
        found = idx_array(data, axes)
        if axes == 3 and found.shape[1:] != (PIXELS, PIXELS):
            raise Damaged(f"an image has 28 x 28 pixels, here {' x '.join(map(str, found.shape[1:]))}")
        if axes == 1 and found.size and found.max() > 9:
            raise Damaged(f"a label is a digit, here one is {found.max()}")
    except Damaged as error:
        raise unsound(dataset, _path(folder, which), error) from error
    return found


def _pair(folder: Path | None, pixels: np.ndarray, labels: np.ndarray, which: int) -> Images:
    if len(pixels) != len(labels) or not len(pixels):
        why = f"{len(pixels)} images have {len(labels)} labels"
        raise unsound(DATASETS["mnist"], _path(folder, which), why)
    return Images(torch.from_numpy(pixels.reshape(len(pixels), -1).copy()), torch.from_numpy(labels.astype(np.int64)))


def _path(folder: Path | None, which: int) -> Path | None:
    dataset = DATASETS["mnist"]
    return None if folder is None else find(dataset, dataset.files[which], folder)


def _averaged(given: Images, side: int) -> Images:
    parts = torch.split(given.pixels, 5000)  # as numbers all images at once would be four times the bytes
    small = (F.adaptive_avg_pool2d(part.view(-1, PIXELS, PIXELS).float(), side).flatten(1) for part in parts)
    return Images(torch.cat(list(small)), given.labels)


def _ordered(given: Images, places: Int64[Tensor, " pixels"]) -> Images:
    return Images(given.pixels.index_select(1, places), given.labels)
