"""Means, intervals and differences over seeds, against scipy's own."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mnemoscope.core.intervals import difference, mean_interval, wilson

values = st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 3)), min_size=2, max_size=8)


@given(values)
def test_the_interval_is_students(seeds):
    found = mean_interval(seeds)
    error = stats.sem(seeds)
    if error == 0:
        assert found.lower == found.upper == pytest.approx(seeds[0])
        return
    low, high = stats.t.interval(0.95, len(seeds) - 1, loc=sum(seeds) / len(seeds), scale=error)
    assert (found.lower, found.upper) == pytest.approx((low, high))


def test_three_values_by_hand():
    # mean 2, s = 1, t(0.975, 2) = 4.30265: 2 +- 4.30265 / sqrt(3)
    assert mean_interval([1.0, 2.0, 3.0]) == pytest.approx((2.0, 2 - 2.484138, 2 + 2.484138), abs=1e-5)


def test_one_value_has_the_measures_own_error_or_none():
    assert mean_interval([5.0]) == (5.0, None, None)
    assert mean_interval([5.0], 0.1) == pytest.approx((5.0, 5 - 0.1959964, 5 + 0.1959964))
    assert mean_interval([5.0], math.nan) == (5.0, None, None)


@pytest.mark.filterwarnings("ignore:Precision loss")  # scipy's, of values that are nearly equal
@given(values, values)
def test_independent_seeds_get_welchs_interval(a, b):
    found = difference(a, b)
    if stats.sem(a) == stats.sem(b) == 0:
        assert found.lower == found.upper == found.value
        return
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert (found.lower, found.upper) == pytest.approx((expected.low, expected.high), rel=1e-6, abs=1e-6)
    assert found.how.startswith("Welch, independent seeds")


def test_paired_seeds_get_the_interval_of_the_differences():
    a, b = [1.0, 2.0, 4.0, 8.0], [0.9, 1.8, 3.7, 7.9]
    found = difference(a, b, paired=True)
    expected = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (found.lower, found.upper) == pytest.approx((expected.low, expected.high))
    assert found.clear
    assert not difference(a, b).clear  # the scatter of the weights hides what pairs show


def test_one_set_of_weights_leaves_no_interval():
    found = difference([1.0], [2.0, 3.0])
    assert (found.value, found.lower, found.clear) == (-1.5, None, False)
    assert "one set of weights" in found.how


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95]))
def test_wilson_is_scipys(case: tuple[int, int], level: float) -> None:
    k, n = case
    found = wilson(k, n, level)
    wanted = stats.binomtest(k, n).proportion_ci(level, method="wilson")
    assert found.value == k / n
    assert found.lower == pytest.approx(wanted.low, abs=1e-12)
    assert found.upper == pytest.approx(wanted.high, abs=1e-12)


@pytest.mark.parametrize("count", [3, 5])
@pytest.mark.parametrize(
    ("draw", "mean", "limits"),
    [
        (lambda rng, n: rng.lognormal(0, 0.3, n), math.exp(0.045), {"least": 0.0}),
        (lambda rng, n: 1 + rng.gamma(2, 0.5, n), 2.0, {"least": 1.0}),
        (lambda rng, n: rng.beta(20, 2, n), 20 / 22, {"least": 0.0, "most": 1.0}),
        (lambda rng, n: 3 - rng.gamma(4, 0.25, n), 2.0, {"most": 3.0}),
    ],
)
def test_intervals_within_a_range_cover_as_often_as_they_say(draw, mean, limits, count):
    rng = np.random.default_rng(0)
    inside, plain = 0, 0
    for _ in range(1500):
        seeds = draw(rng, count).tolist()
        found, usual = mean_interval(seeds, **limits), mean_interval(seeds)
        assert (
            limits.get("least", -math.inf) <= found.lower <= found.value <= found.upper <= limits.get("most", math.inf)
        )
        inside += found.lower <= mean <= found.upper
        plain += usual.lower <= mean <= usual.upper
    assert inside / 1500 >= 0.93
    assert inside >= plain  # the usual interval leaves the range, and covers less


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.floats(0, 10) | st.none())
def test_no_interval_leaves_its_range(seeds, stderr):
    found = mean_interval(seeds, stderr, least=0.0, most=1.0)
    if found.lower is not None:
        assert 0 <= found.lower <= found.upper <= 1 + 1e-12
