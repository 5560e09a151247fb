"""Copy capacity: the construction runs, nothing beyond it exists, and the exact lags agree with other arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.core.ring import Real
from mnemoscope.theory import (
    LinearLayer,
    copied_lags,
    copy_certificate,
    copy_frontier,
    copy_limit,
    copy_parameters,
    copy_weights,
    copy_width,
    critical_width,
    impulse_response,
    linear_layers,
    transfer_degrees,
)


def layers_of(weights: dict[str, np.ndarray], depth: int) -> list[LinearLayer]:
    names = ("weight_ih", "weight_hh", "bias")
    return linear_layers(*([weights[f"{name}_l{k}"] for k in range(depth)] for name in names))


def random_layers(seed: int, depth: int, n: int, d: int, bias: bool = True) -> list[LinearLayer]:
    draw = np.random.default_rng(seed)
    widths = [d] + [n] * depth
    return linear_layers(
        [draw.normal(size=(n, widths[k])) for k in range(depth)],
        [draw.normal(size=(n, n)) / n for _ in range(depth)],
        [draw.normal(size=n) * bias for _ in range(depth)],
    )


sizes = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 5))


@settings(max_examples=40, deadline=None)
@given(sizes, st.integers(0, 3))
def test_the_weights_copy_in_the_network_itself(size: tuple[int, int, int], spare: int) -> None:
    d, depth, lag = size
    n = d + -(-lag * d // depth) + spare
    found = copy_weights(lag, n, depth, d)
    network = ms.nn.LinearRNN(d, n, depth, dtype=torch.float64)
    network.load_state_dict({name: torch.as_tensor(value) for name, value in found.weights.items()})
    x = torch.randn(lag + 6, 2, d, dtype=torch.float64, generator=torch.Generator().manual_seed(lag))
    y = network(x)[0] @ torch.as_tensor(found.readout).T
    assert torch.equal(y[lag:], x[: len(x) - lag])
    assert not y[:lag].any()


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 4))
def test_exact_lags_of_the_construction_reach_the_limit_and_not_beyond(d: int, depth: int, extra: int) -> None:
    n = d + extra
    limit = copy_limit(n, depth, d)
    layers = layers_of(copy_weights(limit, n, depth, d).weights, depth)
    whole = np.asarray(copied_lags(layers).all(axis=1))
    assert whole[limit]
    assert not whole[limit + 1 :].any()
    assert copy_certificate(limit, n, depth, d).possible
    assert not copy_certificate(limit + 1, n, depth, d).possible
    degrees = transfer_degrees(layers)
    assert degrees.denominator == 0  # a delay line is nilpotent
    assert np.flatnonzero(copied_lags(layers).any(axis=1)).max() <= degrees.numerator <= depth * (n - 1)
    with pytest.raises(UserError, match=f"got lag {limit + 1}; hidden_size {copy_width(limit + 1, depth, d)} would do"):
        copy_weights(limit + 1, n, depth, d)


def test_lags_survive_a_change_of_basis_and_a_bias_that_is_constant() -> None:
    """Integer matrices of determinant 1, so that floats hold everything exactly; a bias enters the last layer."""
    layers = layers_of(copy_weights(5, 4, 2).weights, 2)
    expected = copied_lags(layers)
    turn = np.eye(4) + np.diag([2.0, -1, 3], 1)
    back = np.round(np.linalg.inv(turn))
    assert np.array_equal(turn @ back, np.eye(4))
    (u1, v1, b1), (u2, v2, _) = layers
    turned = linear_layers([turn @ u1, u2 @ back], [turn @ v1 @ back, v2], [b1, np.array([3.0, 0, 0, 0])])
    lags = copied_lags(turned)
    assert expected.ravel().tolist() == [False, False, False, True, True, True, False]
    # The bias passes the second layer's line: the readout's own bias can undo it only where it is constant from step 1.
    assert lags.ravel().tolist() == [False, False, False, True, False, False, False]
    assert (copied_lags(linear_layers([u1, u2], [v1, v2])) == expected).all()


def exact_rational_lags(layers: list[LinearLayer], lags: int) -> list[bool]:
    """The same question by rational elimination on numerators, W N(z) = z^p q(z), one input, no biases."""
    import flint

    poly = flint.fmpq_poly

    def inverse(v: np.ndarray) -> tuple[list[list[flint.fmpq_poly]], flint.fmpq_poly]:
        """adj(I - z V) and det(I - z V) by Faddeev and LeVerrier."""
        n = len(v)
        a = flint.fmpq_mat([[flint.fmpq(*Fraction(float(x)).as_integer_ratio()) for x in row] for row in v])
        one = flint.fmpq_mat([[flint.fmpq(int(i == j)) for j in range(n)] for i in range(n)])
        m, powers, det = one, [one], [flint.fmpq(1)]
        for k in range(1, n + 1):
            product = a * m
            c = -sum((product[i, i] for i in range(n)), flint.fmpq(0)) / k
            det.append(c)
            m = product + one * c
            powers.append(m)
        adj = [[poly([powers[k][i, j] for k in range(n)]) for j in range(n)] for i in range(n)]
        return adj, poly(det)

    column, q = [[poly([1])]], poly([1])
    for u, v, _ in layers:
        adj, det = inverse(v)
        entries = [[poly([flint.fmpq(*Fraction(float(x)).as_integer_ratio())]) for x in row] for row in u]
        column = _times(adj, _times(entries, column, poly), poly)
        q = q * det
    width = lags + q.degree() + 1
    pad = [[(row[0])[k] for k in range(width)] for row in column]
    rank = flint.fmpq_mat(pad).rank()
    shifted = [[q[k - p] if k >= p else flint.fmpq(0) for k in range(width)] for p in range(lags)]
    return [flint.fmpq_mat([*pad, row]).rank() == rank for row in shifted]


def _times(a: Any, b: Any, poly: Any) -> Any:
    return [[sum((x * row[j] for x, row in zip(r, b, strict=True)), poly([0])) for j in range(len(b[0]))] for r in a]


@pytest.mark.parametrize("seed", range(6))
def test_lags_agree_with_rational_elimination_on_the_numerators(seed: int) -> None:
    draw = np.random.default_rng(seed)
    depth, n = int(draw.integers(1, 4)), int(draw.integers(2, 5))
    widths = [1] + [n] * depth
    # Strictly triangular matrices with a few feedback entries: some lags are copied, others are not.
    recurrent = [
        np.tril(draw.integers(-2, 3, size=(n, n)), -1) + np.diag((draw.random(n) < 0.15) * 0.5) for _ in range(depth)
    ]
    layers = linear_layers([draw.integers(-2, 3, size=(n, widths[k])) for k in range(depth)], recurrent)
    found = copied_lags(layers)[:, 0].tolist()
    assert found == exact_rational_lags(layers, len(found))


def test_random_weights_copy_nothing_and_their_degrees_say_so() -> None:
    layers = random_layers(0, 2, 4, 2)
    assert not copied_lags(layers).any()
    assert transfer_degrees(layers) == (2 * 3, 2 * 4)


def test_degrees_agree_with_sympy() -> None:
    import sympy

    z = sympy.Symbol("z")
    draw = np.random.default_rng(3)
    u, v = draw.integers(-2, 3, size=(3, 1)), np.tril(draw.integers(-3, 4, size=(3, 3)))
    v[0, 0] = 0
    pencil = sympy.eye(3) - z * sympy.Matrix(v.tolist())
    above = pencil.adjugate() * sympy.Matrix(u.tolist())
    degrees = transfer_degrees(linear_layers([u], [v]))
    assert degrees.numerator == max(sympy.degree(entry, z) for entry in above if entry != 0)
    assert degrees.denominator == sympy.degree(pencil.det(), z)


def test_impulse_response_adds_up_to_the_network_with_its_biases() -> None:
    layers = random_layers(1, 3, 4, 2)
    network = ms.nn.LinearRNN(2, 4, 3, dtype=torch.float64)
    network.load_state_dict(
        {
            f"{name}_l{k}": torch.as_tensor(getattr(layer, name))
            for k, layer in enumerate(layers)
            for name in layer._fields
        }
    )
    x = torch.randn(7, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    answers = impulse_response(Real(), layers, 7)
    expected = [
        sum(answers[t - s, :, :2] @ x[s, 0].numpy() for s in range(t + 1)) + answers[: t + 1, :, 2].sum(axis=0)
        for t in range(7)
    ]
    np.testing.assert_allclose(network(x)[0][:, 0].detach().numpy(), np.array(expected), atol=1e-12)


@pytest.mark.parametrize(("n", "depth", "d", "o"), [(5, 1, 3, 0), (4, 3, 2, 2), (7, 2, 1, 1)])
def test_parameters_are_those_of_the_network(n: int, depth: int, d: int, o: int) -> None:
    counted = sum(p.numel() for p in ms.nn.LinearRNN(d, n, depth).parameters())
    counted += sum(p.numel() for p in torch.nn.Linear(n, o).parameters()) if o else 0
    assert copy_parameters(n, depth, d, o) == counted


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(1, 5))
def test_frontier_has_every_depth_at_its_least_width(lag: int, d: int) -> None:
    found = copy_frontier(lag, d)
    assert sorted(layers for _, layers, _ in found) == list(range(1, lag + 1))
    assert [cost for *_, cost in found] == sorted(cost for *_, cost in found)
    for n, layers, cost in found:
        assert copy_limit(n, layers, d) >= lag > (copy_limit(n - 1, layers, d) if n > d else -1)
        assert cost == (2 * layers - 1) * n * n + (layers + d) * n


def test_reference_sizes() -> None:
    assert [copy_width(8, layers, 5) for layers in (1, 2, 4, 8)] == [45, 25, 15, 10]
    assert copy_width(3, 2, 2) == 5
    assert copy_frontier(100)[0] == (2, 100, 998)
    assert copy_frontier(1) == [(2, 1, 8)]


@pytest.mark.parametrize(("deep", "shallow"), [(2, 1), (3, 1), (5, 4), (9, 2)])
def test_critical_width_is_where_the_counts_meet(deep: int, shallow: int) -> None:
    def difference(n: float) -> float:
        wide = 1 + deep * (n - 1) / shallow
        return (2 * shallow - 1) * wide**2 + (shallow + 1) * wide - (2 * deep - 1) * n**2 - (deep + 1) * n

    n0 = critical_width(deep, shallow)
    assert abs(difference(n0)) < 1e-9 * n0**2 * deep**3
    assert difference(n0 * 1.01) > 0 > difference(n0 * 0.99)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: copy_frontier(0), "lag must be a positive integer, got 0"),
        (lambda: copy_frontier(3, input_size=-1), "input_size must be a positive integer, got -1"),
        (lambda: copy_limit(2, 1, 3), "hidden_size must be at least input_size = 3"),
        (lambda: copy_weights(-1, 3), "lag must be a positive integer, got -1"),
        (lambda: critical_width(2, 2), "shallower must be less than num_layers = 2, got 2"),
        (lambda: linear_layers([np.ones((3, 2))], [np.eye(2)]), r"U\[0\] must be of shape \(2, 2\)"),
        (lambda: linear_layers([np.ones((2, 1))], [np.full((2, 2), np.nan)]), r"V\[0\] must be finite"),
        (lambda: linear_layers([], []), "U, V and b must be lists of one array for every layer"),
    ],
)
def test_bad_input_is_told(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UserError, match=message):
        call()


def recall(blocks: int, delay: int = 200, seed: int = 0, sequences: int = 400) -> float:
    weights = ms.theory.henaff_copy(blocks, delay, seed=seed)
    layer = ms.nn.Henaff(10, 2 * blocks + 1, nonlinearity="identity", bias=False)
    layer.weight_hh_l0 = torch.from_numpy(weights.recurrent)
    layer.weight_ih_l0 = torch.from_numpy(weights.input)
    task = ms.tasks.create("copy", delay=delay)
    batch = task.sample(sequences, torch.Generator().manual_seed(seed + 1))
    with torch.no_grad():
        output, _ = layer(batch.inputs)
    letters = output @ torch.from_numpy(weights.output).float().T
    blank = torch.full_like(letters[..., :1], -torch.inf)  # argmax over the eight letters
    return task.score(torch.cat([blank, letters], dim=-1), batch)


@pytest.mark.parametrize(("blocks", "published"), [(32, 0.84), (64, 0.94), (128, 0.99), (256, 0.99)])
def test_recall_is_as_stated(blocks, published):
    scores = [recall(blocks, seed=seed) for seed in range(3)]
    # Standard deviation over seeds of the construction is below 0.01 at 32 blocks.
    assert np.mean(scores) >= published - 0.005


def test_all_clocks_meet_after_the_delay():
    weights = ms.theory.henaff_copy(5, delay=13, symbols=4)
    np.testing.assert_allclose(np.linalg.matrix_power(weights.recurrent, 17), np.eye(11), atol=1e-12)
    np.testing.assert_allclose(weights.recurrent.T @ weights.recurrent, np.eye(11), atol=1e-12)
    assert not weights.input[:, [0, -1]].any()
    np.testing.assert_allclose((weights.output @ weights.input[:, 1:-1]).diagonal(), 1.0)


def test_sizes_must_be_positive():
    with pytest.raises(ValueError, match="^blocks must be a positive integer, got 0$"):
        ms.theory.henaff_copy(0, 10)
