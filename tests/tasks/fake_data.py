"""Small files in the formats of all data sets but symbol images, for tests without the real ones."""

import gzip
import os
import struct
from pathlib import Path

import numpy as np

from mnemoscope.tasks.datasets import DATASETS, find

TRAIN, TEST = 120, 20


def is_there(name):
    """Say whether the real files of a data set are there, in the folder that MNEMOSCOPE_DATA names."""
    folder = os.environ.get("MNEMOSCOPE_DATA", "")
    dataset = DATASETS[name]
    return bool(folder) and all(find(dataset, file, Path(folder)) for file in dataset.files)


def idx(array):
    """Write an array of bytes as an idx file, from the format's description."""
    head = struct.pack(">I", 0x0800 + array.ndim) + b"".join(struct.pack(">I", size) for size in array.shape)
    return head + array.astype(np.uint8).tobytes()


def digits():
    """Return pixels and labels of training and test images, by file name."""
    random = np.random.default_rng(0)
    return {
        "train-images-idx3-ubyte": random.integers(0, 256, (TRAIN, 28, 28)),
        "train-labels-idx1-ubyte": random.integers(0, 10, TRAIN),
        "t10k-images-idx3-ubyte": random.integers(0, 256, (TEST, 28, 28)),
        "t10k-labels-idx1-ubyte": random.integers(0, 10, TEST),
    }


def sentences(count, seed):
    """Return lines of words, as in the treebank: a space before the first word and after the last."""
    random = np.random.default_rng(seed)
    words = ["the", "bank", "of", "<unk>", "said", "N", "shares", "fell", "a"]
    return "".join(f" {' '.join(random.choice(words, 6))} \n" for _ in range(count))


def photographs():
    """Return records of CIFAR-10, a label and red, green and blue pixels, by file name."""
    random = np.random.default_rng(5)
    names = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
    labels = {name: random.integers(0, 10, (10, 1)) for name in names}
    return {name: np.concatenate([labels[name], random.integers(0, 256, (10, 3072))], 1) for name in names}


def pairs(part):
    """Return lines of pairs: label, two identifiers, two texts."""
    random = np.random.default_rng(len(part))
    lines = [f"{random.integers(2)}.0\tA\tB\t{'ab ' * random.integers(1, 12)}\tsecond text\n" for _ in range(12)]
    return "".join(lines).encode()


def write_data(folder, compressed=True):
    """Write all files below a folder; images compressed or not."""
    (folder / "mnist").mkdir(parents=True)
    for name, array in digits().items():
        data = idx(array)
        path = folder / "mnist" / (name + (".gz" if compressed else ""))
        path.write_bytes(gzip.compress(data) if compressed else data)
    (folder / "tinyshakespeare").mkdir()
    (folder / "tinyshakespeare" / "input.txt").write_text(
        sentences(120, 9).replace(" \n", ",\n").replace("bank", "Böse")
    )
    (folder / "ptb").mkdir()
    for seed, (part, count) in enumerate({"train": 150, "valid": 40, "test": 30}.items()):
        (folder / "ptb" / f"ptb.{part}.txt").write_text(sentences(count, seed))
    (folder / "cifar10").mkdir()
    for name, records in photographs().items():
        (folder / "cifar10" / name).write_bytes(records.astype(np.uint8).tobytes())
    (folder / "aan").mkdir()
    for part in ("train", "eval", "test"):
        (folder / "aan" / f"new_aan_pairs.{part}.tsv").write_bytes(pairs(part))
    return folder
