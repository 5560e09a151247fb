"""Gradient paths through attention, against enumeration, autograd and exact counts."""

import itertools
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.core.errors import UserError
from mnemoscope.measures.gradient_paths import attention_kappa, attention_paths, dependency_depths
from mnemoscope.theory import path_sums, uniform_attention


def random_attention(length, random, sparse=0.0):
    scores = np.where(random.random((length, length)) < sparse, -np.inf, random.normal(size=(length, length)))
    weights = np.tril(np.exp(scores))
    sums = weights.sum(axis=1, keepdims=True)
    return np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)


def enumerated(jacobians, attention, start, lag, scale=1.0):
    """Return xi(s) for all s by writing every path down."""
    n = jacobians.shape[-1]
    ways = scale * (attention + np.eye(len(attention)))
    found = np.zeros((lag + 1, n, n))
    for s in range(lag + 1):
        for chain in itertools.combinations(range(lag), s):
            stops = [start + i for i in chain] + [start + lag]
            product = ways[stops[0], start] * np.eye(n)
            for before, after in itertools.pairwise(stops):
                product = ways[after, before + 1] * jacobians[before] @ product
            found[s] += product
    return found


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans(), st.sampled_from(["sum", "mean"]))
def test_every_part_agrees_with_enumeration(seed, n, single, combine):
    random = np.random.default_rng(seed)
    length, start = 8, int(random.integers(0, 3))
    attention = random_attention(length, random, sparse=0.3)
    jacobians = random.normal(size=(length - 1, n, n)) * 0.7
    if single:
        jacobians[:] = jacobians[0]
    found = attention_paths(jacobians[0] if single else jacobians, attention, start=start, combine=combine)
    for lag in range(length - start):
        parts = enumerated(jacobians, attention, start, lag, 0.5 if combine == "mean" else 1.0)
        assert np.allclose(found.norms[lag, : lag + 1], np.linalg.norm(parts, axis=(1, 2)), rtol=1e-10, atol=1e-14)
        assert not found.norms[lag, lag + 1 :].any()
        assert found.totals[lag] == pytest.approx(np.linalg.norm(parts.sum(axis=0)), rel=1e-10, abs=1e-14)


def gradients_by_autograd(V, inputs, attention, start, activation):
    """Return ds_T/dh_start of a small network with given weights of attention, and the Jacobians dh_{t+1}/ds_t."""
    length, n = inputs.shape
    nudge = torch.zeros(n, dtype=torch.float64, requires_grad=True)
    states, macro, jacobians = [], torch.zeros(n, dtype=torch.float64), []
    for t in range(length):
        drive = V @ macro + inputs[t]
        if t:
            slope = 1 - torch.tanh(drive) ** 2 if activation == "tanh" else torch.ones_like(drive)
            jacobians.append((slope[:, None] * V).detach().numpy())
        state = torch.tanh(drive) if activation == "tanh" else drive
        states.append(state + nudge if t == start else state)
        macro = states[-1] + sum(attention[t, i] * states[i] for i in range(t + 1))
    rows = [torch.autograd.grad(macro[i], nudge, retain_graph=True)[0] for i in range(n)]
    return torch.stack(rows).numpy(), np.array(jacobians)


@pytest.mark.parametrize("activation", ["identity", "tanh"])
@pytest.mark.parametrize("start", [0, 4])
def test_the_total_agrees_with_autograd(activation, start):
    random = np.random.default_rng(3)
    n, length = 4, 12
    V = random.normal(size=(n, n)) / 2
    attention = random_attention(length, random)
    inputs = torch.tensor(random.normal(size=(length, n)))
    wanted, jacobians = gradients_by_autograd(torch.tensor(V), inputs, attention, start, activation)
    for norm, order in (("frobenius", "fro"), ("spectral", 2)):
        found = attention_paths(jacobians, attention, start=start, norm=norm)
        assert found.totals[-1] == pytest.approx(np.linalg.norm(wanted, order), rel=1e-12)
    if activation == "identity":
        assert attention_paths(V, attention, start=start).totals[-1] == pytest.approx(np.linalg.norm(wanted), rel=1e-12)


def test_one_matrix_and_many_equal_jacobians_agree():
    random = np.random.default_rng(1)
    V, attention = random.normal(size=(5, 5)) / 3, random_attention(40, random)
    one, many = attention_paths(V, attention, start=2), attention_paths(np.stack([V] * 39), attention, start=2)
    assert np.allclose(one.norms, many.norms, rtol=1e-9, atol=1e-300)
    assert np.allclose(one.totals, many.totals, rtol=1e-10)


def test_general_path_sums_give_the_same():
    random = np.random.default_rng(2)
    n, length = 2, 9
    jacobians, attention = random.normal(size=(length - 1, n, n)), random_attention(length, random)
    ways = attention + np.eye(length)
    direct = ways[:, 0, None, None] * np.eye(n)
    links = np.zeros((length, length, n, n))
    for k in range(length):
        for j in range(k):
            links[k, j] = ways[k, j + 1] * jacobians[j]
    sums = path_sums(direct, links)
    assert np.allclose(attention_paths(jacobians, attention).norms, np.linalg.norm(sums, axis=(2, 3)), rtol=1e-12)


def test_parts_of_a_number_are_not_negative_and_sum_to_the_total():
    found = attention_paths(0.7, uniform_attention(60))
    assert np.allclose(found.norms.sum(axis=1), found.totals, rtol=1e-12)


