"""ListOps: answers by a plain parser, the exact distribution by enumeration and convolution, no list twice."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.tasks.listops_chances import answer_chances, length_chances

WORDS = ms.tasks.create("listops").glyphs()[0]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def evaluated(symbols):
    """Return the value of a list by a stack, symbol by symbol."""
    functions = {"[MIN": min, "[MAX": max, "[MED": lambda v: int(np.median(v)), "[SM": lambda v: sum(v) % 10}
    stack = []
    for symbol in symbols:
        if symbol in functions:
            stack.append([functions[symbol]])
            continue
        if symbol == "]":
            function, *values = stack.pop()
            value = function(values)
        else:
            value = int(symbol)
        if not stack:
            return value
        stack[-1].append(value)
    raise AssertionError("a bracket is not closed")


@pytest.mark.parametrize("settings", [{"longest": 200, "shortest": 20}, {"longest": 64, "shortest": 4, "arguments": 3}])
def test_answers_are_those_of_a_plain_parser(settings):
    task = ms.tasks.create("listops", **settings)
    batch = task.sample(60, generator())
    for number, length in enumerate(batch.lengths.tolist()):
        symbols = [WORDS[token] for token in batch.inputs[:, number].tolist()]
        assert task.shortest < length < task.longest
        assert set(symbols[length:]) <= {"·"}
        assert "·" not in symbols[:length]
        assert evaluated(symbols[:length]) == int(batch.targets[number])
        assert symbols[:length].count("]") == sum(symbol.startswith("[") for symbol in symbols[:length])


def enumerated(level, depth, arguments):
    """Return the exact chance of every (length, answer) of a node by going through all of them."""
    digits = {(1, digit): Fraction(1, 10) for digit in range(10)}
    if level == depth:
        return digits
    below, inner = enumerated(level + 1, depth, arguments), {}
    functions = [min, max, lambda v: int(np.median(v)), lambda v: sum(v) % 10]
    for k in range(2, arguments + 1):
        for nodes in product(below.items(), repeat=k):
            length = 2 + sum(node[0][0] for node in nodes)
            chance = Fraction(1, 4 * (arguments - 1))
            for node in nodes:
                chance *= node[1]
            for function in functions:
                key = length, function([node[0][1] for node in nodes])
                inner[key] = inner.get(key, 0) + chance
    if level == 1:
        return inner
    mixed = {key: Fraction(1, 4) * chance for key, chance in inner.items()}
    return mixed | {key: mixed.get(key, 0) + Fraction(3, 4) * chance for key, chance in digits.items()}


@pytest.mark.parametrize(("depth", "arguments"), [(2, 3), (3, 2), (2, 4)])
def test_exact_distribution_is_that_of_an_enumeration(depth, arguments):
    known = enumerated(1, depth, arguments)
    longest = max(length for length, _ in known) + 1
    lengths = length_chances(longest, depth, arguments)
    for length in range(longest):
        wanted = sum((chance for (own, _), chance in known.items() if own == length), Fraction(0))
        assert lengths[length] == pytest.approx(float(wanted), abs=1e-9)
    for shortest in (0, 4):
        kept = {key: chance for key, chance in known.items() if key[0] > shortest}
        wanted = [float(sum(c for (_, v), c in kept.items() if v == digit) / sum(kept.values())) for digit in range(10)]
        assert answer_chances(shortest, longest, depth, arguments) == pytest.approx(wanted, abs=1e-8)


def test_lengths_are_those_of_plain_convolutions():
    longest = 700
    chances = np.eye(longest)[1]
    for level in range(9, 0, -1):
        power, total = chances, np.zeros(longest)
        for _ in range(9):
            power = np.convolve(power, chances)[:longest]
            total += power / 9
        inner = np.concatenate([[0, 0], total[:-2]])
        chances = inner if level == 1 else 0.75 * np.eye(longest)[1] + 0.25 * inner
    assert length_chances(longest, 10, 10) == pytest.approx(chances, abs=1e-10)


def test_drawn_lists_have_the_exact_distribution():
    task = ms.tasks.create("listops", longest=40, shortest=6)
    count = 20_000
    batch = task.sample(count, generator())
    lengths = length_chances(40, 10, 10)[7:]
    for seen, wanted in (
        (torch.bincount(batch.lengths, minlength=40)[7:].numpy(), lengths / lengths.sum()),
        (torch.bincount(batch.targets, minlength=10).numpy(), task.answers()),
    ):
        squares = ((seen - count * wanted) ** 2 / (count * wanted)).sum()
        freedom = len(wanted) - 1
        assert squares < freedom + 4 * np.sqrt(2 * freedom)


def test_published_sizes():
    """Of the Long Range Arena: 500 to 2,000 symbols in 2,048 steps, ten classes, two of them twice as frequent."""
    task = ms.tasks.create("listops")
    assert (task.steps, task.embedding, task.output_size, task.sizes) == (2048, 16, 10, (96_000, 2_000, 2_000))
    batch = task.sample(64, generator())
    assert 500 < int(batch.lengths.min()) <= int(batch.lengths.max()) < 2000
    shares = task.answers()
    assert sorted(np.argsort(shares)[-2:].tolist()) == [0, 9]
    assert shares[[0, 9]] == pytest.approx(0.169, abs=0.002)
    chances = length_chances(2000, 10, 10)[501:]
    mean = (np.arange(501, 2000) * chances).sum() / chances.sum()
    spread = np.sqrt(((np.arange(501, 2000) - mean) ** 2 * chances).sum() / chances.sum())
    assert float(batch.lengths.double().mean()) == pytest.approx(mean, abs=4 * spread / 8)


@pytest.mark.slow
def test_the_whole_set_has_the_exact_distribution():
    """96,000 / 2,000 / 2,000 different lists: a few seconds of computing, far from ten minutes."""
    task = ms.tasks.create("listops")
    sets = task.splits(0)
    assert [one.size for one in sets] == [96_000, 2_000, 2_000]
    count, lengths = 96_000, length_chances(2000, 10, 10)[501:]
    bins = np.add.reduceat(lengths / lengths.sum(), np.arange(0, len(lengths), 100))
    seen = np.add.reduceat(torch.bincount(sets.train.lengths, minlength=2000)[501:].numpy(), np.arange(0, 1499, 100))
    answers = torch.bincount(sets.train.targets, minlength=10).numpy()
    for own, wanted in ((seen, bins), (answers, task.answers())):
        squares = ((own - count * wanted) ** 2 / (count * wanted)).sum()
        assert squares < len(wanted) - 1 + 4 * np.sqrt(2 * (len(wanted) - 1))


def test_no_list_is_there_twice(monkeypatch):
    task = ms.tasks.create("listops", longest=9, shortest=3, arguments=3)
    monkeypatch.setattr(type(task), "sizes", (1500, 100, 100))
    sets = task.splits(3)
    rows = torch.cat([one.inputs.T for one in sets])
    assert len(torch.unique(rows, dim=0)) == len(rows) == 1700
    assert sets.train.inputs.dtype == torch.uint8
    with pytest.raises(UserError, match="there are no 1700 different lists of fewer than 5 symbols"):
        ms.tasks.create("listops", longest=5, shortest=3).splits()


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"longest": 501}, "longest must be at least 502"),
        ({"longest": 0}, "longest must be a whole number of at least 1"),
        ({"shortest": -1}, "shortest must be a whole number of at least 0"),
        ({"depth": 1}, "depth must be a whole number of at least 2"),
        ({"arguments": 1.5}, "arguments must be a whole number of at least 2"),
    ],
)
def test_bad_settings(settings, line):
    with pytest.raises(UserError, match=line):
        ms.tasks.create("listops", **settings)


def test_lengths_that_no_list_has():
    task = ms.tasks.create("listops", longest=400, shortest=300, depth=2)
    with pytest.raises(UserError, match="hardly ever have more than 300 and fewer than 400 symbols"):
        task.sample(1)
