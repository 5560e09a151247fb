"""Closed forms of linear memory capacity against arithmetic with hundreds of digits."""

from fractions import Fraction

import flint
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.core.errors import UserError
from mnemoscope.theory.formulas.capacity import (
    capacity_from_eigenvalues,
    controllability_rank,
    curve_to_tail,
    delay_line_capacity,
    lattice_form,
    leading_curve,
    reachable_polynomial,
    reachable_units,
    reflection_coefficients,
    ring_capacity,
    takenaka_malmquist_form,
)


def orthogonal(random, size):
    return np.linalg.qr(random.normal(size=(size, size)))[0]


def by_definition(W, v, lags, digits=120):
    """Return MC_k = v^T W^kT C^-1 W^k v with a covariance of many digits."""
    with mp.workdps(digits):
        matrix, first = mp.matrix(W.tolist()), mp.matrix(v.tolist())
        covariance, power = first * first.T, matrix.copy()
        while mp.mnorm(power, "f") > mp.mpf(10) ** -digits:
            covariance += power * covariance * power.T
            power = power * power
        inverse = covariance**-1
        found, column = [], first
        for _ in range(lags):
            found.append(float((column.T * inverse * column)[0]))
            column = matrix * column
    return np.array(found)


def rank_of_rationals(W, v):
    exact = [[flint.fmpq(*map(int, x.as_integer_ratio())) for x in row] for row in W.tolist()]
    matrix = flint.fmpq_mat(exact)
    column = flint.fmpq_mat([[flint.fmpq(*map(int, x.as_integer_ratio()))] for x in v.tolist()])
    columns = []
    for _ in range(len(v)):
        columns.append([column[i, 0] for i in range(len(v))])
        column = matrix * column
    return flint.fmpq_mat(columns).rref()[1]


def test_delay_line_and_ring_against_the_definition():
    size, radius = 5, 0.8
    shift = np.roll(np.eye(size), 1, axis=0)
    ring = by_definition(radius * shift, np.eye(size)[0], 17)
    np.testing.assert_allclose(ring_capacity(size, radius, 17), ring, rtol=1e-13)
    line = by_definition(np.diag([0.3, 2.0, 0.7, 1.1], -1), np.eye(size)[0], 8)
    np.testing.assert_allclose(delay_line_capacity(size, 8), line, atol=1e-15)
    assert ring_capacity(7, 0.999, 100_000).sum() == pytest.approx(7, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_eigenvalues_alone_give_the_curve(seed):
    random = np.random.default_rng(seed)
    W = random.normal(size=(9, 9))
    W *= 0.93 / np.abs(np.linalg.eigvals(W)).max()
    exact = by_definition(W, random.normal(size=9), 60)
    found = capacity_from_eigenvalues(np.linalg.eigvals(W), 60)
    np.testing.assert_allclose(found, exact, rtol=1e-10, atol=1e-13)


def test_order_of_the_eigenvalues_does_not_matter():
    random = np.random.default_rng(3)
    roots = random.uniform(-0.95, 0.95, size=12).astype(complex)
    np.testing.assert_allclose(
        capacity_from_eigenvalues(roots, 50), capacity_from_eigenvalues(roots[::-1], 50), atol=1e-13
    )


@pytest.mark.parametrize("repeated", [0.0, 0.7, -0.95])
def test_a_jordan_block_is_a_repeated_eigenvalue(repeated):
    size = 6
    W = repeated * np.eye(size) + np.diag(np.full(size - 1, 0.5), -1)
    exact = by_definition(W, np.eye(size)[0], 40)
    np.testing.assert_allclose(capacity_from_eigenvalues([repeated] * size, 40), exact, rtol=1e-11, atol=1e-14)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-0.999, 0.999), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
