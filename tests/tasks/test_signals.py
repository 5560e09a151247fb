"""Tasks on Gaussian signals, against loops; their fixed sets; matrices of bits."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import mnemoscope as ms

seeds = st.integers(0, 2**32)


def drawn(name, size, seed, **settings):
    task = ms.tasks.create(name, **settings)
    return task, task.sample(size, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("name", "function"),
    [("lag-copy", lambda x: x), ("sinus", lambda x: math.sin(3 * x)), ("copy-sinus", lambda x: math.sin(3 * x))],
)
@given(lag=st.integers(0, 6), room=st.integers(1, 6), dimensions=st.integers(1, 4), seed=seeds)
def test_lagged(name, function, lag, room, dimensions, seed):
    length = lag + room
    _, batch = drawn(name, 3, seed, lag=lag, length=length, dimensions=dimensions)
    assert batch.inputs.shape == batch.targets.shape == (length, 3, dimensions)
    for number in range(3):
        for t in range(length):
            assert bool(batch.mask[t, number]) == (t >= lag)
            for d in range(dimensions):
                seen = function(float(batch.inputs[t - lag, number, d])) if t >= lag else 0.0
                assert float(batch.targets[t, number, d]) == pytest.approx(seen, abs=1e-6)


@given(st.integers(1, 12), st.integers(1, 4), seeds)
def test_parity(length, dimensions, seed):
    _, batch = drawn("parity", 3, seed, length=length, dimensions=dimensions)
    for number in range(3):
        for d in range(dimensions):
            product = 1.0
            for t in range(length):
                product *= float(batch.inputs[t, number, d])
                assert abs(product) == 1
                assert float(batch.targets[t, number, d]) == product
    assert batch.mask.all()


def test_defaults_are_those_of_the_document():
    lag, sinus, both, parity = (ms.tasks.create(name) for name in ("lag-copy", "sinus", "copy-sinus", "parity"))
    assert (lag.lag, lag.length, lag.dimensions) == (8, 16, 5)
    assert (sinus.lag, sinus.length, sinus.frequency) == (0, 16, 3.0)
    assert (both.lag, both.length) == (4, 16)
    assert (parity.length, parity.dimensions) == (20, 5)
    assert (lag.baseline, parity.baseline) == (1.0, 1.0)
    assert sinus.baseline == both.baseline == pytest.approx((1 - math.exp(-18)) / 2)


@pytest.mark.parametrize("frequency", [0.3, 1.0, 3.0])
def test_baseline_of_a_sine_is_its_variance_by_quadrature(frequency):
    density = stats.norm.pdf
    variance, _ = integrate.quad(lambda x: math.sin(frequency * x) ** 2 * density(x), -12, 12, limit=200)
    assert ms.tasks.create("sinus", frequency=frequency).baseline == pytest.approx(variance, rel=1e-8)


def test_inputs_are_gaussian_and_signs_fair():
    _, batch = drawn("lag-copy", 5_000, 0)
    assert stats.kstest(batch.inputs.flatten()[:100_000].numpy(), "norm").pvalue > 1e-4
    _, signs = drawn("parity", 5_000, 0, length=3, dimensions=1)
    words = ((signs.inputs[..., 0] > 0).long() * torch.tensor([[1], [2], [4]])).sum(0)
    assert stats.chisquare(torch.bincount(words, minlength=8)).pvalue > 1e-4


def test_fixed_sets_are_stored_by_sequence():
    train = ms.tasks.create("lag-copy").splits(0).train
    some = train.take(torch.tensor([3, 9_999]))
    assert torch.equal(some.inputs[:, 1], train.inputs[:, 9_999])
    assert torch.equal(some.targets[:, 0], train.targets[:, 3])
    assert train.inputs.transpose(0, 1)[5].is_contiguous()


# matrices -------------------------------------------------------------------------------------------


def matrices(task, batch, number):
    length = int(batch.lengths[number])
    return (part[:length, number].reshape(length, 5, 5) for part in (batch.inputs, batch.targets)), length


@given(st.integers(1, 3), st.integers(0, 3), st.booleans(), seeds)
def test_matrix_copy(shortest, more, start, seed):
    task, batch = drawn("matrix-copy", 6, seed, shortest=shortest, longest=shortest + more, start=start)
    assert task.input_shape == task.output_shape == (5, 5)
    assert batch.inputs.shape == (task.steps, 6, 5, 5)
    assert task.steps == 2 * (shortest + more) + 1 + start
    for number in range(6):
        (inputs, targets), length = matrices(task, batch, number)
        mask = batch.mask[:, number].tolist()
        if start:
            assert not inputs[0, :4].any()
            assert inputs[0, 4].tolist() == [1, 0, 0, 0, 1]
            assert not targets[0].any()
            assert not mask[0]
            inputs, targets, length, mask = inputs[1:], targets[1:], length - 1, mask[1:]
        count = (length - 1) // 2
        assert shortest <= count <= shortest + more
        assert length == 2 * count + 1
        expected_targets = torch.zeros(length, 5, 5)
        for i in range(count):
            assert set(inputs[i, :4].unique().tolist()) <= {0.0, 1.0}
            assert not inputs[i, 4].any()
            expected_targets[count + 1 + i] = inputs[i]
        end = torch.zeros(5, 5)
        end[4] = 1
        assert torch.equal(inputs[count], end)
        assert not inputs[count + 1 :].any()
        assert torch.equal(targets, expected_targets)
        assert mask == [count < t < length for t in range(len(mask))]
        assert not batch.inputs[length + start :, number].any()


@given(st.integers(2, 4), st.integers(0, 2), st.integers(1, 3), st.booleans(), seeds)
def test_matrix_recall(fewest, more, n, item_end, seed):
    settings = {"fewest": fewest, "items": fewest + more, "item_length": n, "item_end": item_end}
    task, batch = drawn("matrix-recall", 6, seed, **settings)
    each = n + 1 + item_end
    for number in range(6):
        (inputs, targets), length = matrices(task, batch, number)
        count = (length - 2 * n - 1) // each
        assert fewest <= count <= fewest + more
        assert length == each * count + 2 * n + 1
        items = []
        for i in range(count):
            marker, *contents = inputs[each * i : each * (i + 1)]
            if item_end:
                last = contents.pop()
                assert not last[:4].any()
                assert last[4].all()
            assert not marker[:4].any()
            assert marker[4].tolist() == [1, 0, 0, 0, 1]
            assert all(not content[4].any() for content in contents)
            items.append(torch.stack(contents))
        end = each * count
        delimiter = inputs[end]
        assert not delimiter[:4].any()
        assert delimiter[4].tolist() == [0, 1, 1, 1, 0]
        query, answer = inputs[end + 1 : end + 1 + n], targets[end + 1 + n :]
        assert any(torch.equal(query, items[c]) and torch.equal(answer, items[c + 1]) for c in range(count - 1))
        assert not inputs[end + 1 + n :].any()
        assert not targets[: end + 1 + n].any()
        assert batch.mask[:, number].tolist() == [length - n <= t < length for t in range(task.steps)]


def test_matrix_choices_are_uniform():
    _, batch = drawn("matrix-copy", 20_000, 0)
    assert stats.chisquare(torch.bincount((batch.lengths - 1) // 2, minlength=21)[1:]).pvalue > 1e-4
    first = batch.inputs[0, :, :4].flatten(1)
    assert first.mean(0).sub(0.5).abs().max() < 4.5 * 0.5 / math.sqrt(20_000)
    assert torch.corrcoef(first.T).fill_diagonal_(0).abs().max() < 5 / math.sqrt(20_000)
    _, batch = drawn("matrix-recall", 20_000, 0, items=4, fewest=4)
    items = batch.inputs[:12].reshape(4, 3, 20_000, 25)[:, 1:]
    asked = torch.stack([(batch.inputs[13:15].flatten(2) == items[c]).all(-1).all(0) for c in range(4)]).float()
    assert int(asked.sum()) == 20_000
    assert not asked[3].any()
    assert stats.chisquare(asked[:3].sum(1)).pvalue > 1e-4


def test_matrix_score_counts_the_random_rows_only():
    task, batch = drawn("matrix-copy", 4_000, 0, longest=3)
    output = torch.full((7, 4_000, 25), 1.0)
    share = float(batch.targets[batch.mask][:, :20].mean())
    assert task.score(output, batch) == task.score(output.unflatten(2, (5, 5)), batch) == pytest.approx(share)
    assert share == pytest.approx(0.5, abs=0.01)


def test_recall_is_validated_with_twelve_items():
    tests = {one.label: one.task for one in ms.tasks.create("matrix-recall").evaluations()}
    assert tests["items=12"].sample(9).lengths.tolist() == [3 * 12 + 5] * 9
    assert (tests["items=10"].items, tests["items=10"].fewest) == (10, 2)


def test_what_the_present_input_says_depends_on_the_lag():
    assert ms.tasks.create("sinus").memoryless == 0
    later = ms.tasks.create("copy-sinus")
    assert later.memoryless == later.baseline
    assert later.baseline_is == "saying the mean"
