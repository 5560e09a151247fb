"""Relational tasks on symbols: answers found again from the images alone, and what training and test share."""

import itertools
import math

import pytest
import torch
from scipy import stats

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.tasks.relational.base import colours
from mnemoscope.tasks.relational.symbols import symbols

MANY = 3_000
LARGEST = {
    "same-different": 98,
    "same-different-6": 98,
    "separated-inputs": 98,
    "comparison": 98,
    "transitive-comparison": 98,
    "rmts": 95,
    "dist3": 95,
    "identity-rules": 95,
    "rmts-3": 94,
    "identity-rules-4": 94,
    "identity-rules-4-missing": 94,
    "identity-rules-4-flipped": 94,
    "identity-rules-4-flipped-missing": 94,
    "dist-n": 89,
    "dist-n-restricted": 89,
}
SIZES = {"dist-n": (30, 11), "dist-n-restricted": (30, 11), "comparison": (2, 2), "transitive-comparison": (2, 2)}
SIZES |= {"same-different": (2, 2), "same-different-6": (6, 2), "separated-inputs": (4, 2), "rmts": (6, 2)}
SIZES |= {"dist3": (9, 4), "identity-rules": (9, 4), "rmts-3": (9, 2)} | {n: (13, 6) for n in LARGEST if "rules-4" in n}


def drawn(name, part="train", size=MANY, seed=0, **settings):
    """Return the panels of each example as numbers of symbols, and the answers."""
    task = ms.tasks.create(name, part=part, images="own", **settings)
    batch = task.sample(size, torch.Generator().manual_seed(seed))
    known = {image.numpy().tobytes(): number for number, image in enumerate(symbols("own", None))}
    number = torch.tensor([known[image.numpy().tobytes()] for image in batch.inputs.images])
    return number[batch.inputs.index].T.tolist(), batch.targets.tolist()


def pattern(row):
    """Return a row as letters, in the order in which they appear."""
    return "".join("ABCDEFGHIJKLM"[list(dict.fromkeys(row)).index(shape)] for shape in row)


def in_order(rule):
    """Return a rule with its letters renamed in the order in which they appear: BAA becomes ABB."""
    return pattern(list(rule))


def solve(name, panels):
    """Answer an example as a person would."""
    if name == "same-different":
        return int(panels[0] != panels[1])
    if name == "same-different-6":
        return int(panels[:3] != panels[3:])
    if name.startswith("rmts"):
        width = len(panels) // 3
        source, *candidates = (pattern(panels[start : start + width]) for start in range(0, len(panels), width))
        assert candidates.count(source) == 1
        return candidates.index(source)
    if name.startswith("dist"):
        n = len(panels) // 3
        first, second, choices = panels[:n], panels[n : 2 * n - 1], panels[2 * n - 1 :]
        assert len(set(first)) == n
        assert set(second) < set(first)
        assert set(first) < set(choices)
        (missing,) = set(first) - set(second)
        return choices.index(missing)
    width = 4 if "rules-4" in name else 3
    first, second, choices = panels[:width], panels[width : 2 * width - 1], panels[2 * width - 1 :]
    assert not set(first) & set(second)
    assert len(set(choices)) == len(choices)
    (answer,) = (place for place, shape in enumerate(choices) if pattern([*second, shape]) == pattern(first))
    return answer


SOLVED = [name for name in LARGEST if "comparison" not in name and name != "separated-inputs"]


@pytest.mark.parametrize("part", ["train", "test"])
@pytest.mark.parametrize("name", SOLVED)
def test_answers_follow_from_the_images(name, part):
    for panels, answer in zip(*drawn(name, part), strict=True):
        assert solve(name, panels) == answer


@pytest.mark.parametrize("name", list(LARGEST))
def test_sizes_and_the_largest_split(name):
    task = ms.tasks.create(name, images="own")
    assert (task.steps, task.output_size) == SIZES[name]
    assert task.held_out == LARGEST[name]
    assert task.baseline == pytest.approx(math.log(SIZES[name][1]))
    assert task.kind == "relational"
    (test,) = task.evaluations()
    assert (test.task.part, test.batches * test.batch_size) == ("test", 10_000)


