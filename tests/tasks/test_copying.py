"""The copy task against its description, step by step."""

import math

import pytest
import torch

import mnemoscope as ms


def batch_of(delay: int, size: int = 64, seed: int = 0):
    task = ms.tasks.create("copy", delay=delay)
    return task, task.sample(size, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("delay", [1, 2, 7, 200])
def test_layout_is_symbols_blanks_cue_blanks(delay):
    task, batch = batch_of(delay)
    assert batch.inputs.shape == (delay + 20, 64, 10)
    assert torch.equal(batch.inputs.sum(-1), torch.ones(delay + 20, 64))
    tokens = batch.inputs.argmax(-1)
    for example in range(64):
        sequence = tokens[:, example].tolist()
        assert all(1 <= letter <= 8 for letter in sequence[:10])
        assert sequence[10:] == [0] * (delay - 1) + [9] + [0] * 10
        assert batch.targets[:, example].tolist() == [0] * (delay + 10) + sequence[:10]
    assert batch.mask.all()
    assert batch.lengths.tolist() == [delay + 20] * 64
    assert (task.input_size, task.output_size) == (10, 9)


def test_letters_are_uniform():
    _, batch = batch_of(3, size=20_000)
    counts = torch.bincount(batch.targets[-10:].flatten(), minlength=9)
    assert counts[0] == 0
    # 200,000 draws of 8 letters: standard deviation of a count is 148, so 6 of them is a fair margin.
    assert (counts[1:] - 25_000).abs().max() < 900


def test_same_generator_same_batch_and_global_generator_untouched():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    a, b, c = batch_of(5, seed=1)[1], batch_of(5, seed=1)[1], batch_of(5, seed=2)[1]
    assert torch.equal(a.inputs, b.inputs)
    assert not torch.equal(a.inputs, c.inputs)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("delay", [1, 100, 200])
def test_baseline_is_the_loss_of_the_memoryless_answer(delay):
    task, batch = batch_of(delay, size=512)
    # Certain of the blank until the last ten steps, where the eight letters are equally likely.
    output = torch.full((delay + 20, 512, 9), -1e4)
    output[:-10, :, 0] = 0.0
    output[-10:, :, 1:] = 0.0
    assert task.loss(output, batch).item() == pytest.approx(task.baseline, rel=1e-6)
    assert task.baseline == pytest.approx(10 * math.log(8) / (delay + 20))


def test_published_baseline():
    assert ms.tasks.create("copy").baseline == pytest.approx(0.0945, abs=5e-5)


def test_score_counts_the_last_ten_steps_only():
    task, batch = batch_of(4, size=100)
    right = torch.nn.functional.one_hot(batch.targets, 9).float()
    assert task.score(right, batch) == 1.0
    right[:-10] = torch.randn(right[:-10].shape)
    assert task.score(right, batch) == 1.0
    right[-1] = -right[-1]
    assert task.score(right, batch) == pytest.approx(0.9)


def test_loss_is_the_mean_over_all_steps():
    task, batch = batch_of(6, size=3)
    output = torch.randn(26, 3, 9, dtype=torch.float64)
    by_hand = [-output[t, b].log_softmax(0)[batch.targets[t, b]] for t in range(26) for b in range(3)]
    assert task.loss(output, batch).item() == pytest.approx(float(sum(by_hand)) / 78, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ms.tasks.create("copi"), "there is no task named 'copi'; did you mean 'copy'?"),
        (lambda: ms.tasks.create("copy", dely=3), "the task copy has no setting 'dely'; did you mean 'delay'?"),
        (lambda: ms.tasks.create("copy", delay=0), "delay must be a positive integer, got 0"),
        (lambda: ms.tasks.create("copy", delay=2.5), "delay must be a positive integer, got 2.5"),
        (lambda: ms.tasks.create("copy").sample(0), "batch must be a positive integer, got 0"),
        (lambda: ms.tasks.create("copy").sample(2, 7), "generator must be a torch.Generator or None, got 7"),
    ],
)
def test_bad_input_is_one_line(call, message):
    with pytest.raises(ms.core.errors.UserError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("shape", [(2, 25, 9), (25, 2, 30), (25, 9), (24, 2, 9)])
def test_output_of_another_shape_is_refused(shape):
    task, batch = batch_of(5, size=2)
    for judge in (task.loss, task.score):
        with pytest.raises(ms.core.errors.UserError) as caught:
            judge(torch.zeros(shape), batch)
        assert str(caught.value) == f"output must be of shape (25, 2, 9) (time, batch, output_size), got {shape}"
