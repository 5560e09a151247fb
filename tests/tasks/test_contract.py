"""What holds for every task: shapes, seeds, baselines, perfect answers, the axis of difficulty."""

import dataclasses
import json
import math

import pytest
import torch
from tests.tasks.every_task import FEW, SETTINGS, frequencies, perfect, small, without_memory
from torch.utils._pytree import tree_leaves

import mnemoscope as ms
from mnemoscope.core.docs import arguments
from mnemoscope.core.errors import UserError
from mnemoscope.core.references import REFERENCES

NAMES = ms.tasks.names()
SYNTHETIC = [name for name in FEW if not ms.tasks.get(name).dataset]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def equal(one, other):
    return all(torch.equal(x, y) for x, y in zip(tree_leaves(one), tree_leaves(other), strict=True))


@pytest.fixture(params=FEW)
def task(request, data):
    return small(request.param, data)


def test_all_tasks_of_the_issue_are_there():
    wanted = """copying copy transfer-copy denoise lag-copy adding start-end-similarity sinus copy-sinus parity
    matrix-copy matrix-recall smnist pmnist mnist shakespeare ptb mqar mqar-forgetting mqar-compositional
    selective-copy group-composition dyck
    listops pathfinder scifar retrieval
    same-different rmts dist3 identity-rules rmts-3 same-different-6 identity-rules-4 identity-rules-4-missing
    identity-rules-4-flipped identity-rules-4-flipped-missing dist-n dist-n-restricted separated-inputs comparison
    transitive-comparison games-same games-between games-occurs games-xoccurs games-row-matching games-colour-shape
    games-left-of"""
    assert sorted(wanted.split()) == NAMES == sorted(SETTINGS)


def test_shapes_and_types(task):
    batch = task.sample(6, generator())
    steps = task.steps
    if task.embedding:
        assert batch.inputs.shape == ((steps, 6, 2) if task.kind == "pairs" else (steps, 6))
        assert batch.inputs.dtype == torch.int64
        assert int(batch.inputs.max()) < task.embedding == task.input_size
    else:
        inputs = batch.inputs.dense() if task.kind == "relational" else batch.inputs
        assert inputs.shape == (steps, 6, *task.input_shape)
        assert inputs.dtype == torch.float32
        assert inputs.is_contiguous()
    known = {(6,), (steps, 6), (steps, 6, task.output_size)}
    assert tuple(batch.targets.shape) in known
    assert batch.targets.dtype == (torch.int64 if task.classifies else torch.float32)
    assert batch.mask.shape == (steps, 6)
    assert batch.mask.dtype == torch.bool
    assert batch.lengths.shape == ((6, 2) if task.kind == "pairs" else (6,))
    assert batch.lengths.dtype == torch.int64
    assert 1 <= int(batch.lengths.min()) <= int(batch.lengths.max()) <= steps
    for number, length in enumerate(batch.ends.tolist()):
        assert batch.mask[:length, number].any()
        assert not batch.mask[length:, number].any()
        if batch.per_sequence:
            assert batch.mask[:, number].nonzero().tolist() == [[length - 1]]
    assert batch.size == 6
    assert math.prod(task.input_shape) == task.input_size
    assert math.prod(task.output_shape) == task.output_size


def test_one_seed_one_batch_and_the_global_generator_is_left_alone(task):
    before = torch.get_rng_state()
    a, b, c = (task.sample(8, generator(seed)) for seed in (3, 3, 4))
    assert equal(a, b)
    assert not equal(a.inputs, c.inputs)
    assert torch.equal(before, torch.get_rng_state())
    drawn = task.sample(8)
    torch.set_rng_state(before)
    again = task.sample(8)
    assert equal(drawn.inputs, again.inputs)


def test_a_batch_of_a_seed_goes_to_another_device_as_it_is(task):
    meta = task.sample(3, generator(), device="meta")
    here = task.sample(3, generator(), device="cpu")
    assert all(part.device.type == "meta" for part in tree_leaves(meta))
    assert [part.shape for part in tree_leaves(meta)] == [part.shape for part in tree_leaves(here)]
    assert equal(here, task.sample(3, generator()))


def test_perfect_answers_have_no_loss_and_score_one(task):
    batch = task.sample(40, generator())
    output = perfect(task, batch)
    assert task.loss(output, batch).item() == pytest.approx(0.0, abs=1e-9)
    assert task.score(output, batch) == pytest.approx(1.0, abs=1e-9)