@pytest.mark.parametrize("part", ["train", "test"])
@pytest.mark.parametrize("name", list(LARGEST))
def test_answers_are_balanced(name, part):
    answers = ms.tasks.create(name, part=part, images="own").sample(MANY, torch.Generator().manual_seed(1)).targets
    assert stats.chisquare(torch.bincount(answers, minlength=SIZES[name][1])).pvalue > 1e-4


@pytest.mark.parametrize("split", [0, 7])
@pytest.mark.parametrize("name", SOLVED)
def test_training_and_test_share_no_symbol_and_use_all(name, split):
    train, test = ({n for row in drawn(name, part, split=split)[0] for n in row} for part in ("train", "test"))
    assert not train & test
    assert len(train) == 100 - LARGEST[name]
    assert len(test) == LARGEST[name]


def test_without_held_out_symbols_all_are_shared():
    train, test = ({n for row in drawn("rmts", part, held_out=0)[0] for n in row} for part in ("train", "test"))
    assert train == test == set(range(100))


def test_splits_differ_and_are_uniform():
    pools = [set(ms.tasks.create("same-different", split=split).pool().tolist()) for split in range(200)]
    counts = torch.bincount(torch.tensor([symbol for pool in pools for symbol in pool]), minlength=100)
    assert len({frozenset(pool) for pool in pools}) > 190
    assert stats.chisquare(counts).pvalue > 1e-4


TWO = {in_order(rule) for rule in ("AAAA", "ABAA", "AABA", "BAAA", "ABBA", "ABAB", "AABB")}
THREE = {in_order(rule) for rule in ("ABCA", "BACA", "BCAA")}
RULES = {
    "identity-rules": ({"AAA", "ABA", "ABB"}, {"AAA", "ABA", "ABB"}),
    "identity-rules-4": (TWO, THREE),
    "identity-rules-4-missing": (TWO - {"ABAA", "ABAB"}, THREE),
    "identity-rules-4-flipped": (THREE, TWO),
    "identity-rules-4-flipped-missing": (THREE - {"ABCA"}, TWO),
}


@pytest.mark.parametrize("name", list(RULES))
def test_rules_of_training_and_test(name):
    width = 4 if "rules-4" in name else 3
    for part, wanted in zip(("train", "test"), RULES[name], strict=True):
        rows, _ = drawn(name, part)
        counts = [[pattern(row[:width]) for row in rows].count(rule) for rule in sorted(wanted)]
        assert sum(counts) == MANY
        assert stats.chisquare(counts).pvalue > 1e-4


def test_patterns_of_rmts_3():
    found = {}
    for part in ("train", "test"):
        rows, answers = drawn("rmts-3", part)
        found[part] = {
            (pattern(row[:3]), pattern(row[3:6] if answer else row[6:]))
            for row, answer in zip(rows, answers, strict=True)
        }
    assert found["train"] == set(itertools.permutations(("AAA", "ABA", "ABB"), 2))
    assert found["test"] == {("AAB", "ABC"), ("ABC", "AAB")}


def test_arrangements_of_same_different_6():
    """B of one triplet is B of the other, so that letters are shared: AAB against ABA, not AAB against CCD."""
    train, test = (
        {pattern(row) for row in drawn("same-different-6", part, size=2_000)[0]} for part in ("train", "test")
    )
    arrangements = ("AAA", "ABA", "BAA")
    assert train == {in_order(p + q) for p in arrangements for q in arrangements}
    against = [pair for other in arrangements for pair in (("AAB", other), (other, "AAB"))]
    assert test == {in_order(p + q) for p, q in [("AAB", "AAB"), *against]}
    assert not train & test


def test_restricted_permutations_do_not_meet():
    def kept(row):
        return set(row[5:7]) == set(row[:2])  # N = 5: the first two places among themselves

    train, test = (drawn("dist-n-restricted", part, n=5, size=4_000)[0] for part in ("train", "test"))
    assert all(kept(row) for row in train)
    assert not any(kept(row) for row in test)
    orders = [tuple(row[:5].index(shape) for shape in row[5:9]) for row in test]
    assert len(set(orders)) == 120 - 12
    assert stats.chisquare([orders.count(order) for order in set(orders)]).pvalue > 1e-4


