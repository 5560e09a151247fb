"""Retrieval: pairs of documents, byte by byte, linked by a citation or not."""

from __future__ import annotations

import gzip
import io
import math
import os
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.tasks.base import Task
from mnemoscope.tasks.batch import Batch, Splits, place
from mnemoscope.tasks.checks import true_or_false
from mnemoscope.tasks.datasets import DATASETS, VARIABLE, Dataset, data_folder, find, unsound
from mnemoscope.tasks.registry import task

__all__ = ["Retrieval"]

_BYTES = 256
_LONGEST = 1 << 24
"""Bytes of a line, beyond which a file is none of these."""


class _Pairs(NamedTuple):
    """Documents (count, 2, length) as bytes, zero behind their ends; their lengths (count, 2); labels (count,)."""

    texts: UInt8[Tensor, "count 2 length"]
    lengths: Int64[Tensor, "count 2"]
    labels: Int64[Tensor, " count"]


@task("retrieval")
@dataclass(frozen=True)
class Retrieval(Task):
    """Say whether two papers are linked by a citation, from their texts, byte by byte.

    Both documents go through one network as a batch of 2B; each is pooled by the mean over its steps to a vector, a and
    b, and [a, b, a b, a - b] goes to the readout: two logits for a pair. Inputs (time, batch, 2) are bytes, to embed,
    lengths (batch, 2); a document is cut to `length`. The baseline is the entropy of the labels, the score the
    accuracy.

    Parameters
    ----------
    length
        Bytes of a document that are read.
    data
        The data folder; by default that of MNEMOSCOPE_DATA.
    verify
        Whether the files must have 147,086, 18,090 and 17,437 pairs; false for others of the same format.

    Notes
    -----
    Files: new_aan_pairs.train.tsv, .eval.tsv and .test.tsv of the Long Range Arena, one pair a line, tabs between
    label, two identifiers and two texts.
    """

    length: int = 4000
    data: str | None = field(default=None, compare=False)
    verify: bool = True

    kind: ClassVar[str] = "pairs"
    difficulty: ClassVar[str] = "length"
    naive: ClassVar[str] = "entropy of the labels"
    baseline_is: ClassVar[str] = "by frequencies alone"
    dataset: ClassVar[str | None] = "aan"
    references: ClassVar[tuple[str, ...]] = ("radev2013", "tay2021")
    embedding_size: ClassVar[int] = 128

    def __post_init__(self) -> None:
        """Check the settings."""
        positive_int("length", self.length)
        if self.data is not None and not isinstance(self.data, str | os.PathLike):
            raise expected("data", "the path of a folder", self.data)
        true_or_false("verify", self.verify)

    @property
    def steps(self) -> int:
        """Bytes of the longest document."""
        return self.length

    @property
    def input_size(self) -> int:
        """The bytes."""
        return _BYTES

    @property
    def output_size(self) -> int:
        """Linked, or not."""
        return 2

    @property
    def embedding(self) -> int:
        """The bytes."""
        return _BYTES

    @property
    def baseline(self) -> float:
        """The entropy of the labels of the training pairs."""
        share = float(self._pairs("train").labels.double().mean())
        return -sum(part * math.log(part) for part in (share, 1 - share) if part > 0)

    @property
    def memoryless(self) -> None:
        """What single bytes tell is not known."""
        return None

    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw training pairs, with replacement."""
        where, train = place(generator), self._pairs("train")
        which = torch.randint(len(train.labels), (batch,), generator=generator, device=where).cpu()
        drawn = _batch(_Pairs(*(part[which] for part in train)))
        return drawn._replace(inputs=drawn.inputs.long().contiguous()).to(where)

    def splits(self, seed: int = 0) -> Splits:
        """Return the pairs of the three files, which no seed changes; as bytes, to be embedded as they are."""
        return Splits(*(_batch(self._pairs(part)) for part in ("train", "eval", "test")))

    def glyphs(self) -> tuple[list[str], list[str]]:
        """The bytes as characters, what cannot be written as a dot; whether the papers are linked."""
        return [chr(code) if 32 < code < 127 else "␣" if code == 32 else "·" for code in range(_BYTES)], ["no", "yes"]

    def _pairs(self, part: str) -> _Pairs:
        return _read(data_folder(self.data), part, self.length, self.verify)


def _batch(pairs: _Pairs) -> Batch:
    """Return pairs with the answer asked for when the longest document could have been read."""
    inputs = pairs.texts.permute(2, 0, 1)
    mask = torch.zeros(len(inputs), 1, dtype=torch.bool)
    mask[-1] = True
    return Batch(inputs, pairs.labels, mask.expand(-1, len(pairs.labels)), pairs.lengths)


_COUNTS = {"train": 147_086, "eval": 18_090, "test": 17_437}


@lru_cache(maxsize=6)
def _read(folder: Path | None, part: str, length: int, verify: bool) -> _Pairs:
    """Read a file in two passes, one to count its lines and one to take them, since it is too large to be held."""
    dataset = DATASETS["aan"]
    file = dataset.files[list(_COUNTS).index(part)]
    if folder is None:
        how = f"name their folder with data=, --data or {VARIABLE}"
        raise UserError(f"the files of {dataset.title} are needed: {how}; {dataset.advice()}")
    path = find(dataset, file, folder)
    if path is None:
        raise UserError(f"there is no {file.name} in {str(folder)!r}; {dataset.advice()}")
    try:
        with _opened(path) as stream:
            count = sum(1 for _ in iter(lambda: stream.readline(_LONGEST), b""))
        if verify and count != _COUNTS[part]:
            raise unsound(dataset, path, f"it has {count} pairs instead of {_COUNTS[part]}")
        texts, lengths = np.zeros((count, 2, length), np.uint8), np.ones((count, 2), np.int64)
        labels = np.zeros(count, np.int64)
        with _opened(path) as stream:
            for number, line in enumerate(iter(lambda: stream.readline(_LONGEST), b"")):
                labels[number] = _take(dataset, path, number, line, texts[number], lengths[number])
    except (OSError, EOFError, zlib.error) as error:
        raise unsound(dataset, path, getattr(error, "strerror", None) or error) from error
    if not count:
        raise unsound(dataset, path, "it is empty")
    return _Pairs(*(torch.from_numpy(array) for array in (texts, lengths, labels)))


def _opened(path: Path) -> gzip.GzipFile | io.BufferedReader:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _take(dataset: Dataset, path: Path, number: int, line: bytes, texts: np.ndarray, lengths: np.ndarray) -> int:
    """Write the two texts of a line, cut, into their places, and return its label."""
    fields = line.rstrip(b"\r\n").split(b"\t")
    if len(fields) != 5:
        raise unsound(
            dataset, path, f"line {number + 1} has {len(fields)} fields instead of 5: label, two ids, two texts"
        )
    if fields[0] not in (b"0", b"1", b"0.0", b"1.0"):
        raise unsound(dataset, path, f"the label of line {number + 1} is {fields[0][:20]!r} instead of 0 or 1")
    for which, text in enumerate(fields[3:]):
        kept = np.frombuffer(text[: texts.shape[1]], np.uint8)
        texts[which, : len(kept)] = kept
        lengths[which] = max(len(kept), 1)
    return int(fields[0][:1])
