"""Shared variances and shared levels, against scipy and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from mnemoscope.core.comparisons import _trigamma_inverse as inverse
from mnemoscope.core.comparisons import benjamini_hochberg, pool, two_sided


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_false_discoveries_are_scipys(chances):
    expected = stats.false_discovery_control(chances) <= 0.05
    near = np.isclose(stats.false_discovery_control(chances), 0.05, rtol=1e-9)
    found = np.array(benjamini_hochberg(chances))
    assert (found == expected)[~near].all()


@given(st.floats(1e-6, 1e6))
def test_the_inverse_of_trigamma(value):
    assert float(special.polygamma(1, inverse(value))) == pytest.approx(value, rel=1e-6)


def test_the_prior_of_variances_is_found():
    # s^2 is s0^2 d0 / chi2(d0), and the sample's is that times chi2(4) / 4.
    rng = np.random.default_rng(0)
    true = 3.0 * 8 / rng.chisquare(8, 4000)
    found = pool((true * rng.chisquare(4, 4000) / 4).tolist(), [4.0] * 4000)
    assert found.variance == pytest.approx(3.0, rel=0.05)
    assert found.freedom == pytest.approx(8.0, rel=0.2)


def test_equal_variances_are_one_variance():
    rng = np.random.default_rng(1)
    found = pool((2.0 * rng.chisquare(4, 12) / 4).tolist(), [4.0] * 12)
    variance, freedom = found.moderated(0.1, 4)
    assert freedom > 20
    assert 1.0 < variance < 4.0


def test_exact_numbers_stay_exact_and_few_networks_teach_nothing():
    assert pool([1.0, 2.0], [4.0, 4.0]).moderated(5.0, 4) == (5.0, 4)
    assert pool([1.0, 2.0, 3.0], [4.0] * 3).moderated(0.0, 4) == (0.0, math.inf)


def test_chances_are_students():
    assert two_sided(2.0, 0.5, 7) == pytest.approx(2 * stats.t.sf(4.0, 7))
    assert two_sided(-2.0, 0.5, math.inf) == pytest.approx(2 * stats.norm.sf(4.0))
    assert (two_sided(0.0, 0.0, 3), two_sided(1.0, 0.0, 3)) == (1.0, 0.0)