@pytest.mark.parametrize("name", ["same-different", "rmts", "dist3", "identity-rules"])
def test_spurious_colours_say_nothing(name):
    task = ms.tasks.create(name, colour="spurious", images="own")
    plain = ms.tasks.create(name, images="own")
    batch, same = (one.sample(400, torch.Generator().manual_seed(3)) for one in (task, plain))
    assert torch.equal(batch.targets, same.targets)
    panels, white = batch.inputs.dense(), same.inputs.dense()
    tints = panels.amax((-1, -2))  # of the background
    torch.testing.assert_close(panels, white * tints[..., None, None])
    number = (tints.unsqueeze(2) == colours()).all(-1).int()
    assert number.sum(-1).eq(1).all()
    counts = torch.bincount(number.argmax(-1).flatten(), minlength=100)
    assert stats.chisquare(counts).pvalue > 1e-4
    first, second = number.argmax(-1)[:2]
    table = torch.zeros(2, 2).index_put_(((first < 50).long(), (second < 50).long()), torch.ones(()), accumulate=True)
    assert stats.chi2_contingency(table).pvalue > 1e-4


def test_separated_inputs_alternate_symbol_and_colour():
    task = ms.tasks.create("separated-inputs", images="own")
    batch = task.sample(500, torch.Generator().manual_seed(0))
    panels = batch.inputs.dense()
    fields = panels[1::2]
    assert (fields == fields[..., :1, :1]).all()
    assert fields[:, :, :, 0, 0].unique(dim=1).shape[1] > 90
    different = (panels[0] != panels[2]).flatten(1).any(1)
    assert torch.equal(different.long(), batch.targets)


@pytest.mark.parametrize("name", ["comparison", "transitive-comparison"])
def test_the_larger_copy_has_the_larger_extent(name):
    def extents(part):
        task = ms.tasks.create(name, part=part, images="own")
        batch = task.sample(600, torch.Generator().manual_seed(0))
        shown = ((1 - batch.inputs.dense()).amax((2, 4)) > 0.05).int()
        heights = 32 - shown.argmax(-1) - shown.flip(-1).argmax(-1)
        assert torch.equal((heights[1] > heights[0]).long(), batch.targets)
        return {tuple(pair) for pair in (heights / 32).T.tolist()}

    train, test = extents("train"), extents("test")
    if name == "transitive-comparison":
        assert all(min(pair) / max(pair) > 0.5 for pair in train)
        assert all(min(pair) / max(pair) < 0.5 for pair in test)


def test_distinct_images_are_given_once():
    batch = ms.tasks.create("dist3", images="own").sample(96)
    assert len(batch.inputs.images) == 5
    few = ms.tasks.create("dist3", images="own", held_out=0).sample(2)
    assert len(few.inputs.images) == 18


@pytest.mark.parametrize(
    ("name", "settings", "line"),
    [
        ("same-different", {"held_out": 99}, "held_out must be 0, or from 2 to 98, so that both parts have symbols"),
        ("rmts", {"held_out": 4}, "held_out must be 0, or from 5 to 95, so that"),
        ("rmts-3", {"held_out": 7}, "held_out must be 0, or from 8 to 94, so that"),
        ("dist-n", {"n": 11}, "held_out must be 0, or from 12 to 88, so that both parts have symbols enough, got 89"),
        ("dist-n-restricted", {"n": 3}, "n must be a whole number of at least 4, got 3"),
        ("dist3", {"part": "tset"}, "part must be 'train' or 'test', got 'tset'; did you mean 'test'?"),
        ("identity-rules", {"colour": "red"}, "colour must be 'none' or 'spurious', got 'red'"),
        ("identity-rules-4", {"missing": ("ABBB",)}, "a rule of missing must be 'AAAA' or 'ABAA' or"),
        ("identity-rules-4-flipped", {"missing": ("ABCA", "BACA", "BCAA")}, "missing must be fewer rules than"),
        ("games-left-of", {"part": "stripes"}, "part must be 'train' or 'hexominoes', got 'stripes'"),
    ],
)
def test_one_line_for_a_wrong_setting(name, settings, line):
    with pytest.raises(UserError) as caught:
        ms.tasks.create(name, **settings)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)
