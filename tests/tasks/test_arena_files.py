"""CIFAR-10 and pairs of papers from the user's files: by plain loops, and one line for what is wrong with them."""

import gzip
import pickle

import numpy as np
import pytest
import torch
from tests.tasks.fake_data import pairs, photographs, write_data

import mnemoscope as ms
from mnemoscope.core.errors import UserError


def line_of(call):
    with pytest.raises(UserError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def scifar(folder, **settings):
    return ms.tasks.create("scifar", data=str(folder), **({"verify": False} | settings))


def retrieval(folder, **settings):
    return ms.tasks.create("retrieval", data=str(folder), **({"verify": False, "length": 20} | settings))


def test_grey_pixels_row_by_row(data):
    sets = scifar(data).splits()
    assert [one.size for one in sets] == [45, 5, 10]
    record = photographs()["data_batch_2.bin"][3].astype(float)
    red, green, blue = record[1:].reshape(3, 32, 32) / 255
    sequence, label = sets.train.inputs[:, 13, 0], sets.train.targets[13]
    assert int(label) == int(record[0])
    for place in (0, 1, 33, 1023):
        y, x = divmod(place, 32)
        grey = 0.2989 * red[y, x] + 0.587 * green[y, x] + 0.114 * blue[y, x]
        assert float(sequence[place]) == pytest.approx((grey - 0.4809) / 0.2392, abs=1e-5)
    assert torch.equal(sets.validation.targets, torch.tensor(photographs()["data_batch_5.bin"][5:, 0]))
    small = scifar(data, side=16).splits().test.inputs[:, 0, 0].view(16, 16)
    whole = sets.test.inputs[:, 0, 0].view(32, 32)
    assert float(small[0, 0]) == pytest.approx(float(whole[:2, :2].mean()), abs=1e-5)


@pytest.mark.slow
def test_photographs_as_the_archive_unpacks_them(tmp_path):
    """Six files of 10,000 records in cifar-10-batches-bin, beside what else the archive holds."""
    folder, draw = tmp_path / "cifar-10-batches-bin", np.random.default_rng(1)
    folder.mkdir()
    (folder / "batches.meta.txt").write_text("airplane\nautomobile\n")
    (folder / "readme.html").write_text("<html>")
    for name in photographs():
        records = draw.integers(0, 256, (10_000, 3073), dtype=np.uint8)
        records[:, 0] = np.arange(10_000) % 10
        (folder / name).write_bytes(records.tobytes())
    sets = scifar(tmp_path, verify=True, side=4).splits()
    assert [one.size for one in sets] == [45_000, 5_000, 10_000]
    assert torch.equal(sets.validation.targets, torch.arange(5_000) % 10)
    assert sets.train.inputs.shape == (16, 45_000, 1)
    assert abs(float(sets.train.inputs.mean()) - (0.5 - 0.4809) / 0.2392) < 0.01
    (folder / "test_batch.bin").write_bytes(records[:-1].tobytes())
    assert "(30726927 bytes instead of 30730000)" in line_of(lambda: scifar(tmp_path, verify=True, side=5).sample(1))


@pytest.mark.parametrize("below", ["", "cifar-10-batches-py"])
def test_pickles_are_not_opened(tmp_path, below):
    class Danger:
        def __reduce__(self):
            return (open, (str(tmp_path / "opened"), "w"))

    folder = tmp_path / below
    folder.mkdir(exist_ok=True)
    (folder / "data_batch_1").write_bytes(pickle.dumps(Danger()))
    line = line_of(lambda: scifar(tmp_path).sample(1))
    assert "is a pickle, which can run code when it is opened, and is not read; get CIFAR-10 (binary version)" in line
    assert not (tmp_path / "opened").exists()


def test_damaged_photographs(tmp_path):
    folder = write_data(tmp_path / "data") / "cifar10"
    assert "(30730 bytes instead of 30730000)" in line_of(lambda: scifar(folder, verify=True).sample(1))
    (folder / "data_batch_3.bin").write_bytes(b"\x0a" + bytes(3072))
    assert "a label is a digit, here one is 10" in line_of(lambda: scifar(folder).sample(1))
    (folder / "data_batch_3.bin").write_bytes(bytes(5000))
    assert "an image has 3073 bytes, and its 5000 are no multiple of it" in line_of(lambda: scifar(folder).sample(1))
    (folder / "data_batch_3.bin").unlink()
    assert line_of(lambda: scifar(folder).sample(1)).startswith("there is no data_batch_3.bin in")
    assert "side must be at most 32" in line_of(lambda: scifar(folder, side=33))


def test_pairs_are_bytes_cut_and_padded(data):
    train = retrieval(data).splits().train
    lines = [line.split(b"\t") for line in pairs("train").splitlines()]
    assert train.inputs.shape == (20, len(lines), 2)
    assert train.inputs.dtype == torch.uint8
    for number, (label, _, _, *texts) in enumerate(lines):
        assert int(train.targets[number]) == int(float(label))
        for which, text in enumerate(texts):
            assert bytes(train.inputs[: len(text), number, which].numpy()) == text[:20]
            assert int(train.lengths[number, which]) == min(len(text), 20)
            assert not train.inputs[len(text) :, number, which].any()
    shares = np.bincount(train.targets) / train.size
    assert retrieval(data).baseline == pytest.approx(-(shares * np.log(shares)).sum())


def test_a_compressed_file_will_do(tmp_path):
    (tmp_path / "new_aan_pairs.train.tsv.gz").write_bytes(gzip.compress(pairs("train")))
    assert retrieval(tmp_path).sample(3).size == 3
    (tmp_path / "new_aan_pairs.train.tsv.gz").write_bytes(gzip.compress(pairs("train"))[:-30])
    assert "cannot be used" in line_of(lambda: retrieval(tmp_path, length=9).sample(1))


def test_pairs_as_the_arena_writes_them(tmp_path):
    """Quotes and carriage returns are bytes as any other, texts are not always UTF-8, labels are written as numbers."""
    folder = tmp_path / "lra_release" / "tsv_data"
    folder.mkdir(parents=True)
    texts = [b'a "quoted word', b'"', b"caf\xe9 \xff\x00 end", b"", b"it's", b"x" * 30]
    lines = [b"0.0\tP99-1001\tW03\t" + a + b"\t" + b for a, b in zip(texts, reversed(texts), strict=True)]
    (folder / "new_aan_pairs.eval.tsv").write_bytes(b"\n".join([lines[0] + b"\r", *lines[1:]]))  # no newline at the end
    for part in ("train", "test"):
        (folder / f"new_aan_pairs.{part}.tsv").write_bytes(b"1\ta\tb\tone\ttwo\n")
    found = retrieval(tmp_path).splits().validation
    assert found.size == 6
    assert not found.targets.any()
    for number, pair in enumerate(zip(texts, reversed(texts), strict=True)):
        for which, text in enumerate(pair):
            assert bytes(found.inputs[: len(text[:20]), number, which].numpy()) == text[:20]
            assert int(found.lengths[number, which]) == max(1, len(text[:20]))


@pytest.mark.slow
def test_pairs_of_the_published_number(tmp_path):
    for part, count in {"train": 147_086, "eval": 18_090, "test": 17_437}.items():
        (tmp_path / f"new_aan_pairs.{part}.tsv").write_bytes(b"1.0\ta\tb\tone text\tanother\n" * count)
    assert [one.size for one in retrieval(tmp_path, verify=True).splits()] == [147_086, 18_090, 17_437]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"1.0\tA\tB\tonly one text\n", "line 1 has 4 fields instead of 5: label, two ids, two texts"),
        (pairs("train") + b"yes\tA\tB\tx\ty\n", "the label of line 13 is b'yes' instead of 0 or 1"),
        (b"1.0\tP99-1001\tW03-0001\n", "line 1 has 3 fields instead of 5"),  # the file of identifiers only
        (b"", "it is empty"),
    ],
)
def test_damaged_pairs(tmp_path, content, line):
    (tmp_path / "new_aan_pairs.train.tsv").write_bytes(content)
    assert line in line_of(lambda: retrieval(tmp_path).sample(1))


def test_published_pairs_are_counted(data):
    assert "it has 12 pairs instead of 147086" in line_of(lambda: retrieval(data, verify=True).sample(1))
    assert line_of(lambda: retrieval(data, length=0)).startswith("length must be a positive integer, got 0")
