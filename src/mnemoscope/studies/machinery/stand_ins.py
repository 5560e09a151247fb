"""Stand-ins for data sets: small drawn ones in the files' own formats, so that a smoke test needs no data of a user."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.core.files import make_folder, write_atomic
from mnemoscope.tasks import get
from mnemoscope.tasks.datasets import DATASETS

__all__ = ["stand_in"]

_IMAGES = (600, 100)
_LETTERS = 24_000
_WORDS = "the and of to my in that is not with it for his be your he as this but me so will what by our are do"


def stand_in(task: str, folder: Path) -> dict[str, Any]:
    """Write a drawn data set for a task into a folder, and return the task's settings that read it.

    Digits are ten fixed patterns with noise, texts are random words; of tasks that read no files nothing is written.

    Examples
    --------
    >>> stand_in("parity", Path())
    {}
    """
    dataset = getattr(get(task), "dataset", None)
    if dataset is None:
        return {}
    make_folder(folder / dataset)
    files = _digits() if dataset == "mnist" else [_text() for _ in DATASETS[dataset].files]
    for file, content in zip(DATASETS[dataset].files, files, strict=True):
        write_atomic(folder / dataset / file.name, content)
    return {"data": str(folder), "verify": False}


def _digits() -> list[bytes]:
    drawn = np.random.default_rng(0)
    patterns = 255 * np.kron(drawn.random((10, 7, 7)) > 0.6, np.ones((4, 4)))
    found = []
    for count in _IMAGES:
        labels = drawn.integers(10, size=count)
        pixels = np.clip(patterns[labels] + drawn.normal(0, 30, (count, 28, 28)), 0, 255)
        found += [_idx(pixels.astype(np.uint8)), _idx(labels.astype(np.uint8))]
    return found


def _idx(values: np.ndarray) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
    return gzip.compress(bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes(), mtime=0)


def _text() -> bytes:
    drawn = np.random.default_rng(0)
    text = " ".join(drawn.choice(_WORDS.split(), size=_LETTERS // 4))
    return text[:_LETTERS].encode()
