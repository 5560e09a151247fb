"""The measure copy-capacity: what networks copy, how well the best readout does, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures.copying import copy_capacity
from mnemoscope.theory import copy_limit, copy_weights


def copier(lag: int, n: int, depth: int, d: int) -> ms.nn.LinearRNN:
    network = ms.nn.LinearRNN(d, n, depth, dtype=torch.float64)
    weights = copy_weights(lag, n, depth, d).weights
    network.load_state_dict({name: torch.as_tensor(value) for name, value in weights.items()})
    return network


@pytest.mark.parametrize(("n", "depth", "d"), [(4, 1, 1), (3, 3, 1), (5, 2, 2), (7, 3, 3), (3, 2, 3)])
def test_a_network_made_for_its_limit_reaches_it(n: int, depth: int, d: int) -> None:
    limit = copy_limit(n, depth, d)
    found = copy_capacity(copier(limit, n, depth, d))
    assert found.lags.max() == limit == found.limit
    assert (found.errors[found.lags] < 1e-14).all()
    assert found.denominator_degree == 0
    assert limit <= found.reach <= depth * (n - 1)
    assert found.status == "exact"


def test_a_random_network_copies_nothing_and_its_errors_are_those_of_regression() -> None:
    """The best readout is found again by least squares on draws; over an endless past it is 1 - memory capacity."""
    network = ms.nn.LinearRNN(1, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = copy_capacity(network, horizon=12)
    assert len(found.lags) == 0
    assert found.reach < 0
    x = torch.randn(12, 200_000, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with torch.no_grad():
        h = network(x)[0][-1]
    h = torch.cat([h, torch.ones(len(h), 1, dtype=torch.float64)], dim=1)
    for lag, error in enumerate(found.errors):
        target = x[-1 - lag]
        left = target - h @ torch.linalg.lstsq(h, target).solution
        assert abs(float(left.square().mean()) - error) < 0.01
    endless = copy_capacity(network, horizon=400)
    expected = ms.measures.memory_capacity(network).curve
    np.testing.assert_allclose(1 - endless.errors, np.asarray(expected)[: len(endless.errors)], atol=1e-9)


def test_relatives_of_rnn_with_the_identity_are_taken_too() -> None:
    line = np.diag(np.ones(3), -1)
    network = ms.nn.RNN(1, 4, nonlinearity="identity", bias=False, dtype=torch.float64)
    network.load_state_dict(
        {"weight_ih_l0": torch.eye(4, 1, dtype=torch.float64), "weight_hh_l0": torch.as_tensor(line)}
    )
    assert copy_capacity(network).lags.tolist() == [0, 1, 2, 3]


def test_one_of_two_inputs_may_be_copied_alone() -> None:
    network = ms.nn.LinearRNN(2, 3, bias=False, dtype=torch.float64)
    drive = torch.tensor([[1.0, 0], [0, 0], [0, 1.0]], dtype=torch.float64)
    recurrent = torch.tensor([[0, 0, 0], [1.0, 0, 0], [0, 0, 0.5]], dtype=torch.float64)
    network.load_state_dict({"weight_ih_l0": drive, "weight_hh_l0": recurrent})
    found = copy_capacity(network)
    assert found.inputs.tolist() == [[True, False], [True, False], [False, False]]
    assert len(found.lags) == 0
    assert "copies no lag exactly" in str(found)


def test_fewer_units_than_inputs_have_no_limit() -> None:
    found = copy_capacity(ms.nn.LinearRNN(3, 2, generator=torch.Generator().manual_seed(0)))
    assert found.limit is None
    assert found.cheapest_parameters is None
    assert "longest that its size allows: none" in str(found)
    found.plot().to_dict()


def test_the_finding_is_printed_drawn_and_written() -> None:
    found = copy_capacity(copier(4, 3, 2, 1))
    assert str(found).startswith("copies lag 2-4 exactly; longest that its size allows: 4 (2 x 3 units, 36 parameters")
    assert found.to_dict()["lags"] == [2, 3, 4]
    assert (found.cheapest_hidden_size, found.cheapest_num_layers, found.cheapest_parameters) == (5, 1, 35)
    found.plot().to_dict()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ms.nn.RNN(1, 3), "copy_capacity needs nonlinearity='identity' over the real field, got RNN"),
        (lambda: ms.nn.LSTM(1, 3), "copy_capacity needs a linear network"),
        (lambda: ms.nn.LinearRNN(1, 3, bidirectional=True), "bidirectional"),
        (lambda: "network", "network must be a torch.nn.Module"),
    ],
)
def test_what_is_not_linear_is_refused(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UserError, match=message):
        copy_capacity(make())


def test_bad_numbers_are_refused() -> None:
    network = ms.nn.LinearRNN(1, 3)
    with pytest.raises(
        UserError, match="horizon must be an integer of at least 3, one more than the longest lag, got 2"
    ):
        copy_capacity(network, horizon=2)
    with torch.no_grad():
        network.get_parameter("weight_hh_l0")[0, 0] = float("nan")
    with pytest.raises(UserError, match="must be finite, got NaN or inf in weight_hh_l0"):
        copy_capacity(network)
