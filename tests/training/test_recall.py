"""The recall ceiling: bits by Fano's inequality against brute force, of searches, and of states of several types."""

import itertools
import math

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope import training
from mnemoscope.core.errors import UserError
from mnemoscope.training.recalls import recalled_bits

TINY = {
    "hidden_size": 3,
    "vocabulary": 8,
    "length": 12,
    "iterations": 2,
    "seeds": 2,
    "batch_size": 4,
    "test_size": 4,
    "validation_size": 4,
    "layout": "sequential",
    "progress": False,
}


@pytest.mark.parametrize(("values", "error"), [*itertools.product((2, 3, 8), (0.0, 0.1, 0.4))])
def test_fano_is_the_information_of_a_symmetric_channel(values, error):
    """A channel whose errors are uniform has exactly these bits: I(X; Y) from its joint table."""
    joint = np.full((values, values), error / (values - 1) / values) * (1 - np.eye(values))
    joint += np.eye(values) * (1 - error) / values
    rows, columns = joint.sum(1, keepdims=True), joint.sum(0, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.nansum(joint * np.log2(joint / (rows * columns)))
    assert recalled_bits(5, 1 - error, values) == pytest.approx(5 * information)


def test_no_bits_below_chance_and_none_of_one_value():
    assert recalled_bits(9, 0.0, 4) == pytest.approx(0)
    with pytest.raises(UserError, match="values must be at least 2: one value says nothing, got 1"):
        recalled_bits(3, 1.0, 1)


def test_bits_of_a_search_follow_from_its_pairs():
    found = training.recall("rnn", criterion=1e-9, start=1, **TINY)
    assert found.variants == ("mqar", "mqar-forgetting", "mqar-compositional")
    for pairs, bits, search in zip(found.pairs, found.bits, found.capacities, strict=True):
        assert pairs == (search.limit or 0)
        assert bits == pairs * math.log2(4)
    assert found.state_bits == 3 * 32
    assert all(found.best_bits >= 0)
    assert "recalls" in str(found)
    assert found.plot().to_dict()
    assert found.to_dict()["capacities"][0]["task"] == "mqar"


def test_bits_of_a_state_by_its_type():
    half = {"variants": ["mqar"], **{name: value for name, value in TINY.items() if name != "hidden_size"}}
    assert training.recall(ms.nn.LSTM(9, 3), **half).state_bits == 2 * 3 * 32
    assert training.recall(ms.nn.RNN(9, 3, dtype=torch.float64), **half).state_bits == 3 * 64
    assert training.recall(torch.nn.GRU(9, 3), **half).state_bits == 3 * 32


def test_bad_inputs():
    with pytest.raises(UserError, match="vocabulary must be a whole number of at least 4, got 1"):
        training.recall("rnn", **{**TINY, "vocabulary": 1})
    with pytest.raises(UserError, match="variants must be different ones"):
        training.recall("rnn", variants=["mqar", "mqar"], **TINY)
    with pytest.raises(UserError, match="a variant must be 'mqar'"):
        training.recall("rnn", variants=["mqr"], **TINY)
