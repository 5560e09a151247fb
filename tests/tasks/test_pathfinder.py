"""Pathfinder: the class by tracing dashes, what does not tell it, and the walks themselves."""

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.tasks import pathfinder_drawing
from mnemoscope.tasks.pathfinder_drawing import draw_pictures


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def clusters(ink, gap):
    """Number the pixels with ink so that those within `gap` pixels of each other have one number."""
    pixels = [tuple(place) for place in np.argwhere(ink)]
    number = {pixel: place for place, pixel in enumerate(pixels)}
    changed = True
    while changed:
        changed = False
        for y, x in pixels:
            near = [(y + i, x + j) for i in range(-gap, gap + 1) for j in range(-gap, gap + 1)]
            least = min(number[pixel] for pixel in near if pixel in number)
            changed = changed or least < number[y, x]
            number[y, x] = least
    return number


def centres(ink):
    """Return the centres of squares of 3 x 3 pixels."""
    side = len(ink)
    return [(y, x) for y in range(1, side - 1) for x in range(1, side - 1) if ink[y - 1 : y + 2, x - 1 : x + 2].all()]


def test_class_is_found_by_tracing_dashes():
    drawn = draw_pictures(150, 36, 4, 0, generator(2))
    clear = 0
    for picture, same in zip(drawn.ink.numpy() > 0, drawn.same.tolist(), strict=True):
        discs, number = centres(picture), clusters(picture, 2)
        if len(set(number.values())) != 2 or len(discs) != 2:
            continue  # paths that lie side by side need more than this to be told apart
        clear += 1
        assert (number[discs[0]] == number[discs[1]]) == bool(same)
    assert clear > 20


def test_paths_do_not_touch():
    drawn = draw_pictures(300, 24, 4, 3, generator(1))
    assert len(drawn.same) > 20
    for picture in drawn.ink.numpy() > 0:
        assert len(set(clusters(picture, 1).values())) >= 8  # two paths of four dashes each, apart


def auc(values, labels):
    """Return the chance that a positive example has the larger value; ties count half."""
    one, other = values[labels == 1], values[labels == 0]
    order = np.sort(other)
    below = np.searchsorted(order, one, "left") + np.searchsorted(order, one, "right")
    return below.mean() / 2 / len(other)


def test_neither_ink_nor_distance_tells_the_class():
    parts = [draw_pictures(2000, 18, 3, 2, generator(seed)) for seed in range(5)]
    labels = torch.cat([part.same for part in parts]).numpy()
    count = len(labels)
    assert count > 2000
    deviation = np.sqrt(1 / 3 / count)  # of the area under the curve, classes of equal size
    assert labels.mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(count))
    distance = torch.cat([part.distance for part in parts]).numpy()
    ink = torch.cat([part.ink.flatten(1).sum(1) for part in parts]).numpy()
    centre = torch.cat([part.ink[:, 6:-6, 6:-6].flatten(1).sum(1) for part in parts]).numpy()
    for statistic in (distance, ink, centre):
        assert auc(statistic, labels) == pytest.approx(0.5, abs=4 * deviation)


def test_walks_turn_little_and_keep_their_gaps(monkeypatch):
    seen = []
    monkeypatch.setattr(
        pathfinder_drawing,
        "_turns",
        lambda random, plain=pathfinder_drawing._turns: seen.append(plain(random)) or seen[-1],
    )
    paths = pathfinder_drawing._walk(torch.full((400,), 6), 32, True, generator())
    assert max(float(turns.abs().max()) for turns in seen) <= 1.0
    assert len(paths.ends) > 50
    for ink, taken in zip(paths.ink[:40].view(-1, 32, 32).numpy() > 0, paths.taken[:40].numpy() > 0, strict=True):
        pieces = list(clusters(ink, 1).values())
        assert len(set(pieces)) == 6  # gaps are open
        assert {pieces.count(piece) for piece in set(pieces)} <= {2, 3}
        assert (taken.reshape(32, 32) >= ink).all()


def test_default_size():
    batch = ms.tasks.create("pathfinder").sample(2, generator())
    assert batch.inputs.shape == (1024, 2, 1)
    assert set(batch.inputs.unique().tolist()) == {-1.0, 1.0}


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"side": 9}, "side must be a whole number of at least 10"),
        ({"dashes": 1}, "dashes must be a whole number of at least 2"),
        ({"distractors": -1}, "distractors must be a whole number of at least 0"),
        ({"examples": 7}, "examples must be a whole number of at least 8"),
    ],
)
def test_bad_settings(settings, line):
    with pytest.raises(UserError, match=line):
        ms.tasks.create("pathfinder", **settings)


def test_paths_that_do_not_fit(monkeypatch):
    monkeypatch.setattr("mnemoscope.tasks.pathfinder._TRIES", 1)
    with pytest.raises(UserError, match="two paths of 30 dashes hardly ever fit into 12 x 12 pixels"):
        ms.tasks.create("pathfinder", side=12, dashes=30).sample(1)
