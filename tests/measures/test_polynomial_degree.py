"""Degrees of polynomial networks: finite differences against SymPy, the closed form and degenerate weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures.degree import polynomial_degree
from mnemoscope.theory import (
    birnn_degree,
    birnn_degrees,
    birnn_input_degree,
    cp_image_dimension,
    diagonal_tensor,
)


def network(name, d, n, L, seed=0, **options):
    if name in ("2rnn", "cprnn", "mirnn"):
        options["nonlinearity"] = "identity"
    generator = torch.Generator().manual_seed(seed)
    return ms.nn.create(name, input_size=d, hidden_size=n, num_layers=L, generator=generator, **options)


SECOND_ORDER = ["2rnn", "birnn", "cpbirnn", "cprnn", "rac", "mirnn"]


@pytest.mark.parametrize("name", SECOND_ORDER)
@pytest.mark.parametrize(("T", "L"), [(1, 1), (2, 3), (4, 2), (5, 3)])
def test_generic_weights_reach_the_closed_form(name, T, L):
    found = polynomial_degree(network(name, 2, 3, L), T)
    assert found.degree == found.bound == birnn_degree(T, L)
    assert found.by_input.tolist() == [birnn_input_degree(s, T, L) for s in range(1, T + 1)]
    for s in range(1, T + 1):
        assert np.array_equal(found.layers[:, :, s - 1], birnn_degrees(s, T, L))
    assert found.totals.tolist() == [[birnn_degree(t, layer) for t in range(1, T + 1)] for layer in range(1, L + 1)]


@pytest.mark.parametrize("name", SECOND_ORDER)
@pytest.mark.parametrize(("d", "n", "T", "L"), [(1, 2, 3, 2), (2, 2, 2, 2), (2, 1, 3, 1)])
def test_interpolation_agrees_with_sympy(name, d, n, T, L):
    layer = network(name, d, n, L, seed=T)
    numeric, symbolic = polynomial_degree(layer, T), polynomial_degree(layer, T, method="symbolic")
    assert numeric.degree == symbolic.degree
    assert np.array_equal(numeric.layers, symbolic.layers)
    assert np.array_equal(numeric.totals, symbolic.totals)
    assert numeric.image_dimension == symbolic.image_dimension


def test_special_weights_have_lower_degrees_and_both_methods_say_so():
    """A second layer that ignores its first unit's history: A[0] = 0 and A[:, :, 1] = 0 in layer 1."""
    layer = network("2rnn", 2, 2, 2)
    with torch.no_grad():
        layer.weight_bilinear_l1.zero_()
        layer.weight_bilinear_l0[:, 0] = 0
        layer.weight_hh_l0.zero_()
    numeric, symbolic = polynomial_degree(layer, 3), polynomial_degree(layer, 3, method="symbolic")
    assert numeric.degree == symbolic.degree == 3 < numeric.bound
    assert np.array_equal(numeric.layers, symbolic.layers)


def test_a_linear_network_has_degree_one_at_any_depth():
    layer = ms.nn.create("linear-rnn", input_size=2, hidden_size=3, num_layers=2)
    found = polynomial_degree(layer, 4)
    assert found.degree == 1
    assert found.by_input.tolist() == [1, 1, 1, 1]


def test_the_diagonal_construction_reaches_the_degree():
    layer = network("birnn", 2, 2, 3)
    with torch.no_grad():
        for k in range(3):
            layer.get_parameter(f"weight_bilinear_l{k}").copy_(torch.from_numpy(diagonal_tensor(2, 2)))
    found = polynomial_degree(layer, 2)
    assert (found.degree, found.by_input.tolist()) == (4, [3, 1])


def test_a_residual_connection_changes_no_degree():
    assert polynomial_degree(network("birnn", 2, 2, 3, residual=True), 4).degree == birnn_degree(4, 3)


def test_a_long_and_deep_network_is_within_reach():
    found = polynomial_degree(network("birnn", 3, 6, 3), 12)
    assert found.degree == birnn_degree(12, 3) == 364


@pytest.mark.parametrize(("d", "n", "R"), [(3, 4, 1), (3, 4, 2), (3, 4, 3), (3, 4, 4), (2, 5, 4), (5, 2, 4)])
@pytest.mark.parametrize("L", [1, 3])
def test_the_image_of_a_cp_network_has_the_dimension_of_the_least_size(d, n, R, L):
    found = polynomial_degree(network("cpbirnn", d, n, L, rank=R), 1)
    assert found.image_dimension == found.image_bound == cp_image_dimension(d, n, R)


def test_the_output_is_what_the_readout_leaves():
    layer = network("birnn", 2, 2, 2, output_size=1)
    with torch.no_grad():
        layer.weight_out.zero_()
    found = polynomial_degree(layer, 3)
    assert found.degree == 0
    assert found.totals[-1, -1] == birnn_degree(3, 2)


def test_results_speak_draw_and_export():
    found = polynomial_degree(network("birnn", 2, 2, 2), 3)
    assert (
        str(found) == "degree 6 after 3 steps (3 in the first input, 1 in the last; at most 6); h_1 fills 2 dimensions"
    )
    assert found.to_dict()["degree"] == 6
    assert found.plot().to_dict()
    assert found.plot(step=3).to_dict()
    with pytest.raises(UserError, match="step must be from 1 to 3"):
        found.plot(step=4)


def test_the_network_is_left_as_it_is():
    layer = network("birnn", 2, 2, 2)
    before = [parameter.clone() for parameter in layer.parameters()]
    polynomial_degree(layer, 3)
    assert all(torch.equal(a, b) for a, b in zip(before, layer.parameters(), strict=True))
    assert next(layer.parameters()).dtype == torch.float32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: polynomial_degree(ms.nn.LSTM(2, 2), 3), "needs a polynomial network, got LSTM"),
        (lambda: polynomial_degree(network("birnn", 2, 2, 1), 0), "horizon must be a positive integer"),
        (lambda: polynomial_degree(network("birnn", 2, 2, 1), 2, method="guess"), "method must be"),
        (lambda: polynomial_degree(network("birnn", 3, 3, 3), 9, method="symbolic"), "are allowed"),
        (lambda: polynomial_degree(3, 2), "network must be a torch.nn.Module"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(UserError, match=message):
        call()


def test_nan_weights_are_refused():
    layer = network("birnn", 2, 2, 1)
    with torch.no_grad():
        layer.weight_bilinear_l0[0, 0, 0] = float("nan")
    with pytest.raises(UserError, match="finite"):
        polynomial_degree(layer, 2)


def test_a_grid_of_points_beyond_the_memory_is_refused(monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_MEMORY", "0.0001")
    with pytest.raises(UserError, match="needs .* of memory"):
        polynomial_degree(network("birnn", 2, 2, 3), 12)