def test_without_attention_the_only_path_is_the_recurrent_one():
    found = attention_paths(0.9, np.zeros((30, 30)))
    assert np.allclose(found.totals, 0.9 ** np.arange(30))
    assert np.allclose(np.diag(found.norms), found.totals)
    assert np.allclose(found.norms - np.diag(np.diag(found.norms)), 0)
    assert found.depth == 29
    assert found.kappa == 0


def test_fewer_skips_leave_the_rest_as_it_is():
    attention = uniform_attention(50)
    whole, part = attention_paths(0.6, attention), attention_paths(0.6, attention, skips=5)
    assert part.norms.shape == (50, 6)
    assert np.allclose(part.norms, whole.norms[:, :6])
    assert np.allclose(part.totals, whole.totals)
    assert attention_paths(np.full((49, 1, 1), 0.6), attention, skips=0).norms.shape == (50, 1)


def test_a_large_matrix_over_many_steps_does_not_overflow_before_its_product_does():
    """V^s alone and the numbers of paths alone leave float64's range here."""
    attention = np.eye(1500)
    found = attention_paths(0.5, attention)  # s_t = 2 h_t: the gradient is 2 (2 x 0.5)^k
    assert np.allclose(found.totals, 2)
    assert found.norms[-1, -1] == pytest.approx(2)


def best_products(attention, start, lag, recurrent):
    ways = attention + np.eye(len(attention)) * recurrent
    for s in range(lag + 1):
        products = []
        for chain in itertools.combinations(range(lag), s):
            stops = [start + i for i in chain] + [start + lag]
            product = ways[stops[0], start]
            for before, after in itertools.pairwise(stops):
                product *= ways[after, before + 1]
            products.append(product)
        yield s, max(products)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.02, 0.6), st.booleans())
def test_dependency_depth_agrees_with_enumeration(seed, threshold, recurrent):
    random = np.random.default_rng(seed)
    length, start = 8, int(random.integers(0, 4))
    attention = random_attention(length, random, sparse=0.5)

    def depth(source, lag):
        products = best_products(attention, source, lag, recurrent)
        return next((s for s, product in products if product > threshold), -1)

    found = dependency_depths(attention, threshold, start=start, recurrent=recurrent)
    assert found.tolist() == [depth(start, lag) for lag in range(length - start)]
    last = dependency_depths(attention, threshold, recurrent=recurrent)
    assert last.tolist() == [depth(source, length - 1 - source) for source in range(length)]


def test_kappa_counts_weights_and_relevant_events():
    attention = np.array([[1, 0, 0], [0.05, 0.95, 0], [0.05, 0.15, 0.8]])
    assert attention_kappa(attention) == 3
    assert attention_kappa(attention, threshold=0.1) == 2
    found = attention_paths(0.5, attention)
    assert (found.kappa, found.relevant) == (3, 2)


def test_the_exponent_is_given_for_uniform_attention_only():
    V = np.diag([0.5, -0.3])
    assert attention_paths(V, uniform_attention(20)).exponent == pytest.approx(0.0)
    assert attention_paths(V, np.eye(20)).exponent is None
    assert attention_paths(1.5, uniform_attention(20)).exponent is None
    assert attention_paths(V, uniform_attention(20), combine="mean").exponent is None


def test_torch_and_lists_are_taken_and_the_result_prints_draws_and_exports():
    found = attention_paths(torch.eye(2) * 0.5, uniform_attention(5).tolist(), norm="spectral")
    assert "dependency depth" in str(found)
    assert found.plot().to_dict()["concat"]
    assert json.loads(json.dumps(found.to_dict()))["kappa"] == 5
    assert "Kerg" in found._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((2, 3)), np.eye(3)), r"V must be a square matrix.*shape \(2, 3\)"),
        ((np.ones((5, 2, 2)), np.eye(3)), "one Jacobian for each of the 2 steps between 3 states, got 5"),
        ((np.full((2, 2), np.nan), np.eye(3)), "V must be finite, got 4 NaN or infinite of 4 entries"),
        (("a", np.eye(3)), "V must be an array of real numbers"),
        ((0.5, np.ones((3, 3))), r"attention must be lower triangular.*\[0, 1\] != 0"),
        ((0.5, -np.eye(3)), "weights of at least 0, got the entry -1"),
        ((0.5, np.ones((2, 3))), "attention must be a square matrix"),
        ((0.5, np.eye(3), 3), "start must be a step from 0 to 2, got 3"),
        ((0.5, np.eye(3), 0, -1), "skips must be an integer of at least 0, got -1"),
        ((0.5, np.eye(3), 0, None, "max"), "combine must be 'sum' or 'mean', got 'max'"),
        ((0.5, np.eye(3), 0, None, "sum", "l1"), "norm must be 'frobenius' or 'spectral', got 'l1'"),
        ((0.5, np.eye(3), 0, None, "sum", "spectral", 0.0), "threshold must be a positive number, got 0.0"),
    ],
)
def test_bad_input_is_one_line(arguments, message):
    with pytest.raises(UserError, match=message) as caught:
        attention_paths(*arguments)
    assert "\n" not in str(caught.value)


def test_too_much_memory_is_refused_with_what_would_fit(monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_MEMORY", "0.001")
    with pytest.raises(UserError, match=r"needs .* of memory, .* skips=\d+ would fit"):
        attention_paths(np.zeros((99, 8, 8)), uniform_attention(100))
