"""What training says about networks that may go wrong with it."""

import random
import warnings

import pytest
import torch

import mnemoscope as ms
from mnemoscope.tasks.datasets import DATASETS
from mnemoscope.training import fit, fit_population
from mnemoscope.training.cautions import size_of

COPY = ms.tasks.create("copy", delay=2)
QUICK = {"iterations": 1, "batch_size": 2, "test_size": 10}


def test_a_penalty_that_is_left_out_is_said():
    said = "^NNRNN asks for its penalty to be added to the loss, and penalty=0 leaves it"
    with pytest.warns(UserWarning, match=said):
        fit(ms.nn.NNRNN(10, 4), COPY, penalty=0.0, **QUICK)
    with pytest.warns(UserWarning, match=said):
        fit_population([ms.nn.NNRNN(10, 4) for _ in range(2)], COPY, penalty=0.0, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(ms.nn.NNRNN(10, 4), COPY, **QUICK)
        fit(ms.nn.ExpRNN(10, 4), COPY, penalty=0.0, **QUICK)


@pytest.fixture
def text(tmp_path):
    dataset = DATASETS["tinyshakespeare"]
    (tmp_path / dataset.folders[0]).mkdir()
    file = tmp_path / dataset.folders[0] / dataset.files[0].name
    file.write_text("".join(random.Random(0).choices("to be, or not", k=40_000)))
    return ms.tasks.create("shakespeare", length=20, data=str(tmp_path), verify=False)


READING = {"iterations": 2, "batch_size": 3, "truncate": 10, "validate_every": 2}


@pytest.mark.parametrize("name", ["scornn", "exprnn", "nnrnn"])
def test_a_carried_state_that_grows_is_said(name, text):
    layer = ms.nn.create(name, 5, 16, nonlinearity="identity", generator=torch.Generator().manual_seed(1))
    with pytest.warns(UserWarning, match=r"carried on from window to window and grows .*; nonlinearity='tanh' does$"):
        fit(layer, text, **READING)


@pytest.mark.parametrize("name", ["scornn", "rnn", "lstm", "lru"])
def test_a_carried_state_that_is_bounded_is_not_spoken_of(name, text):
    options = {"nonlinearity": "tanh"} if name == "scornn" else {}
    layer = ms.nn.create(name, 5, 16, generator=torch.Generator().manual_seed(1), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(layer, text, **READING)


def test_the_size_of_a_state_is_its_root_mean_square():
    state = (torch.tensor([[3.0, 4.0]]), torch.tensor([[3 + 4j]]), torch.zeros(0))
    assert size_of(state) == pytest.approx(((9 + 16 + 25) / 3) ** 0.5)
