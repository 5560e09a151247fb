"""Files that tasks read, with their source, licence and soundness.

Nothing is downloaded: the user names a folder, by ``data=`` or the environment variable MNEMOSCOPE_DATA.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import UserError, expected
from mnemoscope.tasks.reading import Damaged, content, pictures

__all__ = ["DATASETS", "VARIABLE", "DataFile", "Dataset", "data_folder", "find", "is_there", "read", "state"]

VARIABLE = "MNEMOSCOPE_DATA"


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    Attributes
    ----------
    name
        As it is published, without ``.gz``.
    size
        Of the content in bytes; None where nobody has published it.
    sha256
        Of the content, where we have seen it.
    others
        Other names under which people keep it.
    folder
        Whether it is a folder of PNG images; its content is then that of all of them, in the order of their numbers.
    """

    name: str
    size: int | None
    sha256: str | None = None
    others: tuple[str, ...] = ()
    folder: bool = False


@dataclass(frozen=True)
class Dataset:
    """A set of files with its source and licence; `folders` are where it is looked for below the data folder."""

    name: str
    title: str
    files: tuple[DataFile, ...]
    folders: tuple[str, ...]
    source: str
    licence: str
    tasks: tuple[str, ...]

    def advice(self) -> str:
        """Say where to get it, in half a line."""
        return f"get {self.title} from {self.source} (licence: {self.licence})"


def _idx(name: str, size: int, sha256: str) -> DataFile:
    return DataFile(name, size, sha256, (name.replace("-idx", ".idx"),))