def test_what_is_not_counted_changes_nothing(task):
    batch = task.sample(9, generator())
    output = perfect(task, batch)
    output[~batch.mask] = float("nan")
    assert task.loss(output, batch).item() == pytest.approx(0.0, abs=1e-9)
    assert task.score(output, batch) == pytest.approx(1.0, abs=1e-9)


def test_last_step_alone_will_do_for_one_target_per_sequence(task):
    batch = task.sample(7, generator())
    if not batch.per_sequence:
        return
    output = torch.randn(task.steps, 7, task.output_size, generator=generator(5))
    last = torch.stack([output[length - 1, number] for number, length in enumerate(batch.ends)])
    assert torch.equal(task.loss(output, batch), task.loss(last, batch))
    assert task.score(output, batch) == task.score(last, batch)


@pytest.mark.parametrize("name", [name for name in SYNTHETIC if name not in ("dyck", "listops")])
def test_baseline_is_the_loss_of_answering_without_memory(name, data):
    task = small(name, data)
    drawn = task.kind == "regression"
    batch = task.sample(20_000 if drawn else 500, generator())
    loss = task.loss(without_memory(task, batch), batch).item()
    # Classes: exactly the same. Numbers: an average over 20,000 sequences, within 4 standard deviations (2%).
    assert loss == pytest.approx(task.baseline, rel=0.02 if drawn else 1e-6)


@pytest.mark.parametrize("name", ["dyck", "listops"])
def test_baseline_is_that_of_the_marginal_distribution(name, data):
    task = small(name, data)
    batch = task.sample(20_000, generator())
    output = frequencies(batch.targets, task.output_size).expand(*batch.targets.shape, -1)
    assert task.loss(output, batch).item() == pytest.approx(task.baseline, rel=0.005)


@pytest.mark.parametrize("name", ["smnist", "pmnist", "mnist", "scifar"])
def test_baseline_of_digits_is_that_of_ten_equal_chances(name, data):
    task = small(name, data)
    batch = task.sample(50, generator())
    assert task.loss(torch.zeros(task.steps, 50, 10), batch).item() == pytest.approx(task.baseline, rel=1e-6)


@pytest.mark.parametrize("name", ["shakespeare", "ptb"])
def test_baseline_of_text_is_that_of_the_frequencies(name, data):
    task = small(name, data)
    train = task.splits().train
    output = frequencies(train.targets, task.output_size).expand(*train.targets.shape, -1)
    # Whole pieces leave a few characters of the text out.
    assert task.loss(output, train).item() == pytest.approx(task.baseline, rel=0.005)
    assert task.score(output, train) == pytest.approx(0.0, abs=0.005)


def test_regression_scores_nothing_for_the_baseline(data):
    task = small("parity", data)
    batch = task.sample(30, generator())
    assert task.score(torch.zeros(6, 30, 5), batch) == pytest.approx(0.0, abs=1e-7)


def test_limits_can_be_reached_and_not_passed(task):
    if not task.difficulty:
        with pytest.raises(UserError, match="has no setting that makes it harder"):
            task.limits()
        return
    for axis in task.axes or (task.difficulty,):
        least, most = task.limits(axis)
        assert getattr(task.harder(least, axis), axis) == least
        task.harder(least, axis).sample(2, generator())
        with pytest.raises(UserError):
            task.harder(least - 1, axis)
        if most is not None:
            task.harder(most, axis).sample(2, generator())
            with pytest.raises(UserError):
                task.harder(most + 1, axis)


def test_harder_changes_the_difficulty_and_nothing_else(task):
    if not task.difficulty:
        return
    value = 14 if task.name == "mnist" else task.limits()[0] + 2
    before, after = dataclasses.asdict(task), dataclasses.asdict(task.harder(value))
    assert after.pop(task.difficulty) == value
    del before[task.difficulty]
    assert before == after
    with pytest.raises(UserError, match="axis must be"):
        task.harder(2, "colour")


def test_settings_survive_json_and_make_the_same_task(task, data):
    settings = json.loads(json.dumps(task.settings()))
    where = {"data": data} if task.dataset else {}
    assert ms.tasks.create(task.name, **settings, **where) == task
    assert "data" not in settings


