"""Tasks of matrices train networks of matrices: binary cross entropy of logits, elementwise clipping, limits."""

import pytest
import torch
import torch.nn.functional as F

import mnemoscope as ms

TASKS = [("matrix-copy", {"longest": 2}, 10.0), ("matrix-recall", {"items": 2}, 20.0)]


def machine():
    return ms.nn.create(
        "matntm",
        input_size=(5, 5),
        hidden_size=(6, 6),
        memory=(5, 3, 3),
        output_nonlinearity="identity",
        generator=torch.Generator().manual_seed(0),
    )


@pytest.mark.parametrize(("name", "sizes", "clip"), TASKS)
def test_the_loss_is_the_cross_entropy_of_the_bits_that_are_asked_for(name, sizes, clip):
    task = ms.tasks.create(name, **sizes)
    batch = task.sample(7, torch.Generator().manual_seed(0))
    logits = torch.randn(batch.targets.shape, generator=torch.Generator().manual_seed(1))
    wanted = F.binary_cross_entropy(logits[batch.mask].sigmoid(), batch.targets[batch.mask])
    torch.testing.assert_close(task.loss(logits, batch), wanted)


def largest_change(layer, task, **options):
    before = [p.detach().clone() for p in layer.parameters()]
    run = ms.training.fit(layer, task, iterations=1, batch_size=8, readout="none", lr=1.0, test_size=4, **options)
    assert run.status == "finished"
    return max(float((p - old).detach().abs().max()) for p, old in zip(layer.parameters(), before, strict=True))


@pytest.mark.parametrize(("name", "sizes", "clip"), TASKS)
def test_every_entry_of_the_gradient_is_clipped(name, sizes, clip):
    """With eps = 1 a first step of RMSprop is at most lr times the clipped entry, and far more where nothing is."""
    task = ms.tasks.create(name, **sizes)
    options = {"optimizer": "rmsprop", "momentum": 0.9, "eps": 1.0}
    bound = clip * 1e-6
    assert 0 < largest_change(machine().double(), task, clip_value=bound, **options) <= bound
    assert largest_change(machine().double(), task, clip_value=clip, **options) > 10 * bound


@pytest.mark.parametrize(("name", "sizes", "clip"), TASKS)
def test_a_limit_is_looked_for(name, sizes, clip):
    task = ms.tasks.create(name, **sizes)
    level = task.limits()[0]
    found = ms.training.capacity(
        machine(), task, seeds=1, grid=[level], iterations=2, batch_size=4, clip_value=clip, test_size=8
    )
    assert found.limit in (None, 0, level)
    assert len(found.curve) == 1
