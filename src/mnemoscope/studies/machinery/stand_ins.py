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
_PAIRS = (4000, 500, 1000)
_LETTERS = 24_000
_WORDS = "the and of to my in that is not with it for his be your he as this but me so will what by our are do"


def stand_in(task: str, folder: Path) -> dict[str, Any]:
    """Write a drawn data set for a task into a folder, and return the task's settings that read it.

    Digits and photographs are ten fixed patterns with noise, texts are random words, pairs of texts are linked where
    both are about one subject; of tasks that read no files nothing is written.

    Examples
    --------
    >>> stand_in("parity", Path())
    {}
    """
    dataset = getattr(get(task), "dataset", None)
    if dataset is None:
        return {}
    make_folder(folder / dataset)
    drawn = {"mnist": _digits, "cifar10": _photographs, "aan": _pairs}
    files = drawn[dataset]() if dataset in drawn else [_text() for _ in DATASETS[dataset].files]
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


def _photographs() -> list[bytes]:
    drawn = np.random.default_rng(0)
    patterns = 255 * np.kron(drawn.random((10, 3, 8, 8)) > 0.6, np.ones((4, 4)))
    found = []
    for _ in DATASETS["cifar10"].files:
        labels = drawn.integers(10, size=_IMAGES[1])
        pixels = np.clip(patterns[labels] + drawn.normal(0, 60, (len(labels), 3, 32, 32)), 0, 255)
        records = np.concatenate([labels[:, None], pixels.reshape(len(labels), -1)], 1)
        found.append(records.astype(np.uint8).tobytes())
    return found


def _pairs() -> list[bytes]:
    """Draw pairs of texts, half of their words those of one of eight subjects; linked: of the same one."""
    drawn = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    subjects = np.array([["".join(drawn.choice(letters, 5)) for _ in range(4)] for _ in range(8)])
    return [b"".join(_pair(drawn, subjects) for _ in range(count)) for count in _PAIRS]


def _pair(drawn: np.random.Generator, subjects: np.ndarray) -> bytes:
    first, other = drawn.choice(len(subjects), 2, replace=False)
    linked = bool(drawn.integers(2))
    texts = []
    for subject in (first, first if linked else other):
        own, plain = drawn.choice(subjects[subject], 20), drawn.choice(_WORDS.split(), 20)
        texts.append(" ".join(np.where(drawn.random(20) < 0.5, own, plain)))
    return f"{float(linked)}\tA\tB\t{texts[0]}\t{texts[1]}\n".encode()


def _text() -> bytes:
    drawn = np.random.default_rng(0)
    text = " ".join(drawn.choice(_WORDS.split(), size=_LETTERS // 4))
    return text[:_LETTERS].encode()
