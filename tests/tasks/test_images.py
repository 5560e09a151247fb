"""Digits as sequences: orders of pixels, splits, averages; the real files where they are."""

import numpy as np
import pytest
import torch
from tests.tasks.fake_data import TEST, TRAIN, digits, is_there

import mnemoscope as ms
from mnemoscope.core.errors import UserError

PIXELS = digits()


def create(name, data, **settings):
    return ms.tasks.create(name, data=data, verify=False, **settings)


def images_of(batch):
    """Return the numbers of every sequence, one row each, as bytes again."""
    return (batch.inputs.transpose(0, 1).flatten(1) * 255).round().to(torch.uint8).numpy()


def test_pixels_one_by_one_row_by_row(data):
    task = create("smnist", data)
    sets = task.splits()
    train, labels = PIXELS["train-images-idx3-ubyte"], PIXELS["train-labels-idx1-ubyte"]
    assert sets.train.inputs.shape == (784, TRAIN - 10, 1)
    assert (images_of(sets.validation) == train[:10].reshape(10, 784)).all()
    assert (images_of(sets.train) == train[10:].reshape(TRAIN - 10, 784)).all()
    assert (images_of(sets.test) == PIXELS["t10k-images-idx3-ubyte"].reshape(TEST, 784)).all()
    assert sets.validation.targets.tolist() == labels[:10].tolist()
    assert sets.test.targets.tolist() == PIXELS["t10k-labels-idx1-ubyte"].tolist()
    assert 0 <= float(sets.train.inputs.min()) <= float(sets.train.inputs.max()) <= 1


@pytest.mark.parametrize(("recipe", "seed"), [("ziv", 92916), ("kerg", 1234), ("all", 92916)])
def test_permutations_are_the_published_ones(data, recipe, seed):
    order = np.random.RandomState(seed).permutation(784)
    task = create("pmnist", data, recipe=recipe)
    test = task.splits().test
    plain = PIXELS["t10k-images-idx3-ubyte"].reshape(TEST, 784)
    for step in (0, 1, 500, 783):
        assert (images_of(test)[:, step] == plain[:, order[step]]).all()


@pytest.mark.parametrize(("recipe", "sizes"), [("ziv", (110, 10, 20)), ("kerg", (100, 20, 20)), ("all", (120, 0, 20))])
def test_held_out_images(data, recipe, sizes):
    for name in ("smnist", "pmnist", "mnist"):
        sets = create(name, data, recipe=recipe).splits()
        assert tuple(one.size for one in sets) == sizes
    sets = create("smnist", data, recipe=recipe).splits()
    train, held = ({row.tobytes() for row in images_of(one)} for one in sets[:2])
    assert not train & held
    assert len(train | held) == TRAIN
    if recipe == "kerg":
        assert (images_of(sets.validation) == PIXELS["train-images-idx3-ubyte"][-20:].reshape(20, 784)).all()


@pytest.mark.parametrize("grid", [1, 2, 4, 7, 14, 28])
def test_patches(data, grid):
    batch = create("mnist", data, grid=grid).splits().test
    patch = 28 // grid
    image = PIXELS["t10k-images-idx3-ubyte"][3]
    for row in range(grid):
        for column in range(grid):
            wanted = image[row * patch : (row + 1) * patch, column * patch : (column + 1) * patch]
            got = batch.inputs[row * grid + column, 3].reshape(patch, patch)
            assert np.allclose(got.numpy() * 255, wanted, atol=1e-3)


@pytest.mark.parametrize("side", [1, 4, 7, 14])
def test_smaller_images_are_averages(data, side):
    batch = create("smnist", data, side=side).splits().test
    block = 28 // side
    image = PIXELS["t10k-images-idx3-ubyte"][5].reshape(side, block, side, block).mean((1, 3)) / 255
    assert np.allclose(batch.inputs[:, 5, 0].numpy(), image.ravel(), atol=1e-5)


def test_what_is_drawn_is_of_the_training_set_and_unspoilt_by_it(data):
    for settings in ({}, {"side": 9}):
        task = create("smnist", data, **settings)
        before = task.sample(50, torch.Generator().manual_seed(0))
        known = {row.tobytes() for row in task.splits().train.inputs.transpose(0, 1).flatten(1).numpy()}
        drawn = before.inputs.transpose(0, 1).flatten(1).contiguous().numpy()
        assert all(row.tobytes() in known for row in drawn)
        assert torch.equal(task.sample(50, torch.Generator().manual_seed(0)).inputs, before.inputs)


def test_pictures_show_the_digit(data):
    for name in ("smnist", "pmnist"):
        task = create(name, data)
        batch = task.splits().test
        (label, image), *others = task.pictures(batch, 2).items()
        assert label == f"digit {PIXELS['t10k-labels-idx1-ubyte'][2]}"
        assert np.allclose(image * 255, PIXELS["t10k-images-idx3-ubyte"][2], atol=1e-3)
        assert len(others) == (name == "pmnist")
    task = create("mnist", data, grid=2)
    (image,) = task.pictures(task.splits().test, 2).values()
    assert image.shape == (29, 29)
    assert not image[14].any()
    assert np.allclose(image[15:, :14] * 255, PIXELS["t10k-images-idx3-ubyte"][2][14:, :14], atol=1e-3)


@pytest.mark.skipif(not is_there("mnist"), reason="MNEMOSCOPE_DATA names no folder with MNIST")
def test_the_real_files():
    sets = ms.tasks.create("pmnist").splits()
    assert [one.size for one in sets] == [55_000, 5_000, 10_000]
    assert sets.validation.targets[:5].tolist() == [5, 0, 4, 1, 9]
    assert sets.test.targets[:5].tolist() == [7, 2, 1, 0, 4]
    assert float(sets.train.inputs.double().mean()) == pytest.approx(0.1307, abs=2e-3)
    assert [one.size for one in ms.tasks.create("smnist", recipe="kerg").splits()] == [50_000, 10_000, 10_000]


def test_several_pixels_are_read_at_once(data):
    one, seven = (create("pmnist", data, pixels_per_step=count) for count in (1, 7))
    assert (seven.steps, seven.input_size) == (112, 7)
    pixels, grouped = (task.splits().test.inputs for task in (one, seven))
    assert torch.equal(grouped.transpose(0, 1).flatten(1), pixels.transpose(0, 1).flatten(1))
    with pytest.raises(UserError, match="pixels_per_step must be a divisor of 784"):
        create("smnist", data, pixels_per_step=5)