def test_evaluations_are_of_the_same_kind(task):
    for one in task.evaluations():
        assert (one.task.input_size, one.task.output_size, one.task.kind) == (
            task.input_size,
            task.output_size,
            task.kind,
        )
        assert one.batches * one.batch_size == 10_000
    labels = [one.label for one in task.evaluations()]
    assert len(set(labels)) == len(labels) >= 1


def test_take_gives_the_sequences_by_number(task):
    batch = task.sample(10, generator())
    some = batch.take(torch.tensor([7, 0, 7]))
    for place, number in enumerate([7, 0, 7]):
        if task.kind == "relational":
            assert torch.equal(some.inputs.dense()[:, place], batch.inputs.dense()[:, number])
        else:
            assert torch.equal(some.inputs[:, place], batch.inputs[:, number])
        assert torch.equal(some.mask[:, place], batch.mask[:, number])
        picked = batch.targets[number] if batch.per_sequence else batch.targets[:, number]
        assert torch.equal(some.targets[place] if batch.per_sequence else some.targets[:, place], picked)
    assert all(part.is_contiguous() for part in tree_leaves(some.inputs))
    assert batch.take(slice(2, 5)).size == 3


def test_fixed_sets_are_the_same_for_a_seed_and_do_not_overlap(task, monkeypatch):
    if task.name == "listops":
        monkeypatch.setattr(type(task), "sizes", (1000, 100, 100))
    sets = task.splits(1)
    if sets is None:
        return
    again = task.splits(1)
    for one, two in zip(sets, again, strict=True):
        assert torch.equal(one.inputs, two.inputs)
        assert torch.equal(one.targets, two.targets)
    wanted = {"mnist": (110, 10, 20), "pmnist": (110, 10, 20), "smnist": (110, 10, 20)}
    if task.dataset is None:
        known = {"listops": (1000, 100, 100), "pathfinder": (64, 8, 8)}
        assert tuple(one.size for one in sets) == known.get(task.name, (10_000, 2_000, 2_000))
        other = task.splits(2)
        assert not torch.equal(sets.train.inputs, other.train.inputs)
        fresh = task.sample(sets.train.size, generator(1))
        assert not torch.equal(sets.train.inputs, fresh.inputs.to(sets.train.inputs.dtype))
    elif task.name in wanted:
        assert tuple(one.size for one in sets) == wanted[task.name]
    if task.kind == "regression" and task.name != "parity":
        rows = torch.cat([one.inputs.transpose(0, 1).flatten(1) for one in sets])
        assert len(torch.unique(rows, dim=0)) == 14_000


@pytest.mark.parametrize("name", SYNTHETIC)
def test_loss_is_the_mean_over_counted_steps_by_hand(name, data):
    task = small(name, data)
    batch = task.sample(4, generator(2))
    output = torch.randn(task.steps, 4, task.output_size, dtype=torch.float64, generator=generator(3))
    terms = []
    for t in range(task.steps):
        for b in range(4):
            if not batch.mask[t, b]:
                continue
            target = batch.targets[b] if batch.per_sequence else batch.targets[t, b]
            if task.classifies:
                terms.append(float(torch.logsumexp(output[t, b], 0) - output[t, b, target]))
                continue
            for answer, wanted in zip(output[t, b].tolist(), target.double().reshape(-1).tolist(), strict=True):
                if task.kind == "binary":
                    chance = 1 / (1 + torch.exp(torch.tensor(-answer, dtype=torch.float64)).item())
                    terms.append(-torch.log(torch.tensor(chance if wanted else 1 - chance)).item())
                else:
                    terms.append((answer - wanted) ** 2)
    assert task.loss(output, batch).item() == pytest.approx(sum(terms) / len(terms), rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_is_described_and_every_reference_known(name):
    cls = ms.tasks.get(name)
    assert all(argument.meaning for argument in arguments(cls))
    assert cls.references
    assert not set(cls.references) - set(REFERENCES)
    assert cls.metric
    assert cls.naive


def test_output_of_another_shape_is_refused(task):
    batch = task.sample(2, generator())
    for judge in (task.loss, task.score):
        with pytest.raises(
            UserError, match=r"output must be of shape \(\d+, 2, \d+\) \(time, batch, output_size\), got"
        ):
            judge(torch.zeros(task.steps + 1, 2, task.output_size), batch)


def test_text_is_the_only_contiguous_one(task):
    if task.streams:
        assert next(task.windows("train", 2)).size == 2
    else:
        with pytest.raises(UserError, match="has no contiguous text"):
            task.windows("train", 2)
