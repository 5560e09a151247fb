"""Memory capacity by the eigenvalues of a state that falls apart: against matrices, polynomials and simulations."""

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures.capacity import memory
from mnemoscope.measures.capacity.memory import memory_capacity
from mnemoscope.theory.formulas.capacity import capacity_from_eigenvalues, ring_capacity
from mnemoscope.theory.formulas.inner import inner_curve


def build(name, **options):
    torch.manual_seed(2)
    return ms.nn.create(name, **{"input_size": 2, "hidden_size": 6} | options)


def pairs(count, least, largest, seed=0):
    rng = np.random.default_rng(seed)
    half = rng.uniform(least, largest, count) * np.exp(1j * rng.uniform(0, np.pi, count))
    return np.concatenate([half, half.conj()])


@pytest.mark.parametrize(("count", "least", "largest"), [(1, 0.2, 0.3), (10, 0.1, 0.9), (40, 0.9, 0.999)])
def test_inner_function_is_the_cascade(count, least, largest):
    values = pairs(count, least, largest)
    found = inner_curve(values, 3 * count, 1 << 17, 1e-12)
    np.testing.assert_allclose(found.curve, capacity_from_eigenvalues(values, len(found.curve)), atol=1e-13)
    assert found.curve.sum() + found.rest == pytest.approx(2 * count, rel=1e-12)
    assert found.error < 1e-12


def test_inner_function_of_a_ring():
    values = 0.8 * np.exp(2j * np.pi * np.arange(5) / 5)
    np.testing.assert_allclose(inner_curve(values, 40, 40, 0).curve, ring_capacity(5, 0.8, 40), atol=1e-14)


def test_poles_too_near_the_circle_for_any_transform_keep_their_first_digits(monkeypatch):
    monkeypatch.setattr("mnemoscope.theory.formulas.inner.LONGEST", 2048)
    values = pairs(3, 0.999, 0.9999)
    found = inner_curve(values, 500, 500, 0)
    np.testing.assert_allclose(found.curve, capacity_from_eigenvalues(values, 500), atol=1e-7)
    assert found.error == 1e-8


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("lru", {"radii": (0.3, 0.7)}),
        ("lru", {}),
        ("s4d", {"order": 4, "hidden_size": 3}),
        ("s4d", {"order": 4, "hidden_size": 3, "init": "real"}),  # both parts of a number then hear the same
        ("s4", {"order": 4, "hidden_size": 3}),
    ],
)
@pytest.mark.parametrize("direction", [None, (0.3, -2.0)])
def test_capacity_by_eigenvalues_is_that_of_the_matrices(name, options, direction, monkeypatch):
    layer = build(name, **options)
    found = memory_capacity(layer, direction=direction, degree=2)
    monkeypatch.setattr(memory, "block_capacity", lambda *_: None)
    wanted = memory_capacity(layer, direction=direction, degree=2)
    assert (found.total, found.rank, found.size, found.status) == (wanted.total, wanted.rank, wanted.size, "exact")
    assert found.radius == pytest.approx(wanted.radius, rel=1e-12)
    lags = min(len(found.curve), len(wanted.curve))
    np.testing.assert_allclose(found.profile[:, :lags], wanted.profile[:, :lags], atol=1e-11)


def test_units_that_hear_nothing_or_the_same_do_not_count():
    layer = build("lru")
    with torch.no_grad():
        layer.weight_ih_l0[:2] = 0
        layer.nu_l0[3], layer.theta_l0[3] = layer.nu_l0[2], layer.theta_l0[2]
    assert memory_capacity(layer).total == 8


def test_retention_hears_the_square_of_the_input():
    layer = build("retnet", hidden_size=8, heads=2)
    found = memory_capacity(layer, degree=2, lag=20)
    assert found.status == "exact"
    np.testing.assert_allclose(found.by_degree, [0, 8])
    estimate = memory_capacity(layer, degree=2, lag=20, exact=False, samples=40_000, washout=800)
    assert np.abs(found.profile[1] - estimate.profile[1]).max() < 0.01
    assert memory_capacity(layer).total == 0


@pytest.mark.parametrize("name", ["mingru", "minlstm", "rglru", "mamba"])
def test_linearised_at_rest(name, monkeypatch):
    layer = build(name)
    found = memory_capacity(layer, linearised=True)
    monkeypatch.setattr(memory, "block_capacity", lambda *_: None)
    wanted = memory_capacity(layer, linearised=True)
    assert found.total == wanted.total
    np.testing.assert_allclose(found.curve[:20], wanted.curve[:20], atol=1e-11)


def test_linearised_mingru_is_its_gates():
    layer = build("mingru").double()
    gates = torch.sigmoid(-layer.bias_l0[:6]).detach().numpy()
    np.testing.assert_allclose(
        memory_capacity(layer, linearised=True, lag=9).curve, capacity_from_eigenvalues(gates, 10), atol=1e-12
    )


def test_linearised_lstm_is_a_pair_of_matrices():
    found = memory_capacity(ms.nn.create("lstm", input_size=1, hidden_size=3), linearised=True)
    assert found.status == "exact"
    assert found.total <= 6


def test_as_many_inputs_as_directions_are_all_recovered():
    found = memory_capacity(build("lru"), horizon=5)
    np.testing.assert_array_equal(found.curve, np.ones(5))
    assert found.total == 5


def test_an_unstable_state_space_is_refused():
    layer = build("lru")
    with torch.no_grad():
        layer.nu_l0.fill_(-60.0)
    with pytest.raises(UserError, match="needs a stable"):
        memory_capacity(layer)


def test_linearised_is_exact_or_nothing():
    with pytest.raises(UserError, match="needs exact=True"):
        memory_capacity(build("lstm"), linearised=True, exact=False)


def test_a_state_of_16384_numbers():
    layer = ms.nn.create("retnet", input_size=1, hidden_size=256, heads=4)
    assert memory_capacity(layer, degree=2, lag=100).by_degree.tolist() == [0, 256]
