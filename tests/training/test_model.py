"""What is put around a layer."""

import math

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.training import Model, build_model, stream
from mnemoscope.training.model import spec_for

COPY = ms.tasks.create("copy", delay=3)


def test_the_readout_is_drawn_from_the_seed_within_its_bound():
    models = [build_model(ms.nn.RNN(10, 16), COPY, "linear", stream(seed, "readout")) for seed in (0, 0, 1)]
    weights = [model.readout.weight.detach() for model in models]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert weights[0].shape == (9, 16)
    assert float(weights[0].abs().max()) <= 1 / math.sqrt(16)
    assert float(weights[0].abs().max()) > 0.8 / math.sqrt(16)


def test_the_model_takes_the_layers_type():
    model = build_model(ms.nn.RNN(10, 4, dtype=torch.float64), COPY, "linear", stream(0, "readout"))
    assert {p.dtype for p in model.parameters()} == {torch.float64}


def test_groups_penalty_and_after_step_are_the_layers():
    layer = ms.nn.ExpRNN(10, 6, rebase=1)
    model = build_model(layer, COPY, "linear", stream(0, "readout"))
    groups = model.parameter_groups(0.1, 0.01)
    assert [group["lr"] for group in groups] == [0.1, 0.01]
    held = [id(p) for group in groups for p in group["params"]]
    assert sorted(held) == sorted(id(p) for p in model.parameters())
    assert float(model.penalty()) == float(layer.penalty())
    before = layer.transition("weight_hh_l0").base.clone()
    with torch.no_grad():
        for p in model.parameters():
            p += 0.1
    model.after_step()
    assert not torch.equal(before, layer.transition("weight_hh_l0").base)


def test_a_module_without_groups_is_one_group():
    model = build_model(nn.GRU(10, 6), COPY, "linear", stream(0, "readout"))
    (group,) = model.parameter_groups(0.1)
    assert len(group["params"]) == len(list(model.parameters()))
    assert model.penalty() is None


def test_a_classifier_answers_once_per_sequence():
    layer = ms.nn.TT(4, 3, 6, 5)
    model = Model(None, layer, None)
    x = torch.randn(6, 2, 4)
    answers, state = model(x)
    assert state is None
    torch.testing.assert_close(answers, layer(x.transpose(0, 1)))


@pytest.mark.parametrize("batch_first", [False, True])
def test_time_is_first_whatever_the_layer_reads(batch_first):
    generator = torch.Generator().manual_seed(0)
    layer = ms.nn.RNN(10, 6, batch_first=batch_first, generator=generator)
    model = build_model(layer, COPY, "linear", stream(0, "readout"))
    x = COPY.sample(3, torch.Generator().manual_seed(1)).inputs
    other = ms.nn.RNN(10, 6, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model(x)[0], model.readout(other(x)[0]))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("corelnet", "corelnet answers questions about images, which copying does not ask: it takes relational tasks"),
        ("tt", "answers once for a sequence, and its sizes are its own: --set features=10 --set length=220 "),
    ],
)
def test_a_task_that_a_network_of_this_kind_cannot_answer(name, words):
    with pytest.raises(UserError, match=words):
        spec_for(ms.nn.NetworkSpec(name), ms.tasks.create("copying", delay=200))
