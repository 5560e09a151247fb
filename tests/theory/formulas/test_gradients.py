"""Closed forms of gradient propagation against powers, walks and products of random Jacobians."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.theory import orthogonal_relu_bound, triangular_power, triangular_power_entry


def exact_power(size: int, power: int, x: Fraction) -> list[list[Fraction]]:
    matrix = [[Fraction(int(i == j)) if i >= j else x for j in range(size)] for i in range(size)]
    found = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    for _ in range(power):
        found = [[sum(row[m] * matrix[m][j] for m in range(size)) for j in range(size)] for row in found]
    return found


@given(st.integers(2, 6), st.integers(1, 9), st.fractions(-3, 3, max_denominator=7))
def test_entries_are_those_of_the_power(size, power, x):
    wanted = exact_power(size, power, x)
    for i in range(size):
        for j in range(i + 1, size):
            assert triangular_power_entry(j - i, power, x) == wanted[i][j]


def test_large_powers_keep_all_digits():
    found = triangular_power(5, 10**6, -0.75)
    x, t = Fraction(-0.75), 10**6
    assert found[0, 1] == float(t * x)
    assert found[0, 2] == float(t * x + Fraction(t * (t - 1), 2) * x**2)
    assert np.array_equal(found, np.triu(found))


def test_growth_in_the_power_is_polynomial_of_the_distance():
    for k in (1, 2, 3, 5):
        ratio = triangular_power_entry(k, 2 * 10**6, 0.3) / triangular_power_entry(k, 10**6, 0.3)
        assert float(ratio) == pytest.approx(2**k, rel=1e-4)


def test_products_of_orthogonal_relu_jacobians_stay_below_the_bound():
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.normal(size=(7, 7)))[0]
    active = rng.random((30, 7)) < 0.8
    active[4] = False
    bound = orthogonal_relu_bound(active)
    gradient = rng.normal(size=7)
    size, found = np.linalg.norm(gradient), [1.0]
    for mask in active[::-1]:
        gradient = V.T @ (mask * gradient)
        found.append(np.linalg.norm(gradient) / size)
    assert (np.array(found) <= bound + 1e-12).all()
    assert bound[25] == 1
    assert not bound[26:].any()


@pytest.mark.parametrize("active", [[True, False], [[0.5, 1.0]], np.zeros((0, 3), dtype=bool)])
def test_what_is_no_mask_is_refused(active):
    with pytest.raises(ValueError, match="^active must be an array of True and False of shape"):
        orthogonal_relu_bound(active)


def test_sizes_must_be_positive():
    with pytest.raises(ValueError, match="^power must be a positive integer, got 0$"):
        triangular_power(3, 0, 1.0)
