"""What networks of today are for, learned by gradient descent: parity, a long lag, recall by keys."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import mnemoscope as ms


def trained(layer, outputs, batches, *, lr, iterations):
    """Train a layer with a linear readout on batches of (inputs, loss of the outputs), and return both."""
    head = nn.Linear(layer.output_size, outputs)
    parameters = [*layer.parameters(), *head.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, iterations)
    for _ in range(iterations):
        x, loss = batches()
        optimiser.zero_grad()
        loss(head(layer(x)[0])).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        schedule.step()
    return lambda x: head(layer(x)[0])


def parity_accuracy(name, seed, **options):
    """Train on parity of 40 bits and return the accuracy at the steps of 256 bits."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)

    def draw(steps):
        bits = torch.randint(2, (steps, 64), generator=generator)
        return F.one_hot(bits, 2).float(), bits.cumsum(0) % 2

    def batches():
        x, y = draw(40)
        return x, lambda output: F.cross_entropy(output.flatten(0, 1), y.flatten())

    layer = ms.nn.create(name, input_size=2, hidden_size=16, **options)
    model = trained(layer, 2, batches, lr=1e-2, iterations=600)
    with torch.no_grad():
        x, y = draw(256)
        return (model(x).argmax(-1) == y).float().mean().item()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["deltanet", "mamba"])
def test_parity_needs_a_negative_eigenvalue(name):
    assert parity_accuracy(name, 0, negative_eigenvalues=True) > 0.75
    assert parity_accuracy(name, 0) < 0.55


def lag_score(name, hidden_size, **options):
    """Train on an input that comes back after 100 of 1000 steps, and return 1 - error / naive error."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    task = ms.tasks.create("lag-copy", lag=100, length=1000)

    def batches():
        batch = task.sample(8, generator)
        return batch.inputs, lambda output: task.loss(output, batch)

    layer = ms.nn.create(name, input_size=task.input_size, hidden_size=hidden_size, **options)
    model = trained(layer, task.output_size, batches, lr=1e-2, iterations=250)
    with torch.no_grad():
        batch = task.sample(16, generator)
        return float(task.score(model(batch.inputs), batch)), sum(p.numel() for p in layer.parameters())


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_state_spaces_carry_an_input_through_a_lag_that_an_lstm_of_as_many_parameters_does_not():
    """The bar is low since there are 250 updates: an LSTM has not begun to learn then."""
    (lru, many), (s4, few) = lag_score("lru", 64, phase=0.3), lag_score("s4", 56, groups=56)
    lstm, parameters = lag_score("lstm", 58)
    assert max(many, few) <= parameters
    assert lstm < 0.02
    assert lru > lstm + 0.04
    assert s4 > lstm + 0.1


def recall(name, pairs, seed):
    """Train one block with a matrix state of 2 x 16 x 16 numbers on recall of pairs, and return the accuracy."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    task = ms.tasks.create("mqar", pairs=pairs, length=64, vocabulary=64)

    def batches():
        batch = task.sample(64, generator)
        return batch.inputs, lambda output: task.loss(output, batch)

    layer = ms.nn.create(name, input_size=task.input_size, hidden_size=32, heads=2, block=True)
    model = trained(layer, task.output_size, batches, lr=3e-3, iterations=1000)
    with torch.no_grad():
        batch = task.sample(256, generator)
        return float(task.score(model(batch.inputs), batch))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_delta_rule_recalls_more_of_16_pairs_than_a_sum_of_equal_state():
    """16 pairs under keys of 16 numbers; a network solves it above 0.9.

    Seeds differ, and no single one decides: deltanet had 0.93, 1.00, 0.96, 0.97, 0.85, 0.90 (solved 4 times; the
    last two are below 0.9), gla 0.36, 0.83, 0.64, 0.43, 0.89, 0.64 (never), and at seed 4 gla was ahead. The bounds
    were set after these runs, half of the way from what was seen to no difference.

    It holds in this setting, not in general: with 128 symbols, one head of 32 and 2,000 updates six seeds had 0.85,
    0.98, 0.15, 0.73, 0.97, 0.51 (mean 0.70) against gla's 0.71, 0.84, 0.73, 0.56, 0.85, 0.91 (mean 0.77).
    """
    delta, added = ([recall(name, 16, seed) for seed in range(6)] for name in ("deltanet", "gla"))
    assert sum(delta) / 6 > sum(added) / 6 + 0.15
    assert sum(score > 0.9 for score in delta) >= sum(score > 0.9 for score in added) + 2
