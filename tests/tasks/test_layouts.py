"""Symbols step by step, against loops written from the descriptions, and their distributions."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import mnemoscope as ms

FEW = 25


def drawn(name, size=FEW, seed=0, **settings):
    """Return a task, its batch, and the tokens of its inputs."""
    task = ms.tasks.create(name, **settings)
    batch = task.sample(size, torch.Generator().manual_seed(seed))
    assert torch.equal(batch.inputs.sum(-1), torch.ones(task.steps, size))
    assert set(batch.inputs.unique().tolist()) <= {0.0, 1.0}
    return task, batch, batch.inputs.argmax(-1)


def column(tokens, number):
    return tokens[:, number].tolist()


def uniform(counts):
    """Say whether counts are those of equal chances: the p-value of a chi-square test, at a fixed seed."""
    return stats.chisquare(counts).pvalue > 1e-4


seeds = st.integers(0, 2**32)


@given(st.integers(0, 12), st.integers(1, 6), st.integers(2, 9), seeds)
def test_copying(delay, symbols, alphabet, seed):
    task, batch, tokens = drawn("copying", 5, seed, delay=delay, symbols=symbols, alphabet=alphabet)
    blank, trigger = alphabet, alphabet + 1
    assert task.steps == delay + 2 * symbols
    for number in range(5):
        inputs, targets = column(tokens, number), column(batch.targets, number)
        letters = inputs[:symbols]
        assert all(letter < alphabet for letter in letters)
        expected_inputs, expected_targets = [], []
        for step in range(1, delay + 2 * symbols + 1):
            if step <= symbols:
                expected_inputs.append(letters[step - 1])
            else:
                expected_inputs.append(trigger if step == symbols + delay + 1 else blank)
            recalling = step > symbols + delay
            expected_targets.append(letters[step - symbols - delay - 1] if recalling else blank)
        assert inputs == expected_inputs
        assert targets == expected_targets
    assert batch.mask.all()
    scored = task.scored(batch)
    assert scored[-symbols:].all()
    assert not scored[:-symbols].any()
    assert task.baseline == pytest.approx(symbols * math.log(alphabet) / (delay + 2 * symbols))


def test_copying_letters_are_uniform_and_independent():
    _, batch, _ = drawn("copying", 20_000, delay=0, symbols=2, alphabet=4)
    pairs = batch.targets[-2] * 4 + batch.targets[-1]
    assert uniform(torch.bincount(pairs, minlength=16))


def test_copying_score_is_the_data_accuracy():
    task, batch, _ = drawn("copying", 50, delay=3, symbols=4, alphabet=5)
    output = torch.nn.functional.one_hot(batch.targets, 7).float()
    output[:-4] = 0
    output[-2, :20] = -output[-2, :20]
    assert task.score(output, batch) == pytest.approx(1 - 20 / 200)


@given(st.integers(1, 30), seeds)
def test_denoise(delay, seed):
    task, batch, tokens = drawn("denoise", 5, seed, delay=delay)
    assert task.steps == delay + 20
    for number in range(5):
        check_scattered(column(tokens, number), column(batch.targets, number), before=delay + 9, symbols=10, alphabet=8)
    assert batch.mask.all()
    assert task.baseline == pytest.approx(10 * math.log(8) / (delay + 20))


@given(st.integers(1, 6), st.integers(0, 12), st.integers(2, 7), seeds)
def test_selective_copy(symbols, noise, alphabet, seed):
    length = symbols + noise
    task, batch, tokens = drawn("selective-copy", 5, seed, symbols=symbols, length=length, alphabet=alphabet)
    assert task.steps == length + 1 + symbols
    for number in range(5):
        check_scattered(column(tokens, number), column(batch.targets, number), length, symbols, alphabet)
    assert task.scored(batch).sum() == 5 * symbols
    assert task.baseline == pytest.approx(symbols * math.log(alphabet) / (length + symbols + 1))


def check_scattered(inputs, targets, before, symbols, alphabet):
    letters = [token for token in inputs[:before] if token != 0]
    assert len(letters) == symbols
    assert all(1 <= letter <= alphabet for letter in letters)
    assert inputs[before:] == [alphabet + 1] + [0] * symbols
    assert targets == [0] * (before + 1) + letters


def test_denoise_is_selective_copy_in_one_size():
    a = ms.tasks.create("denoise", delay=31).sample(9, torch.Generator().manual_seed(4))
    b = ms.tasks.create("selective-copy", symbols=10, length=40, alphabet=8).sample(9, torch.Generator().manual_seed(4))
    assert torch.equal(a.inputs, b.inputs)
    assert torch.equal(a.targets, b.targets)


def test_places_are_a_uniform_subset():
    _, _, tokens = drawn("selective-copy", 30_000, symbols=2, length=5, alphabet=3)
    chosen = Counter(tuple(place.nonzero().flatten().tolist()) for place in (tokens[:5] > 0).T)
    assert len(chosen) == 10
    assert uniform(list(chosen.values()))


def test_transfer_copy_trains_as_copy_and_is_tested_beyond():
    task, batch, _ = drawn("transfer-copy", seed=5)
    copy = ms.tasks.create("copy", delay=100).sample(FEW, torch.Generator().manual_seed(5))
    assert all(torch.equal(a, b) for a, b in zip(batch, copy, strict=True))
    tests = task.evaluations()
    assert [one.task for one in tests] == [
        ms.tasks.create("copy", delay=delay) for delay in (100, 200, 400, 2000, 5000)
    ]
    assert {(one.batches, one.batch_size) for one in tests} == {(100, 100)}
    assert [one.label for one in tests][-1] == "delay=5000"
    assert ms.tasks.create("transfer-copy", tests=7).tests == (7,)


@given(st.integers(1, 4), st.integers(0, 9), st.integers(2, 6), seeds)
def test_start_end_similarity(half_symbols, room, alphabet, seed):
    m = 2 * half_symbols
    length = 2 * m + room
    task, batch, tokens = drawn("start-end-similarity", 8, seed, length=length, symbols=m, alphabet=alphabet)
    half = length // 2
    for number in range(8):
        inputs = column(tokens, number)
        offset = next(step for step in range(1, half + 1) if inputs[step - 1] != alphabet)
        assert offset == 1 if half == m else 1 <= offset <= half - m
        first = inputs[offset - 1 : offset - 1 + m]
        second = inputs[half + offset - 1 : half + offset - 1 + m]
        assert all(letter < alphabet for letter in first + second)
        assert sum(token == alphabet for token in inputs) == length - 2 * m
        matches = sum(a == b for a, b in zip(first, second, strict=True))
        assert matches == (0, m // 2, m)[int(batch.targets[number])]
    assert task.baseline == pytest.approx(math.log(3))


def test_start_end_similarity_is_uniform_in_class_places_letters_and_offset():
    _, batch, tokens = drawn("start-end-similarity", 60_000, length=12, symbols=4, alphabet=3)
    assert uniform(torch.bincount(batch.targets))
    starts = (tokens[:6] != 3).float().argmax(0)
    assert uniform(torch.bincount(starts, minlength=2))
    first = torch.stack([tokens.gather(0, (starts + i).unsqueeze(0))[0] for i in range(4)])
    second = torch.stack([tokens.gather(0, (starts + 6 + i).unsqueeze(0))[0] for i in range(4)])
    assert uniform(torch.bincount(first.flatten()))
    same = first == second
    half = batch.targets == 1
    subsets = Counter(tuple(column) for column in same[:, half].T.tolist())
    assert len(subsets) == 6
    assert uniform(list(subsets.values()))
    shift = ((second - first) % 3)[~same]
    assert uniform(torch.bincount(shift)[1:])


@given(st.integers(1, 5), st.integers(0, 9), st.integers(0, 4), seeds)
def test_mqar(pairs, room, spare, seed):
    vocabulary = 2 * (pairs + 1 + spare)
    half = vocabulary // 2
    task, batch, tokens = drawn("mqar", 6, seed, pairs=pairs, length=3 * pairs + room, vocabulary=vocabulary)
    for number in range(6):
        inputs = column(tokens, number)
        keys, values = inputs[0 : 2 * pairs : 2], inputs[1 : 2 * pairs : 2]
        assert len(set(keys)) == pairs
        assert all(1 <= key <= half for key in keys)
        assert all(half < value <= vocabulary for value in values)
        asked = inputs[2 * pairs :]
        assert sorted(token for token in asked if token) == sorted(keys)
        book = dict(zip(keys, values, strict=True))
        for step, token in enumerate(inputs):
            query = step >= 2 * pairs and token != 0
            assert bool(batch.mask[step, number]) == query
            if query:
                assert int(batch.targets[step, number]) == book[token] - half - 1
    assert task.output_size == half
    assert task.baseline == pytest.approx(math.log(half))


@given(st.integers(1, 5), st.integers(0, 9), st.integers(0, 4), seeds)
def test_mqar_variants(pairs, room, spare, seed):
    """The answers from the tokens alone: the last value of a key, or that of the key which it leads to."""
    vocabulary = 4 * (pairs + 1 + spare)
    half, again = vocabulary // 2, pairs // 2
    for name, written in (("mqar-forgetting", 2 * pairs + 2 * again), ("mqar-compositional", 4 * pairs)):
        length = written + pairs + room
        _, batch, tokens = drawn(name, 6, seed, pairs=pairs, length=length, vocabulary=vocabulary)
        for number in range(6):
            inputs = column(tokens, number)
            book = {}
            for first, second in zip(inputs[0:written:2], inputs[1:written:2], strict=True):
                assert 1 <= first <= half
                book[first] = second
            if name == "mqar-compositional":
                starts = inputs[0 : 2 * pairs : 2]
                assert len(book) == 2 * pairs
                answers = {key: book[book[key]] for key in starts}
            else:
                assert len(book) == pairs
                answers = book
            asked = [token for token in inputs[written:] if token]
            assert sorted(asked) == sorted(answers)
            for step, token in enumerate(inputs):
                query = step >= written and token != 0
                assert bool(batch.mask[step, number]) == query
                if query:
                    assert int(batch.targets[step, number]) == answers[token] - half - 1


def test_mqar_gaps_follow_the_power_law():
    """One pair: the chance of gap j is j^(0.01-1) over the sum; two pairs: the second is drawn from the others."""
    _, batch, _ = drawn("mqar", 40_000, pairs=1, length=12, vocabulary=4)
    counts = batch.mask[2:].sum(1)
    weights = torch.arange(1, 11).double() ** (0.01 - 1)
    assert stats.chisquare(counts, (weights / weights.sum() * 40_000)).pvalue > 1e-4
    _, batch, _ = drawn("mqar", 40_000, pairs=2, length=8, vocabulary=4)
    sets = Counter(tuple(places) for places in batch.mask[4:].T.tolist())
    weights = [j ** (0.01 - 1) for j in range(1, 5)]
    total = sum(weights)
    chances = {}
    for a in range(4):
        for b in range(a + 1, 4):
            where = tuple(place in (a, b) for place in range(4))
            first, second = weights[a], weights[b]
            chances[where] = first / total * second / (total - first) + second / total * first / (total - second)
    expected = [40_000 * chances[where] for where in sets]
    assert sum(chances.values()) == pytest.approx(1)
    assert stats.chisquare(list(sets.values()), expected).pvalue > 1e-4


def test_mqar_keys_values_and_order_are_uniform():
    _, batch, tokens = drawn("mqar", 40_000, pairs=2, length=6, vocabulary=6)
    assert uniform(torch.bincount(tokens[0] * 3 + tokens[2])[[5, 6, 7, 9, 10, 11]])
    assert uniform(torch.bincount(tokens[1])[4:])
    assert uniform(torch.bincount((tokens[4] == tokens[0]).long()))
    assert uniform(torch.bincount(batch.targets[4:].flatten()))


@given(st.integers(2, 30), seeds)
def test_adding(length, seed):
    task = ms.tasks.create("adding", length=length)
    batch = task.sample(6, torch.Generator().manual_seed(seed))
    for number in range(6):
        values, markers = (batch.inputs[:, number, row].tolist() for row in (0, 1))
        assert all(0 <= value < 1 for value in values)
        marked = [step for step, marker in enumerate(markers) if marker == 1]
        assert sum(markers) == 2
        assert marked[0] < length // 2 <= marked[1]
        assert float(batch.targets[number]) == pytest.approx(values[marked[0]] + values[marked[1]], rel=1e-6)


def test_adding_markers_and_values_are_uniform():
    batch = ms.tasks.create("adding", length=7).sample(30_000, torch.Generator().manual_seed(0))
    counts = batch.inputs[..., 1].sum(1)
    assert uniform(counts[:3])
    assert uniform(counts[3:])
    assert stats.kstest(batch.inputs[..., 0].flatten().numpy(), "uniform").pvalue > 1e-4
    assert float(batch.targets.var()) == pytest.approx(1 / 6, rel=0.03)
