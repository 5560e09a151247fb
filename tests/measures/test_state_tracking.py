"""State-tracking witnesses: exact null histories, networks that are confused by them, and the search for all others."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.core.ring import Real
from mnemoscope.measures.tracking.witness import state_tracking_witness
from mnemoscope.theory import confused_difference, product_tracker, unrolled_matrix


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 100), st.integers(0, 2))
def test_the_exact_difference_is_invisible_in_fractions(n: int, d: int, seed: int, extra: int) -> None:
    draw = np.random.default_rng(seed)
    u, v = draw.normal(size=(n, d)), draw.normal(size=(n, n))
    found = confused_difference(u, v, n // d + 1 + extra)
    exact = np.frompyfunc(Fraction, 1, 1)
    h = np.array([Fraction(0)] * n, dtype=object)
    for x in found:
        h = exact(v) @ h + exact(u) @ x
    assert all(entry == 0 for entry in h)
    assert max(abs(entry) for entry in found.ravel()) == 1
    if n >= d:
        with pytest.raises(UserError, match=f"tell apart all histories of {n // d} steps"):
            confused_difference(u, v, n // d)


@pytest.mark.parametrize(
    ("name", "d", "n", "options"),
    [
        ("rnn", 1, 6, {"activation": "depth"}),
        ("rnn", 2, 5, {"activation": "depth", "nonlinearity": "relu"}),
        ("linear-rnn", 1, 4, {"num_layers": 3}),
        ("scornn", 2, 6, {"activation": "depth"}),
        ("exprnn", 1, 3, {"activation": "depth", "field": "complex"}),
    ],
)
def test_affine_states_are_confused_for_ever(name: str, d: int, n: int, options: dict[str, object]) -> None:
    layer = ms.nn.create(name, input_size=d, hidden_size=n, generator=torch.Generator().manual_seed(1), **options)
    found = state_tracking_witness(layer, after=20)
    assert found.proved
    assert found.status == "exact"
    assert found.state_size < d * found.horizon <= found.state_size + d
    assert found.gap < 1e-12
    assert (found.distances[found.horizon - 1 :] < 1e-12).all()
    assert found.distances[: found.horizon - 1].max() > 1e-3  # they are told apart on the way
    assert found.tracker_gap >= 1
    assert set(np.unique(found.history)) <= {-1.0, 1.0}
    np.testing.assert_array_equal(found.tracker_outputs[0], found.history.prod(axis=0))
    np.testing.assert_allclose(found.tracker_outputs[1], found.twin.prod(axis=0), atol=1e-15)
    # The network itself, in its own forward pass, and not the measure's copy.
    pair = torch.as_tensor(np.stack([found.history, found.twin], axis=1))
    with torch.no_grad():
        y = layer.double()(pair)[0][-1]
    np.testing.assert_allclose(y.numpy(), found.outputs, atol=1e-12)
    np.testing.assert_allclose(y[0].numpy(), y[1].numpy(), atol=1e-12)


def test_the_difference_is_a_null_vector_of_the_unrolled_matrix() -> None:
    layer = ms.nn.RNN(2, 5, activation="depth", generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    found = state_tracking_witness(layer)
    u, v = (layer.get_parameter(f"{name}_l0").detach().numpy() for name in ("weight_ih", "weight_hh"))
    response = unrolled_matrix(u, v, found.horizon)
    assert np.abs(response @ (found.twin - found.history).ravel()).max() < 1e-14
    assert found.rank == np.linalg.matrix_rank(response) == 5
    # No null vector that turns an entry into zero is shorter than the one that was taken.
    null = np.linalg.svd(response)[2][5:]
    least = 1 / np.sqrt((null**2).sum(axis=0).max())
    assert np.linalg.norm(found.twin - found.history) == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize("make", [lambda g: ms.nn.RNN(1, 3, generator=g), lambda g: ms.nn.GRU(1, 3, generator=g)])
def test_the_search_confuses_small_networks_with_a_nonlinear_recurrence(make) -> None:  # type: ignore[no-untyped-def]
    layer = make(torch.Generator().manual_seed(0))
    found = state_tracking_witness(layer)
    assert not found.proved
    assert found.status == "estimate"
    assert found.rank is None
    assert found.gap < 1e-6
    assert found.tracker_gap == 1.0
    pair = torch.as_tensor(np.stack([found.history, found.twin], axis=1))
    with torch.no_grad():
        y = layer.double()(pair)[0][-1]
    assert float((y[0] - y[1]).norm()) < 1e-6


def test_a_short_history_is_not_confused_by_a_wide_network() -> None:
    layer = ms.nn.RNN(1, 16, generator=torch.Generator().manual_seed(0))
    found = state_tracking_witness(layer, horizon=3)
    assert found.gap > 1e-3


def test_deep_networks_with_activation_in_depth_are_searched() -> None:
    layer = ms.nn.RNN(1, 3, 2, activation="depth", generator=torch.Generator().manual_seed(2))
    found = state_tracking_witness(layer)
    assert not found.proved
    assert found.horizon == 8


def test_the_tracker_is_the_product_of_the_inputs() -> None:
    network = ms.nn.SecondOrderRNN(3, 3, nonlinearity="identity", bias=False, dtype=torch.float64)
    network.load_state_dict({name: torch.as_tensor(value) for name, value in product_tracker(3).items()})
    x = np.random.default_rng(0).normal(size=(5, 1, 3))
    y, _ = network.evaluate(Real(), network.exact_weights(Real()), x, (np.ones((1, 3)),))
    np.testing.assert_allclose(y[:, 0], x[:, 0].cumprod(axis=0), rtol=1e-13)


def test_the_finding_is_printed_drawn_and_repeated() -> None:
    layer = ms.nn.RNN(2, 4, activation="depth", generator=torch.Generator().manual_seed(0))
    found, again = (state_tracking_witness(layer, seed=5) for _ in range(2))
    assert np.array_equal(found.twin, again.twin)
    assert str(found).startswith("two histories of 3 steps are provably confused")
    assert found.to_dict()["proved"] is True
    found.plot().to_dict()


def test_bad_input_is_told() -> None:
    layer = ms.nn.RNN(1, 4, activation="depth", generator=torch.Generator().manual_seed(0))
    with pytest.raises(
        UserError, match="a state of 4 numbers tells apart all histories of 4 steps of 1 inputs; horizon=5"
    ):
        state_tracking_witness(layer, horizon=4)
    with pytest.raises(UserError, match="after must be a positive integer, got -1"):
        state_tracking_witness(layer, after=-1)
    with pytest.raises(UserError, match="network must be a torch.nn.Module"):
        state_tracking_witness("rnn")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="U must be of 2 rows"):
        confused_difference(np.ones((3, 1)), np.eye(2), 2)
