"""Relational games: answers found again from the pixels, and the statistics of the published samples."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

import mnemoscope as ms
from mnemoscope.tasks.relational.polyominoes import COLOURS, placements

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
SAMPLES = Path(os.environ.get("MNEMOSCOPE_DATA", "")) / "relational_games"
TWO = ["games-same", "games-between", "games-occurs", "games-xoccurs", "games-row-matching"]
PARTS = [(name, part) for name in TWO for part in ("train", "hexominoes", "stripes")]
PARTS += [(name, part) for name in ("games-colour-shape", "games-left-of") for part in ("train", "hexominoes")]


def panels_of(name, part, size, seed=0):
    """Return the cells (size, 9, 12, 12, 3) in 0..255, and the answers."""
    batch = ms.tasks.create(name, part=part).sample(size, torch.Generator().manual_seed(seed))
    cells = (255 * batch.inputs.dense()).round().byte().permute(1, 0, 3, 4, 2)
    return cells.numpy(), batch.targets.numpy()


def read(cells):
    """Return what is in each cell: None, or its pixels' mask and colours, as bytes."""
    return [None if not cell.any() else (cell.any(-1).tobytes(), cell.tobytes()) for cell in cells]


def colour(cell):
    return tuple(cell.reshape(-1, 3).max(0).tolist())


def pattern(row):
    return tuple(list(dict.fromkeys(row)).index(one) for one in row)


def solve(name, cells):
    """Answer a scene as a person would."""
    seen = read(cells)
    full = [place for place, one in enumerate(seen) if one]
    objects = [seen[place][1] for place in full]
    if name == "games-same":
        assert len(full) == 2
        return int(objects[0] == objects[1])
    if name == "games-between":
        assert len(full) == 3
        return int(tuple(full) in LINES and objects[0] == objects[2] != objects[1])
    if name in ("games-occurs", "games-xoccurs"):
        assert full[0] < 3
        assert full[1:] == [6, 7, 8]
        top, *bottom = objects
        if name == "games-occurs":
            assert bottom.count(top) in (0, 1)
            return int(top in bottom)
        return int(bottom.count(top) == 1 and len(set(bottom)) == 3)
    if name == "games-row-matching":
        assert full == [0, 1, 2, 6, 7, 8]
        return int(pattern(objects[:3]) == pattern(objects[3:]))
    (a, b), colours = full, [colour(cells[place]) for place in full]
    if name == "games-colour-shape":
        return 2 * (colours[0] != colours[1]) + (seen[a][0] != seen[b][0])
    light = [0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2] for c in colours]
    assert light[0] != light[1]
    darker, lighter = (a, b) if light[0] < light[1] else (b, a)
    if a % 3 == b % 3:
        return int(darker // 3 > lighter // 3)
    return int(darker % 3 < lighter % 3)


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_answers_follow_from_the_pixels_and_are_balanced(name, part):
    cells, answers = panels_of(name, part, 1_500)
    assert [solve(name, one) for one in cells] == answers.tolist()
    assert stats.chisquare(np.bincount(answers, minlength=4 if "colour" in name else 2)).pvalue > 1e-4


def test_objects_are_those_of_the_document():
    assert [(len(placements(n)), sum(map(len, placements(n)))) for n in (5, 6)] == [(8, 49), (8, 48)]
    tight = [mask[mask.any(1)][:, mask.any(0)] for family in placements(5) for mask in family]
    orientations = {(mask.shape, mask.tobytes()) for mask in tight}
    assert len(orientations) == 37
    assert len({tuple(c) for c in COLOURS.tolist()}) == 25
    for part, pixels in (("train", {45}), ("hexominoes", {54}), ("stripes", {81})):
        cells, _ = panels_of("games-same", part, 300)
        shown = cells[cells.any((2, 3, 4))]
        ink = shown.any(-1)
        assert set(ink.sum((1, 2)).tolist()) == pixels
        assert not ink[:, [0, 10, 11]].any()
        assert not ink[:, :, [0, 10, 11]].any()
        assert {tuple(c) for c in shown[ink].tolist()} <= {tuple(c) for c in COLOURS.tolist()}


def test_training_and_test_objects_do_not_meet():
    shapes = []
    for part in ("train", "hexominoes", "stripes"):
        cells, _ = panels_of("games-row-matching", part, 500)
        shapes.append({cell.any(-1).tobytes() for cell in cells[cells.any((2, 3, 4))]})
    assert not shapes[0] & shapes[1]
    assert not (shapes[0] | shapes[1]) & shapes[2]


@pytest.mark.parametrize("name", ["games-same", "games-occurs"])
def test_different_means_by_shape_by_colour_or_by_both(name):
    cells, answers = panels_of(name, "hexominoes", 3_000)
    kinds = Counter()
    for one in cells[answers == 0]:
        first, *others = [place for place, object_ in enumerate(read(one)) if object_]
        seen = read(one)
        for other in others:
            kinds[(seen[first][0] == seen[other][0], colour(one[first]) == colour(one[other]))] += 1
    assert set(kinds) == {(True, False), (False, True), (False, False)}
    assert stats.chisquare(list(kinds.values())).pvalue > 1e-4


def statistics(cells, answers, part):
    """Count in scenes of `between` where objects are, and how the outer two differ."""
    counts = Counter()
    for one, answer in zip(cells, answers, strict=True):
        seen = read(one)
        full = tuple(place for place, object_ in enumerate(seen) if object_)
        line = full in LINES
        counts["place", int(answer), full if line else "elsewhere"] += 1
        first, _, last = full
        same_shape, same_colour = seen[first][0] == seen[last][0], colour(one[first]) == colour(one[last])
        if line and not answer and part == "hexominoes":
            counts["difference", same_shape, same_colour] += 1
        for place in full:
            counts["shape", seen[place][0] if part == "hexominoes" else tuple(one[place][5, 1].tolist())] += 1
            counts["colour", tuple(one[place][5, 5].tolist()) if part == "stripes" else colour(one[place])] += 1
    return counts


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="MNEMOSCOPE_DATA names no folder with relational_games")
@pytest.mark.parametrize(("part", "file"), [("hexominoes", "hexos"), ("stripes", "stripes")])
def test_between_has_the_statistics_of_the_published_samples(part, file):
    sample = np.load(SAMPLES / f"mini_between_{file}.npz")
    cells = sample["images"].reshape(-1, 3, 12, 3, 12, 3).transpose(0, 1, 3, 2, 4, 5).reshape(-1, 9, 12, 12, 3)
    theirs = statistics(cells.astype(np.uint8), sample["labels"][:, 0], part)
    ours = statistics(*panels_of("games-between", part, 5_000), part)
    for kind in ("place", "difference", "shape", "colour"):
        keys = sorted({key for key in {**theirs, **ours} if key[0] == kind}, key=repr)
        table = np.array([[counts[key] for key in keys] for counts in (theirs, ours)])
        if not keys:
            continue
        assert (table > 0).all(), kind  # neither shows a place, shape or colour that the other does not
        assert stats.chi2_contingency(table).pvalue > 1e-3, kind
