"""Where batches come from: every sequence once a pass, the same place after coming back, tests apart from the rest."""

import pytest
import torch

import mnemoscope as ms
from mnemoscope.training.data import Fixed, Fresh, source_of
from mnemoscope.training.options import Options

LAG = ms.tasks.create("lag-copy", length=4, lag=1, dimensions=1)
COPY = ms.tasks.create("copy", delay=3)


def rows(batch):
    return [tuple(row) for row in batch.inputs.squeeze(-1).T.tolist()]


def test_a_pass_gives_every_sequence_once_in_a_new_order():
    source = source_of(LAG, Options(iterations=1, batch_size=128))
    assert isinstance(source, Fixed)
    passes = [[row for _ in range(source.epoch) for row in rows(source.next())] for _ in range(2)]
    everyone = rows(LAG.splits(0).train)
    assert sorted(passes[0]) == sorted(passes[1]) == sorted(everyone)
    assert passes[0] != passes[1]
    assert source.epoch == 79


@pytest.mark.parametrize(("task", "data"), [(LAG, "fixed"), (LAG, "fresh"), (COPY, None)])
def test_the_place_is_kept(task, data):
    options = Options(iterations=1, batch_size=5, data=data, seed=4)
    first, second = source_of(task, options), source_of(task, options)
    for _ in range(7):
        first.next()
    second.load(first.tensors())
    assert torch.equal(first.next().inputs, second.next().inputs)


def test_fresh_batches_validation_and_test_are_different_streams():
    source = source_of(COPY, Options(iterations=1, batch_size=10, validation_size=10, test_size=10))
    assert isinstance(source, Fresh)
    before = source.tensors()["generator"].clone()
    drawn = [next(source.held_out("validation")), next(source.tests()["delay=3"][1])]
    assert torch.equal(source.tensors()["generator"], before)
    again = next(source.held_out("validation"))
    assert torch.equal(drawn[0].inputs, again.inputs)
    drawn.append(source.next())
    assert len({batch.inputs.numpy().tobytes() for batch in drawn}) == 3


def test_held_out_data_has_the_size_asked_for():
    source = source_of(COPY, Options(iterations=1, validation_size=1203))
    assert sum(batch.size for batch in source.held_out("validation")) == 1203
    fixed = source_of(LAG, Options(iterations=1))
    assert sum(batch.size for batch in fixed.held_out("test")) == 2000


def test_transfer_copy_is_tested_at_every_delay():
    task = ms.tasks.create("transfer-copy")
    source = source_of(task, Options(iterations=1, test_size=2))
    assert len(source.tests()) == 5