def test_both_normal_forms_are_white_and_equal(roots, seed):
    roots = np.array(roots)
    angles = np.random.default_rng(seed).uniform(0, np.pi, size=len(roots) // 2)
    pairs = np.abs(roots[: len(angles)]) * np.exp(1j * angles)
    roots = np.concatenate([pairs, pairs.conj(), roots[2 * len(angles) :]])
    cascade = takenaka_malmquist_form(roots)
    identity = cascade.A @ cascade.A.conj().T + np.outer(cascade.b, cascade.b.conj())
    np.testing.assert_allclose(identity, np.eye(len(roots)), atol=1e-13)
    polynomial = [Fraction(float(x)) for x in np.poly(roots).real]
    reflections = reflection_coefficients(polynomial)
    if reflections is None:  # rounding the coefficients has moved a root out of the disc
        return
    lattice = lattice_form(reflections)
    np.testing.assert_allclose(lattice.A @ lattice.A.T + np.outer(lattice.b, lattice.b), np.eye(len(roots)), atol=1e-13)
    spectrum = np.poly(lattice.A)
    np.testing.assert_allclose(spectrum, np.array(polynomial, dtype=float), atol=1e-9)


def test_lattice_against_the_definition_where_the_covariance_is_hopeless():
    random = np.random.default_rng(0)
    size = 14
    Q = orthogonal(random, size)
    W = Q @ (0.2 * np.eye(size) + np.tril(random.uniform(0.5, 1.0, size=(size, size)), -1) * 0.6) @ Q.T
    v = random.normal(size=size)
    form = lattice_form(reflection_coefficients(reachable_polynomial(W, v)))
    np.testing.assert_allclose(leading_curve(form, 40), by_definition(W, v, 40, 300), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("lags", [1, 2, 3, 255, 256, 257, 700])
def test_powers_are_those_of_a_loop(lags):
    form = takenaka_malmquist_form(np.array([0.9, -0.8, 0.5 + 0.4j, 0.5 - 0.4j]))
    x, found = form.b, []
    for _ in range(lags):
        found.append(np.linalg.norm(x) ** 2)
        x = form.A @ x
    np.testing.assert_allclose(leading_curve(form, lags), found, rtol=1e-10, atol=1e-16)
    curve, rest = curve_to_tail(form, lags, lags, 0.0)
    assert curve.sum() + rest == pytest.approx(4, rel=1e-13)


def test_a_settled_curve_ends_when_the_rest_is_small():
    form = takenaka_malmquist_form(np.array([0.99 + 0j]))
    curve, rest = curve_to_tail(form, 1, 10**6, 1e-6)
    assert rest <= 1e-6 < rest / 0.99**2  # one lag fewer would not have been enough
    assert len(curve) == int(np.ceil(np.log(1e-6) / np.log(0.99) / 2))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 0.4, 1.0]))
def test_rank_is_that_of_the_rationals(size, seed, density):
    random = np.random.default_rng(seed)
    W = random.integers(-2, 3, size=(size, size)) * (random.uniform(size=(size, size)) < density) / 4
    v = random.integers(-1, 2, size=size).astype(float)
    assert controllability_rank(W, v) == rank_of_rationals(W, v)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_reachable_polynomial_annihilates_the_input(size, seed):
    random = np.random.default_rng(seed)
    W = random.integers(-2, 3, size=(size, size)) / 4
    v = random.integers(-1, 2, size=size).astype(float)
    if not v.any():
        return
    a = reachable_polynomial(W, v)
    assert len(a) == controllability_rank(W, v) + 1
    exact = [[Fraction(x) for x in row] for row in W.tolist()]
    column, total = [Fraction(x) for x in v.tolist()], [Fraction(0)] * size
    for coefficient in reversed(a):  # sum_j a_(r-j) W^j v = 0
        total = [t + coefficient * c for t, c in zip(total, column, strict=True)]
        column = [sum(w * c for w, c in zip(row, column, strict=True)) for row in exact]
    assert total == [0] * size


def test_units_without_a_path_from_the_input_are_not_reached():
    W = np.zeros((4, 4))
    W[1, 0], W[0, 3], W[2, 1] = 0.5, 0.5, 0.5
    assert reachable_units(W, np.array([1.0, 0, 0, 0])).tolist() == [True, True, True, False]


def test_instability_is_found_exactly():
    assert reflection_coefficients([Fraction(1), Fraction(-1)]) is None
    assert reflection_coefficients([Fraction(1), Fraction(-1) + Fraction(1, 2**300)]) is not None
    assert reflection_coefficients([Fraction(1), Fraction(-1) - Fraction(1, 2**300)]) is None


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ring_capacity(3, 1.0, 4), "radius must be below 1, got 1.0"),
        (lambda: ring_capacity(0, 0.5, 4), "size must be a positive integer, got 0"),
        (lambda: capacity_from_eigenvalues([0.5, 1.5], 4), "inside the unit circle, got one of modulus 1.5"),
        (lambda: controllability_rank(np.zeros((2, 3)), np.ones(2)), "W must be a square matrix"),
    ],
)
def test_bad_input(call, said):
    with pytest.raises(UserError, match=said):
        call()
