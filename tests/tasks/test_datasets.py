"""Files of the user: where they are looked for, and what is said of those that are missing or damaged."""

import gzip
import hashlib

import numpy as np
import pytest
from tests.tasks.fake_data import digits, idx, write_data

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.tasks.datasets import DATASETS, Dataset, data_folder, find, read, state
from mnemoscope.tasks.reading import LIMIT, Damaged, content, idx_array

MNIST = DATASETS["mnist"]


def line_of(call):
    with pytest.raises(UserError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def smnist(folder, verify=False):
    return ms.tasks.create("smnist", data=str(folder), verify=verify).sample(2)


@pytest.mark.parametrize("compressed", [True, False])
def test_compressed_or_not(tmp_path, compressed):
    folder = write_data(tmp_path / "data", compressed)
    batch = ms.tasks.create("smnist", data=str(folder), verify=False).splits().test
    assert (batch.inputs[:, 0, 0] * 255).round().tolist() == digits()["t10k-images-idx3-ubyte"][0].ravel().tolist()


@pytest.mark.parametrize("below", ["", "mnist", "MNIST", "MNIST/raw"])
@pytest.mark.parametrize("dotted", [True, False])
def test_usual_places_and_names(tmp_path, below, dotted):
    (tmp_path / below).mkdir(parents=True, exist_ok=True)
    for name, array in digits().items():
        (tmp_path / below / (name.replace("-idx", ".idx") if dotted else name)).write_bytes(idx(array))
    assert smnist(tmp_path).size == 2


def test_the_environment_names_the_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("MNEMOSCOPE_DATA", raising=False)
    line = line_of(lambda: ms.tasks.create("smnist").sample(1))
    assert line.startswith(
        "the files of MNIST are needed: name their folder with data=, --data or MNEMOSCOPE_DATA; get"
    )
    assert "https://" in line
    assert "licence: CC BY-SA 3.0" in line
    monkeypatch.setenv("MNEMOSCOPE_DATA", str(write_data(tmp_path / "data")))
    assert ms.tasks.create("smnist", verify=False).sample(1).size == 1
    monkeypatch.setenv("MNEMOSCOPE_DATA", str(tmp_path / "nowhere"))
    assert line_of(lambda: ms.tasks.create("ptb").sample(1)).startswith(
        "the data folder must be a folder that exists, got"
    )
    monkeypatch.setenv("MNEMOSCOPE_DATA", "")
    assert data_folder(None) is None


def test_a_missing_file_is_named_with_its_source(tmp_path):
    line = line_of(lambda: ms.tasks.create("ptb", data=str(tmp_path)).sample(1))
    assert line.startswith(f"there is no ptb.train.txt in {str(tmp_path)!r}; get Penn Treebank from https://")
    assert line.endswith("(licence: LDC User Agreement, LDC99T42)")


def test_another_file_than_the_published_is_refused_unless_asked_for(tmp_path):
    folder = write_data(tmp_path / "data")
    line = line_of(lambda: smnist(folder, verify=True))
    digest = hashlib.sha256(idx(digits()["train-images-idx3-ubyte"])).hexdigest()
    assert f"cannot be used: it is not the published one (SHA-256 {digest[:16]}..); get MNIST" in line
    assert smnist(folder, verify=False).size == 2


def test_the_treebank_is_checked_by_size(tmp_path):
    folder = write_data(tmp_path / "data")
    size = (folder / "ptb" / "ptb.train.txt").stat().st_size
    line = line_of(lambda: ms.tasks.create("ptb", data=str(folder)).sample(1))
    assert f"it is not the published one ({size} bytes instead of 5101618); get Penn Treebank" in line


def spoil(folder, name, data):
    path = folder / "mnist" / f"{name}.gz"
    path.write_bytes(data)
    return path


def images(count=120, shape=(28, 28)):
    return idx(np.zeros((count, *shape)))


CASES = {
    "cut off": (lambda whole: gzip.compress(whole)[:-20], "the compressed file is cut off"),
    "flipped": (lambda whole: gzip.compress(whole)[:60] + b"\x00" * 50 + gzip.compress(whole)[110:], "damaged"),
    "short": (lambda whole: whole[:-7], "its head announces 94080 bytes, and 94073 follow"),
    "long": (lambda whole: whole + b"x", "its head announces 94080 bytes, and 94081 follow"),
    "empty": (lambda whole: b"", "an idx file has a head of 16 bytes, this one has 0 in all"),
    "labels": (lambda whole: idx(np.zeros(120)), "an idx file of 3 axes begins with 2051, got 2049"),
    "html": (lambda whole: b"<!DOCTYPE html><html>not found</html>", "an idx file of 3 axes begins with 2051, got"),
    "huge": (
        lambda whole: b"\x00\x00\x08\x03" + b"\xff" * 12,
        "its head announces 79228162458924105385300197375 bytes",
    ),
    "small": (lambda whole: images(shape=(20, 20)), "an image has 28 x 28 pixels, here 20 x 20"),
    "fewer": (lambda whole: images(3), "3 images have 120 labels"),
    "none": (lambda whole: images(0), "0 images have 120 labels"),
}


@pytest.mark.parametrize("case", CASES)
def test_damaged_images_are_one_line(tmp_path, case):
    change, words = CASES[case]
    folder = write_data(tmp_path / "data")
    path = spoil(folder, "train-images-idx3-ubyte", change(idx(digits()["train-images-idx3-ubyte"])))
    line = line_of(lambda: smnist(folder))
    assert line.startswith(f"{str(path)!r} cannot be used: ")
    assert words in line
    assert "get MNIST from https://" in line


def test_labels_are_digits(tmp_path):
    folder = write_data(tmp_path / "data")
    spoil(folder, "t10k-labels-idx1-ubyte", idx(np.full(20, 10)))
    assert "a label is a digit, here one is 10" in line_of(lambda: smnist(folder))


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"\xff\xfe" * 100, "it is not text in UTF-8 (byte 0)"), (b"short", "it has 5 characters only")],
)
def test_damaged_text_is_one_line(tmp_path, data, words):
    (tmp_path / "input.txt").write_bytes(data)
    line = line_of(lambda: ms.tasks.create("shakespeare", data=str(tmp_path), verify=False).sample(1))
    assert words in line


