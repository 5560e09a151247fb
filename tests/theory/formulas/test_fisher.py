"""Closed forms and bounds of Fisher memory, against exact rational arithmetic and against the measure."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.measures.fisher.vector import fisher_memory
from mnemoscope.theory.formulas import fisher as theory


@given(
    size=st.integers(1, 40), gain=st.fractions(Fraction(1, 50), 50, max_denominator=1000), noise=st.floats(0.01, 100)
)
def test_delay_line_curve_is_the_fraction_that_it_says(size, gain, noise):
    number = Fraction(float(gain))
    exact = [float(1 / sum(number**-m for m in range(k + 1))) / noise for k in range(size)]
    np.testing.assert_allclose(theory.delay_line_curve(size, float(gain), noise), exact, rtol=1e-13)


@pytest.mark.parametrize("gain", [1.0, 1 + 1e-15, 1 - 1e-12, 1e-300, 1e300])
def test_delay_line_curve_is_smooth_at_one_and_does_not_overflow(gain):
    curve = theory.delay_line_curve(2000, gain, lags=2003)
    assert np.isfinite(curve).all()
    assert not curve[2000:].any()
    if abs(gain - 1) < 1e-10:
        np.testing.assert_allclose(curve[:2000], 1 / np.arange(1, 2001), rtol=1e-8)


def test_the_total_of_a_long_line_tends_to_its_limit():
    for gain, noise in ((1.5, 1.0), (3.0, 0.2), (1.05, 7.0)):
        total = theory.delay_line_curve(20_000, gain, noise).sum()
        assert total == pytest.approx(theory.delay_line_limit(20_000, gain, noise), rel=2e-2)
    assert theory.delay_line_limit(100, 2.0, noise=4.0) == 12.5


@given(st.lists(st.floats(0.05, 20.0), min_size=1, max_size=25), st.floats(0.1, 10))
def test_the_optimal_delay_line_attains_the_amplification_bound(profile, noise):
    line = theory.optimal_delay_line(profile)
    np.testing.assert_allclose(theory.amplification(line.W, line.v, len(profile)), profile, rtol=1e-12)
    found = fisher_memory(line.W, line.v, noise=noise)
    bound = theory.amplification_bound(profile, noise)
    np.testing.assert_allclose(found.curve[: len(profile)], bound, rtol=1e-10)
    assert found.interference < 1e-12


@given(size=st.integers(2, 12), seed=st.integers(0, 500), radius=st.floats(0.2, 0.98))
def test_no_network_exceeds_the_amplification_bound(size, seed, radius):
    random = np.random.default_rng(seed)
    W = random.standard_normal((size, size)) * random.choice([1.0, 3.0], size=(size, size))
    W *= radius / np.abs(np.linalg.eigvals(W)).max()
    v = random.standard_normal(size)
    found = fisher_memory(W, v, noise=0.5)
    lags = min(60, len(found.curve))
    bound = theory.amplification_bound(theory.amplification(W, v, lags), 0.5)
    assert (found.curve[:lags] <= bound * (1 + 1e-9)).all()


def test_the_delay_line_is_not_optimal_at_unequal_amplification():
    source = np.eye(100)[0]
    line = fisher_memory(theory.kerg_matrix(100, 1.05), source)
    other = fisher_memory(theory.kerg_matrix(100, 1.05, d=0.2), source)
    assert (other.curve[:100] > line.curve).sum() == 97


@given(root=st.floats(0.3, 0.98).filter(lambda x: abs(x - 0.5) > 0.03), share=st.floats(0.05, 0.95))
def test_feedback_inside_its_interval_amplifies_and_is_stable(root, share):
    low, high = theory.feedback_interval(root**2)
    line = theory.feedback_delay_line(60, root**2, (low + share * (high - low)) ** 2)
    forward, back, far = line.W[1, 0], line.W[0, 1], math.cos(math.pi / 61)
    symmetric = math.sqrt(forward * back) * (np.eye(60, k=1) + np.eye(60, k=-1))  # the same spectrum, well-conditioned
    assert np.linalg.eigvalsh(symmetric).max() == pytest.approx(2 * math.sqrt(forward * back) * far, rel=1e-12)
    assert 2 * math.sqrt(forward * back) < 1
    # A norm above 1 in the limit of a long line: the largest eigenvalue of the symmetric part tends to more than 1.
    assert np.linalg.eigvalsh((line.W + line.W.T) / 2).max() == pytest.approx((forward + back) * far, rel=1e-12)
    assert forward + back > 1


def test_feedback_keeps_information_beyond_the_length_of_the_line():
    size, gain = 30, 0.9
    low, high = theory.feedback_interval(gain)
    line = theory.feedback_delay_line(size, gain, (0.5 * (low + high)) ** 2)
    with_feedback = fisher_memory(line.W, line.v)
    plain = fisher_memory(*theory.delay_line(size, gain))
    assert with_feedback.curve[size:].sum() > 1e-3
    assert len(plain.curve) == size
    assert with_feedback.total > plain.total


def random_triangular(size: int, seed: int, strength: float) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.tril(strength * random.standard_normal((size, size)), -2) + random.uniform(0.5, 1.5) * np.eye(size, k=-1)


@given(size=st.integers(2, 15), seed=st.integers(0, 500), strength=st.floats(0, 1), noise=st.floats(0.1, 10))
def test_triangular_bounds_hold_and_the_sharper_is_sharper(size, seed, strength, noise):
    theta = random_triangular(size, seed, strength)
    bounds = theory.triangular_fisher_bounds(theta, noise)
    found = fisher_memory(theta, np.eye(size)[0], noise=noise)
    assert (bounds.sharper <= found.curve[:size] * (1 + 1e-10)).all()
    assert (bounds.corrected <= bounds.sharper * (1 + 1e-10)).all()
    assert bounds.sigma >= 1 - 1e-12


def test_triangular_bounds_are_attained_by_the_delay_line():
    line = theory.delay_line(12, 1.3)
    bounds = theory.triangular_fisher_bounds(line.W, noise=0.3)
    closed = theory.delay_line_curve(12, 1.3, 0.3)
    np.testing.assert_allclose(bounds.sharper, closed, rtol=1e-12)
    np.testing.assert_allclose(bounds.corrected, closed, rtol=1e-12)
    assert bounds.sigma == pytest.approx(1)


def test_kerg_matrix_is_eq_3_4_2_and_table_5_has_twelve_rows():
    W = theory.kerg_matrix(6, 1.05, 0.005, 0.2)
    for i in range(6):
        for j in range(6):
            expected = {0: 0.2, 1: 1.05}.get(i - j, 0.005 if i > j else 0.0)
            assert W[i, j] == expected
    assert len(theory.TABLE_5) == 12
    assert theory.TABLE_5[0.95, 0.005, 0.2] == 12.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.delay_line(0), "size must be a positive integer, got 0"),
        (lambda: theory.delay_line(3, -1.0), "gain must be a positive number, got -1.0"),
        (lambda: theory.delay_line_limit(3, 0.5), "gain must be above 1, got 0.5"),
        (lambda: theory.optimal_delay_line([1.0, 0.0]), "amplification must be positive at every lag, got 0.0"),
        (lambda: theory.amplification_bound([1.0, -1.0]), "amplification must be at least 0 at every lag, got -1.0"),
        (lambda: theory.feedback_interval(1.5), "gain must be below 1"),
        (
            lambda: theory.feedback_delay_line(5, 0.64, 0.16),
            r"sqrt\(feedback\) must be between 0.2 and 0.3125 .*, got 0.4",
        ),
        (
            lambda: theory.triangular_fisher_bounds(np.eye(3)),
            "theta must be strictly lower triangular with one positive",
        ),
        (lambda: theory.amplification(np.eye(2), [1, 2, 3], 4), "v must be of length 2, got 3"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message):
        call()
