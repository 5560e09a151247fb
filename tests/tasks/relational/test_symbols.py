"""The hundred symbols: ours are distinct; the user's are read, and what is wrong with them is one line."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from tests.tasks.fake_data import is_there

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.tasks.datasets import DATASETS, data_folder, state
from mnemoscope.tasks.relational.shapes import drawn_shapes
from mnemoscope.tasks.relational.symbols import symbols


def write_images(folder, arrays):
    folder.mkdir(parents=True, exist_ok=True)
    for number, array in enumerate(arrays):
        Image.fromarray(array).save(folder / f"{number}.png")
    return folder


def images(count=100, side=32):
    return list(np.random.default_rng(0).integers(0, 256, (count, side, side), dtype=np.uint8))


def test_our_shapes_are_pairwise_far_apart():
    flat = drawn_shapes().reshape(100, -1) / 255.0
    distance = np.linalg.norm(flat[:, None] - flat[None], axis=-1) + 99 * np.eye(100)
    assert distance.min() > 4  # the least of the published symbols is 4.25
    assert drawn_shapes()[:, 0, 0].min() == 255  # black on white


def test_images_of_the_folder_are_used_in_the_order_of_their_numbers(tmp_path, monkeypatch):
    monkeypatch.delenv("MNEMOSCOPE_DATA", raising=False)
    arrays = images(102)
    write_images(tmp_path / "esbn_imgs" / "imgs", arrays)
    assert ms.tasks.create("rmts").images == "own"
    task = ms.tasks.create("rmts", data=str(tmp_path))
    assert task.settings()["images"] == "files"
    found = symbols("files", str(tmp_path))
    assert found.shape == (100, 3, 32, 32)
    assert torch.equal(found[11, 2], torch.from_numpy(arrays[11]).float() / 255)
    shown = task.sample(4).inputs.images
    assert all(any(torch.equal(image, one) for one in found) for image in shown)
    monkeypatch.setenv("MNEMOSCOPE_DATA", str(tmp_path))
    assert ms.tasks.create("rmts").images == "files"
    assert ms.tasks.create("rmts", images="own").images == "own"


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (images(99), "it has 99 images, and 100 are needed"),
        ([*images(99), np.zeros((28, 32), dtype=np.uint8)], "99.png has 32 x 28 pixels, and 32 x 32 are needed"),
        ([*images(99), images(99)[3]], "3.png and 99.png are the same image"),
    ],
)
def test_a_folder_that_cannot_be_used(tmp_path, arrays, words):
    write_images(tmp_path / "imgs", arrays)
    with pytest.raises(UserError, match="cannot be used") as caught:
        ms.tasks.create("dist3", data=str(tmp_path)).sample(1)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_image_and_no_folder(tmp_path):
    folder = write_images(tmp_path / "imgs", images(100))
    content = io.BytesIO()
    Image.fromarray(images()[0]).save(content, "PNG")
    (folder / "7.png").write_bytes(content.getvalue()[:60])
    with pytest.raises(UserError, match=r"7\.png is no PNG image that can be read"):
        ms.tasks.create("dist3", data=str(tmp_path)).sample(1)
    with pytest.raises(UserError, match="there is no folder of symbol images in"):
        ms.tasks.create("dist3", data=str(tmp_path / "imgs"), images="files").sample(1)


@pytest.mark.skipif(not is_there("symbols"), reason="MNEMOSCOPE_DATA names no folder with the symbol images")
def test_the_published_images_are_checked():
    dataset = DATASETS["symbols"]
    assert state(dataset, dataset.files[0], data_folder(None))[0] == "checked"
    assert ms.tasks.create("same-different").images == "files"
    assert len(ms.tasks.create("same-different", part="test").sample(200).inputs.images) == 98
