"""Texts as numbers of characters: read once, checked, kept while the process lives."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from mnemoscope.tasks.datasets import DATASETS, Dataset, data_folder, find, read, unsound
from mnemoscope.tasks.reading import Damaged

__all__ = ["Corpus", "corpus"]

SHARES = (0.8, 0.1)
"""Of a text in one file: to train, to validate; the rest to test."""


class Corpus(NamedTuple):
    """A text in three parts, as numbers into a vocabulary of characters.

    `entropy` is that of a training character in nats, `conditional` that of one whose predecessor is known.
    """

    train: UInt8[Tensor, " characters"]
    validation: UInt8[Tensor, " characters"]
    test: UInt8[Tensor, " characters"]
    vocabulary: str
    entropy: float
    conditional: float


def corpus(name: str, data: str | os.PathLike[str] | None, verify: bool) -> Corpus:
    """Return the text of a data set: three files, or one that is cut into 0.8, 0.1 and 0.1 of its length."""
    return _read(name, data_folder(data), verify)


@lru_cache(maxsize=4)
def _read(name: str, folder: Path | None, verify: bool) -> Corpus:
    dataset = DATASETS[name]
    texts = [_text(dataset, which, folder, verify) for which in range(len(dataset.files))]
    if len(texts) == 1:
        texts = _cut(texts[0])
    vocabulary = "".join(sorted(set().union(*texts) if len(dataset.files) == 1 else set(texts[0])))
    try:
        if len(vocabulary) > 256:
            raise Damaged(f"it has {len(vocabulary)} different characters, more than 256")
        train, validation, test = (_numbers(text, vocabulary) for text in texts)
        return Corpus(train, validation, test, vocabulary, _entropy(train), _conditional(train))
    except Damaged as error:
        raise unsound(dataset, folder, error) from error


def _text(dataset: Dataset, which: int, folder: Path | None, verify: bool) -> str:
    file = dataset.files[which]
    data = read(dataset, file, folder, verify)
    path = None if folder is None else find(dataset, file, folder)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise unsound(dataset, path, f"it is not text in UTF-8 (byte {error.start})") from error
    if len(text) < 100:
        raise unsound(dataset, path, f"it has {len(text)} characters only")
    return _treebank(text) if dataset.name == "ptb" else text


def _treebank(text: str) -> str:
    """Return sentences, one a line, without spaces at the ends; characters set apart by spaces are put together."""
    if set(text.partition("\n")[0].strip()[1::2]) == {" "}:
        text = text.replace(" ", "").replace("_", " ")
    return "\n".join(line.strip() for line in text.strip().splitlines()) + "\n"


def _entropy(text: Tensor) -> float:
    counts = torch.bincount(text).double()
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * shares.log()).sum())


def _conditional(text: Tensor) -> float:
    """Return H(pairs) - H(first of a pair)."""
    pairs = text[:-1].long() * 256 + text[1:].long()
    return _entropy(pairs) - _entropy(text[:-1])


def _cut(text: str) -> list[str]:
    first = int(SHARES[0] * len(text))
    second = first + int(SHARES[1] * len(text))
    return [text[:first], text[first:second], text[second:]]


def _numbers(text: str, vocabulary: str) -> Tensor:
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    known = np.frombuffer(vocabulary.encode("utf-32-le"), dtype=np.uint32)
    found = np.searchsorted(known, points).clip(max=len(known) - 1)
    strange = points[known[found] != points]
    if len(strange):
        raise Damaged(f"the character {chr(int(strange[0]))!r} does not occur in the training text")
    return torch.from_numpy(found.astype(np.uint8))
