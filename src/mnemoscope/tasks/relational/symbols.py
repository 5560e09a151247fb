"""The hundred symbols of relational tasks: the user's images, or shapes of our own."""

from __future__ import annotations

import io
import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import UserError
from mnemoscope.tasks.datasets import DATASETS, data_folder, find
from mnemoscope.tasks.reading import Damaged, pictures
from mnemoscope.tasks.relational.shapes import SIDE, drawn_shapes

__all__ = ["SOURCES", "SYMBOLS", "available", "symbols"]

SYMBOLS = 100

SOURCES = ("files", "own")


def available(data: str | os.PathLike[str] | None) -> str:
    """Return where the symbols come from by default: ``"files"`` when the data folder has them, else ``"own"``."""
    folder = data_folder(data)
    dataset = DATASETS["symbols"]
    return "own" if folder is None or find(dataset, dataset.files[0], folder) is None else "files"


def symbols(source: str, data: str | os.PathLike[str] | None) -> Float[Tensor, "100 3 32 32"]:
    """Return the images in [0, 1], black on white, in three equal channels.

    Parameters
    ----------
    source
        ``"files"`` or ``"own"``.
    data
        The data folder; by default that of MNEMOSCOPE_DATA.
    """
    return _images(data_folder(data) if source == "files" else None, source)


@lru_cache(maxsize=4)
def _images(folder: Path | None, source: str) -> Tensor:
    grey = drawn_shapes() if source == "own" else _read(folder)
    return (torch.from_numpy(grey).float() / 255).unsqueeze(1).expand(-1, 3, -1, -1).contiguous()


def _read(folder: Path | None) -> np.ndarray:
    dataset = DATASETS["symbols"]
    place = None if folder is None else find(dataset, dataset.files[0], folder)
    if place is None:
        raise UserError(f"there is no folder of symbol images in {str(folder)!r}; {dataset.advice()}")
    try:
        found = [(name, _grey(name, content)) for name, content in pictures(place)]
        if len(found) < SYMBOLS:
            raise Damaged(f"it has {len(found)} images, and {SYMBOLS} are needed")
        seen: dict[bytes, str] = {}
        for name, image in found[:SYMBOLS]:
            if (other := seen.setdefault(image.tobytes(), name)) != name:
                raise Damaged(f"{other} and {name} are the same image")
    except Damaged as error:
        raise UserError(f"the images in {str(place)!r} cannot be used: {error}") from error
    return np.stack([image for _, image in found[:SYMBOLS]])


def _grey(name: str, content: bytes) -> np.ndarray:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
            # Before its pixels are read: a small file can announce a huge image.
            if image.size != (SIDE, SIDE):
                raise Damaged(f"{name} has {image.size[0]} x {image.size[1]} pixels, and {SIDE} x {SIDE} are needed")
            return np.asarray(image.convert("L"))
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise Damaged(f"{name} is no PNG image that can be read ({error})") from error
