"""Pathfinder: the class by tracing dashes, what does not tell it, and the walks themselves."""

import math
from itertools import pairwise

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


def far(one, other):
    """Return how many pixels two places are apart along the longer axis."""
    return max(abs(one[0] - other[0]), abs(one[1] - other[1]))


def between(one, other):
    """Return the angle by which two directions differ."""
    return abs((math.atan2(*one) - math.atan2(*other) + math.pi) % (2 * math.pi) - math.pi)


def linked(picture, dashes):
    """Say whether some chain of dashes, each going on about as the one before, leads from one disc to the other."""
    first, last = centres(picture)
    around = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if y or x]
    rest = picture.copy()
    for y, x in (first, last):
        rest[y - 1 : y + 2, x - 1 : x + 2] = False
    pieces = {}
    for pixel, number in clusters(rest, 1).items():
        pieces.setdefault(number, []).append(pixel)
    # Its dash may lie in the disc, or end outside.
    todo = [(frozenset({-1}), (first[0] + y, first[1] + x), (y, x), [first]) for y, x in around]
    for number, piece in pieces.items():
        if min(far(pixel, first) for pixel in piece) == 2:
            end = max(piece, key=lambda pixel: far(pixel, first))
            todo.append((frozenset({number}), end, np.subtract(end, first), [first, np.mean(piece, 0)]))
    while todo:
        used, end, direction, middles = todo.pop()
        if far(end, last) <= 3 and len(used) in (dashes - 1, dashes) and smooth([*middles, last]):
            return True
        for number in pieces.keys() - used if len(used) < dashes else ():
            piece = pieces[number]
            near, away = (pick(piece, key=lambda pixel: math.dist(pixel, end)) for pick in (min, max))
            if far(end, near) == 2 and between(np.subtract(away, end), direction) < 1.4:
                goes = np.subtract(away, near if away != near else end)
                todo.append((used | {number}, away, goes, [*middles, np.mean(piece, 0)]))
    return False


def smooth(middles):
    """Say whether a line turns little at each of the places between its first two and its last two."""
    goes = np.diff(np.array(middles), axis=0)
    return all(between(a, b) < 0.9 for a, b in pairwise(goes[1:-1]))


@pytest.mark.parametrize("count", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_class_is_found_by_following_dashes(count):
    """Where the discs end one path there always is a chain, else next to never: another's dash goes on by chance."""
    batch = ms.tasks.create("pathfinder").sample(count, generator(7))
    pictures = batch.inputs.view(32, 32, count).permute(2, 0, 1).numpy() > 0
    found = torch.tensor([linked(picture, 14) for picture in pictures])
    assert found[batch.targets == 1].all()
    assert found[batch.targets == 0].double().mean() < 0.05


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