_MNIST = Dataset(
    "mnist",
    "MNIST",
    (
        _idx("train-images-idx3-ubyte", 47040016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        _idx("train-labels-idx1-ubyte", 60008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
        _idx("t10k-images-idx3-ubyte", 7840016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
        _idx("t10k-labels-idx1-ubyte", 10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
    ),
    ("mnist", "MNIST", "MNIST/raw"),
    "https://ossci-datasets.s3.amazonaws.com/mnist/ (a mirror of http://yann.lecun.com/exdb/mnist/)",
    "CC BY-SA 3.0",
    ("mnist", "pmnist", "smnist"),
)
_SHAKESPEARE = Dataset(
    "tinyshakespeare",
    "Tiny Shakespeare",
    (
        DataFile(
            "input.txt",
            1115394,
            "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            ("tinyshakespeare.txt", "shakespeare.txt"),
        ),
    ),
    ("tinyshakespeare", "shakespeare"),
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
    "public domain",
    ("shakespeare",),
)
_PTB = Dataset(
    "ptb",
    "Penn Treebank",
    tuple(
        DataFile(f"ptb.{part}.txt", size, None, (f"ptb.char.{part}.txt",))
        for part, size in (("train", 5101618), ("valid", 399782), ("test", 449945))
    ),
    ("ptb", "penn", "penn-treebank", "simple-examples/data"),
    "https://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz, folder data",
    "LDC User Agreement, LDC99T42",
    ("ptb",),
)
_SYMBOLS = Dataset(
    "symbols",
    "symbol images of relational tasks",
    (
        DataFile(
            "imgs", 33166, "4e2f5e88acf322a563b9a96a854b6d893e4befff9ec26b7f53f912c2f5857c3c", ("symbols",), folder=True
        ),
    ),
    ("esbn_imgs", "esbn"),
    "https://github.com/taylorwwebb/emergent_symbols, folder imgs, or any 100 distinct PNG images of 32 x 32 pixels; "
    "without them tasks draw shapes of their own",
    "Apache 2.0",
    (
        *("comparison", "dist-n", "dist-n-restricted", "dist3", "identity-rules", "identity-rules-4"),
        *("identity-rules-4-flipped", "identity-rules-4-flipped-missing", "identity-rules-4-missing", "rmts", "rmts-3"),
        *("same-different", "same-different-6", "separated-inputs", "transitive-comparison"),
    ),
)
_CIFAR = Dataset(
    "cifar10",
    "CIFAR-10 (binary version)",
    tuple(DataFile(f"{name}.bin", 30_730_000) for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")),
    ("cifar-10-batches-bin", "cifar10", "cifar-10"),
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "none stated; cite Krizhevsky 2009",
    ("scifar",),
)
_AAN = Dataset(
    "aan",
    "ACL Anthology Network pairs",
    tuple(DataFile(f"new_aan_pairs.{part}.tsv", None) for part in ("train", "eval", "test")),
    ("aan", "tsv_data", "lra_release/tsv_data", "lra_release/lra_release/tsv_data"),
    "https://storage.googleapis.com/long-range-arena/lra_release.gz, folder tsv_data",
    "see the terms of the ACL Anthology Network",
    ("retrieval",),
)

DATASETS = {dataset.name: dataset for dataset in (_MNIST, _SHAKESPEARE, _PTB, _SYMBOLS, _CIFAR, _AAN)}
"""Every data set by its name."""


def data_folder(given: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder of the data: the one given, else that of MNEMOSCOPE_DATA, else None."""
    named = given if given is not None else os.environ.get(VARIABLE) or None
    if named is None:
        return None
    if not isinstance(named, str | os.PathLike):
        raise expected("data", "the path of a folder", named)
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise expected("the data folder", "a folder that exists", str(named))
    return folder


def find(dataset: Dataset, file: DataFile, folder: Path) -> Path | None:
    """Return where a file is, compressed or not, in the folder or in one of the set's own below it."""
    names = [name + ending for name in (file.name, *file.others) for ending in ("", ".gz")]
    places = (folder / below / name for below in ("", *dataset.folders) for name in names)
    return next((place for place in places if (place.is_dir() if file.folder else place.is_file())), None)


def is_there(name: str) -> bool:
    """Return whether all files of a data set are in the folder that MNEMOSCOPE_DATA names."""
    folder = data_folder(None)
    return folder is not None and all(find(DATASETS[name], file, folder) for file in DATASETS[name].files)


def read(dataset: Dataset, file: DataFile, folder: Path | None, verify: bool) -> bytes:
    """Return the content of a file, or raise one line that says what is wrong and where to get the file."""
    if folder is None:
        how = f"name their folder with data=, --data or {VARIABLE}"
        raise UserError(f"the files of {dataset.title} are needed: {how}; {dataset.advice()}")
    path = find(dataset, file, folder)
    if path is None:
        raise UserError(f"there is no {file.name} in {str(folder)!r}; {dataset.advice()}")
    try:
        found = content(path)
        if verify and (why := _difference(file, path, found)):
            raise Damaged(f"it is not the published one ({why})")
    except Damaged as error:
        raise unsound(dataset, path, error) from error
    return found


def _difference(file: DataFile, path: Path, found: bytes) -> str:
    """Say in what a content differs from the published one, as far as that is known; nothing when it does not."""
    if file.sha256 is not None:
        digest = hashlib.sha256(found).hexdigest()
        return "" if digest == file.sha256 else f"SHA-256 {digest[:16]}.."
    # A copy of another name, with its characters set apart, has a size of its own.
    published = file.size is None or len(found) == file.size or path.name.removesuffix(".gz") != file.name
    return "" if published else f"{len(found)} bytes instead of {file.size}"


def unsound(dataset: Dataset, path: Any, why: object) -> UserError:
    """Build the error of a file that cannot be used."""
    return UserError(f"{str(path)!r} cannot be used: {why}; {dataset.advice()}")


def state(dataset: Dataset, file: DataFile, folder: Path | None) -> tuple[str, Path | None]:
    """Say of a file whether it is ``"missing"``, ``"checked"``, ``"not checked"``, ``"altered"`` or ``"damaged"``.

    Checked: its SHA-256 is the published one's. Not checked: we know its size only, and that is right, or not even
    that. Altered: another SHA-256, or another size.
    """
    path = None if folder is None else find(dataset, file, folder)
    if path is None:
        return "missing", None
    if file.size is None:
        return "not checked", path
    try:
        found = b"".join(image for _, image in pictures(path)) if file.folder else content(path)
    except Damaged:
        return "damaged", path
    if _difference(file, path, found):
        return "altered", path
    return ("not checked" if file.sha256 is None else "checked"), path
