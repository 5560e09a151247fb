"""Laws of gradients through attention, against recursions in high precision, fitted growth and enumeration."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.core.errors import UserError
from mnemoscope.measures.gradient_paths import attention_kappa, attention_paths, dependency_depths
from mnemoscope.theory import (
    chain_attention,
    path_sums,
    sparse_attention_bound,
    uniform_attention,
    uniform_attention_constant,
    uniform_attention_exponent,
    uniform_attention_gradient,
)

EIGENVALUES = [0.5, 0.8, -0.5, 0.3 + 0.4j, -0.2 + 0.9j, 0.0, 0.65, -0.9]


@pytest.mark.parametrize(("value", "exponent"), [(0.5, 0), (0.8, 3), (-0.5, -4 / 3), (0, -1), (2 / 3, 1)])
def test_exponents_of_the_errata(value, exponent):
    assert uniform_attention_exponent(value) == pytest.approx(exponent, abs=1e-12)


@pytest.mark.parametrize("value", EIGENVALUES)
@pytest.mark.parametrize("start", [1, 2, 7])
def test_the_law_with_its_constant_is_the_limit_of_the_exact_gradient(value, start):
    """Richardson's extrapolation of gradient / T^exponent in 1/T meets the closed form."""
    steps = [1 << 14, 1 << 15, 1 << 16]
    exact = uniform_attention_gradient(value, steps[-1], start)
    power = value / (1 - value) - 1
    scaled = [exact[k - 1] / (start + k - 1) ** power for k in steps]
    first = [2 * b - a for a, b in itertools.pairwise(scaled)]
    limit = (4 * first[1] - first[0]) / 3
    assert uniform_attention_constant(value, start) == pytest.approx(limit, rel=2e-7, abs=1e-12)


@pytest.mark.parametrize("value", [0.5, 0.8, -0.5, 0.95])
def test_the_gradient_agrees_with_the_double_sum_in_50_digits(value):
    with mpmath.workdps(50):
        lam, t, found = mpmath.mpf(value), 3, []
        for k in range(60):
            past = sum(found, mpmath.mpf(0))
            found.append((1 if k == 0 else lam * found[-1]) + (1 + lam * past) / (t + k))
    exact = uniform_attention_gradient(value, 60, 3)
    assert np.allclose(exact.real, np.array(found, dtype=float), rtol=1e-13)
    assert not exact.imag.any()


def test_a_fit_of_the_total_gives_the_exponent_and_not_the_published_one():
    for value in (0.8, -0.5):
        gradient = np.abs(uniform_attention_gradient(value, 40_000))
        slope = np.log(gradient[-1] / gradient[-20_001]) / np.log(40_000 / 20_000)
        assert slope == pytest.approx(uniform_attention_exponent(value), abs=2e-3)
        assert abs(slope - (value - 1)) > 0.1


@given(st.complex_numbers(max_magnitude=0.99))
def test_the_published_bound_needs_the_disc_around_one_half(value):
    above = uniform_attention_exponent(value) >= -1
    if abs(abs(value - 0.5) - 0.5) > 1e-9:
        assert above == (abs(value - 0.5) <= 0.5)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2), st.floats(0.05, 0.6))
def test_a_single_chain_attains_the_sparse_law(kappa, depth, value):
    """One chain through d states with dead ends elsewhere: lambda^d / kappa^(d+1), once the recurrence has died."""
    attention = chain_attention(kappa, depth, gap=60)
    assert attention_kappa(attention) == kappa
    assert np.allclose(attention.sum(axis=1), 1)
    found = attention_paths(value, attention, start=kappa)
    law = value**depth / kappa ** (depth + 1)
    assert found.totals[-1] == pytest.approx(law, rel=1e-6)
    assert sparse_attention_bound(kappa, depth, value) <= law * (1 + 1e-12)
    alone = dependency_depths(attention, 0.5 / kappa ** (depth + 1), start=kappa, recurrent=False)
    assert alone[-1] == depth


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.floats(0.01, 3.0))
def test_the_sparse_bound_holds_for_random_sparse_attention(seed, kappa, value):
    random = np.random.default_rng(seed)
    length = 12
    attention = np.zeros((length, length))
    for step in range(length):
        chosen = random.permutation(step + 1)[:kappa]
        attention[step, chosen] = 1 / len(chosen)
    found = attention_paths(value, attention)
    smallest = 0.999 * kappa ** -float(length)
    depths = dependency_depths((attention > 0).astype(float), 0.5, start=0, recurrent=False)
    assert smallest > 0
    for lag in range(length):
        if depths[lag] >= 0:
            assert found.totals[lag] >= sparse_attention_bound(kappa, int(depths[lag]), value) * (1 - 1e-12)


def test_path_sums_agree_with_all_products():
    random = np.random.default_rng(0)
    lags, n = 6, 3
    direct, links = random.normal(size=(lags, n, n)), random.normal(size=(lags, lags, n, n))
    found = path_sums(direct, links)
    for k in range(lags):
        for s in range(lags):
            wanted = np.zeros((n, n))
            for chain in itertools.combinations(range(k), s):
                product = direct[chain[0]] if chain else direct[k]
                for a, b in itertools.pairwise((*chain, k)):
                    product = links[b, a] @ product
                wanted += product
            assert np.allclose(found[k, s], wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: uniform_attention_exponent(1.5), "inside the unit disc, got modulus 1.5"),
        (lambda: uniform_attention_exponent("a"), "eigenvalue must be a number, got 'a'"),
        (lambda: uniform_attention_gradient(np.nan, 3), "eigenvalue must be a finite number"),
        (lambda: sparse_attention_bound(2, -1, 0.5), "depth must be an integer of at least 0, got -1"),
        (lambda: sparse_attention_bound(2, 1, -0.5), "eigenvalue must be a positive number, got -0.5"),
        (lambda: uniform_attention(0), "length must be a positive integer, got 0"),
        (lambda: chain_attention(2, True, 3), "depth must be an integer of at least 0, got True"),
        (lambda: path_sums(np.ones(3), np.ones(3)), "direct must be of shape"),
        (lambda: path_sums(np.ones((3, 1, 1)), np.ones((3, 1, 1))), "links must be of shape"),
    ],
)
def test_bad_input_is_one_line(call, message):
    with pytest.raises(UserError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