def test_too_many_characters(tmp_path):
    (tmp_path / "input.txt").write_text("".join(chr(0x4E00 + i) for i in range(300)))
    line = line_of(lambda: ms.tasks.create("shakespeare", data=str(tmp_path), verify=False).sample(1))
    assert "it has 300 different characters, more than 256" in line


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("mnemoscope.tasks.reading.LIMIT", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(1 << 24)))
    with pytest.raises(Damaged, match="more than"):
        content(path)
    assert LIMIT > 47_040_016


def test_an_unreadable_file(tmp_path):
    with pytest.raises(Damaged, match="directory"):
        content(tmp_path)


def test_idx_keeps_the_order_of_axes():
    array = np.arange(24).reshape(2, 3, 4)
    assert (idx_array(idx(array), 3) == array).all()
    assert (idx_array(idx(np.arange(9)), 1) == np.arange(9)).all()


def test_published_sizes_and_digests_are_well_formed():
    for dataset in DATASETS.values():
        assert set(dataset.tasks) == {name for name in ms.tasks.names() if ms.tasks.get(name).dataset == dataset.name}
        for file in dataset.files:
            assert file.sha256 is None or len(bytes.fromhex(file.sha256)) == 32
    assert [file.size for file in MNIST.files] == [16 + 60_000 * 784, 8 + 60_000, 16 + 10_000 * 784, 8 + 10_000]


def test_states(tmp_path):
    folder = write_data(tmp_path / "data")
    file = MNIST.files[0]
    assert state(MNIST, file, None) == ("missing", None)
    assert state(MNIST, file, tmp_path) == ("missing", None)
    path = folder / "mnist" / "train-images-idx3-ubyte.gz"
    assert state(MNIST, file, folder) == ("altered", path)
    assert find(MNIST, file, folder) == path
    path.write_bytes(path.read_bytes()[:-9])
    assert state(MNIST, file, folder) == ("damaged", path)
    known = Dataset(**{**vars(MNIST), "files": (type(file)("a.txt", 3, hashlib.sha256(b"abc").hexdigest()),)})
    (tmp_path / "a.txt").write_text("abc")
    assert state(known, known.files[0], tmp_path)[0] == "checked"
    assert read(known, known.files[0], tmp_path, True) == b"abc"
    unknown = Dataset(**{**vars(MNIST), "files": (type(file)("a.txt", 3, None),)})
    assert state(unknown, unknown.files[0], tmp_path)[0] == "not checked"
    (tmp_path / "a.txt").write_text("abcd")
    assert state(unknown, unknown.files[0], tmp_path)[0] == "altered"
