"""The fast losses against the task's own: values and gradients, masks of every make, one network and many."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._pytree import tree_map

import mnemoscope as ms
from mnemoscope.core.seeds import stream
from mnemoscope.tasks import Batch
from mnemoscope.training.cohort import CohortStep
from mnemoscope.training.model import build_model
from mnemoscope.training.objective import Objective, counted_steps, quick_score
from mnemoscope.training.options import Options

FILES = {"smnist", "pmnist", "mnist", "shakespeare", "ptb", "scifar", "retrieval"}
NAMES = [name for name in ms.tasks.names() if name not in FILES]
SMALL = {"listops": {"longest": 24, "shortest": 3}, "pathfinder": {"side": 14, "dashes": 2}} | {
    "transfer-copy": {"delay": 5},
    "copy": {"delay": 5},
    "denoise": {"delay": 5},
    "copying": {"delay": 5},
}


def model_of(task, seed=0):
    generator = torch.Generator().manual_seed(seed)
    width = task.input_size if task.embedding is None else 6
    layer = ms.nn.RNN(width, 7, dtype=torch.float64, generator=generator)
    return build_model(layer, task, "linear", stream(seed, "readout"))


def double(batch):
    wide = tree_map(lambda part: part.double() if part.is_floating_point() else part, batch.inputs)
    return batch._replace(inputs=wide)


def gradients(loss, model):
    return torch.autograd.grad(loss, list(model.parameters()))


@pytest.mark.parametrize("name", NAMES)
def test_the_fast_loss_is_the_tasks(name):
    task = ms.tasks.create(name, **SMALL.get(name, {}))
    model = model_of(task)
    objective = Objective(model, task)
    assert objective.fast
    batch = double(task.sample(6, torch.Generator().manual_seed(1)))
    hidden, _ = model.hidden(batch.inputs)
    fast = objective(hidden, batch)
    ours = gradients(fast, model)
    slow = task.loss(model(batch.inputs)[0], batch)
    torch.testing.assert_close(fast, slow, rtol=1e-12, atol=1e-12)
    for a, b in zip(ours, gradients(slow, model), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("name", NAMES)
def test_the_quick_score_is_the_tasks(name):
    task = ms.tasks.create(name, **SMALL.get(name, {}))
    model = model_of(task)
    batch = double(task.sample(6, torch.Generator().manual_seed(1)))
    hidden, _ = model.hidden(batch.inputs)
    quick = quick_score(task, model.answers, hidden, batch)
    assert quick == pytest.approx(task.score(model(batch.inputs)[0], batch), abs=1e-12)


@given(data=st.data(), steps=st.integers(1, 6), size=st.integers(1, 5), kind=st.sampled_from(["copy", "parity"]))
def test_any_mask_counts_as_the_task_counts_it(data, steps, size, kind):
    task = ms.tasks.create(kind)
    flags = data.draw(st.lists(st.booleans(), min_size=steps * size, max_size=steps * size))
    mask = torch.tensor(flags).view(steps, size)
    if not mask.any():
        return
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(steps, size, task.input_size, generator=generator, dtype=torch.float64)
    shape = (steps, size) if kind == "copy" else (steps, size, task.output_size)
    targets = torch.randint(2, shape, generator=generator)
    batch = Batch(inputs, targets if kind == "copy" else targets.float(), mask, torch.full((size,), steps))
    models = [model_of(task, seed) for seed in (0, 1)]
    alone = []
    for model in models:
        fast = Objective(model, task)(model.hidden(inputs)[0], batch)
        torch.testing.assert_close(fast, task.loss(model(inputs)[0], batch), rtol=1e-12, atol=1e-12)
        alone.append(float(fast.detach()))
    whole = batch._replace(mask=torch.ones_like(mask))
    cohort = CohortStep(models, task, [Options(iterations=1)] * 2)
    together = cohort([batch, whole])  # members whose masks differ
    assert together[0] == pytest.approx(alone[0], rel=1e-12)
    assert together[1] == pytest.approx(float(task.loss(models[1](inputs)[0], whole).detach()), rel=1e-12)


@given(st.integers(1, 6), st.integers(1, 5), st.data())
def test_counted_steps(steps, size, data):
    flags = data.draw(st.lists(st.booleans(), min_size=steps * size, max_size=steps * size))
    mask = torch.tensor(flags).view(steps, size)
    count, last = counted_steps(mask)
    assert count == sum(flags)
    ends = [k for k in range(steps + 1) if torch.equal(mask, torch.arange(steps)[:, None].expand_as(mask) >= steps - k)]
    assert last == (ends[0] if ends else None)


def test_an_own_loss_and_an_own_readout_are_used():
    task = ms.tasks.create("copy", delay=5)
    layer = ms.nn.RNN(10, 7)
    readout = torch.nn.Sequential(torch.nn.Linear(7, 9))
    model = build_model(layer, task, readout, stream(0, "readout"))
    batch = task.sample(4)
    hidden, _ = model.hidden(batch.inputs)
    objective = Objective(model, task)
    assert not objective.fast
    torch.testing.assert_close(objective(hidden, batch), task.loss(readout(hidden), batch))
    own = Objective(model, task, lambda answers, batch: answers.square().mean())
    torch.testing.assert_close(own(hidden, batch), readout(hidden).square().mean())
