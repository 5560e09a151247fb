"""Degrees of second-order networks against the recursion and SymPy, and the constructions against what they compute."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.core.ring import Symbolic
from mnemoscope.theory import (
    birnn_degree,
    birnn_degrees,
    birnn_input_degree,
    cp_image_dimension,
    diagonal_tensor,
    parity_weights,
)


def recursion(s, T, L):
    """Degree in x_s by the step: state before, plus the layer below."""
    if s > T:
        return 0
    if L == 0:
        return int(s == T)
    return recursion(s, T - 1, L) + recursion(s, T, L - 1)


@pytest.mark.parametrize("T", range(1, 7))
@pytest.mark.parametrize("L", range(1, 5))
def test_degrees_follow_the_recursion_and_add_up(T, L):
    each = [birnn_input_degree(s, T, L) for s in range(1, T + 1)]
    assert each == [recursion(s, T, L) for s in range(1, T + 1)]
    assert birnn_degree(T, L) == sum(each) <= T**L
    assert birnn_degrees(1, T, L)[-1, -1] == each[0]


@pytest.mark.parametrize(("T", "L"), [(1, 2), (2, 2), (3, 2), (2, 3), (3, 3), (4, 1)])
def test_one_unit_shows_the_degree_in_sympy(T, L):
    """A product of ones as weights: the state itself is a monomial whose exponents are the degrees."""
    x = sympy.symbols(f"x1:{T + 1}")
    states = [sympy.Integer(1)] * L
    for letter in x:
        below = letter
        for layer in range(L):
            states[layer] = states[layer] * below
            below = states[layer]
    assert sympy.Poly(states[-1], *x).monoms() == [tuple(birnn_input_degree(s, T, L) for s in range(1, T + 1))]


def test_after_the_horizon_nothing_is_known():
    assert birnn_input_degree(4, 3, 2) == 0
    assert birnn_degrees(3, 4, 2).tolist() == [[0, 0, 1, 1], [0, 0, 1, 2]]


@pytest.mark.parametrize(("n", "d"), [(2, 2), (3, 2), (2, 3)])
def test_the_diagonal_tensor_makes_powers_of_the_first_input(n, d):
    L = 3
    network = ms.nn.BIRNN(d, n, num_layers=L)
    ring = Symbolic()
    weights = {f"weight_bilinear_l{k}": ring.array(diagonal_tensor(n, d if k == 0 else n)) for k in range(L)}
    x = np.array(sympy.symbols(f"x:{2 * d}"), dtype=object).reshape(2, 1, d)
    outputs, _ = network.evaluate(ring, weights, x)
    both = min(n, d)
    wanted = [x[0, 0, i] ** L * x[1, 0, i] for i in range(both)] + [0] * (n - both)
    assert [sympy.expand(a - b) for a, b in zip(outputs[1, 0], wanted, strict=True)] == [0] * n


@pytest.mark.parametrize("d", [1, 5])
def test_parity_is_computed_exactly_at_any_length(d):
    network = ms.nn.create("2rnn", input_size=d, hidden_size=d, nonlinearity="identity", dtype=torch.float64)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in parity_weights(d).items()})
    signs = torch.randint(0, 2, (500, 3, d), generator=torch.Generator().manual_seed(0)).double() * 2 - 1
    output, _ = network(signs)
    assert torch.equal(output + 1, signs.cumprod(0))


def test_the_image_of_a_cp_network_is_the_least_of_three_sizes():
    assert [cp_image_dimension(d, n, R) for d, n, R in ((2, 5, 5), (5, 2, 5), (5, 5, 2))] == [2, 2, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: birnn_degree(0, 1), "horizon must be a positive integer"),
        (lambda: birnn_degree(2, 1.5), "num_layers must be a positive integer"),
        (lambda: birnn_input_degree(0, 2, 1), "step must be a positive integer"),
        (lambda: birnn_degrees(1, 100, 100), "below 2\\^63"),
        (lambda: cp_image_dimension(1, 2, 0), "rank must be a positive integer"),
        (lambda: diagonal_tensor(0, 1), "hidden_size must be a positive integer"),
        (lambda: parity_weights(-1), "input_size must be a positive integer"),
    ],
)
def test_bad_sizes_are_named(call, message):
    with pytest.raises(UserError, match=message):
        call()
