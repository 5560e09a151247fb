"""Axes: round ticks within them, and places in order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mnemoscope.report.axes import Scale, drawable, padded

REAL = st.floats(-1e9, 1e9).filter(lambda v: v == 0 or abs(v) > 1e-9)
POSITIVE = st.floats(1e-250, 1e250)


def test_ticks_that_a_reader_expects():
    assert [text for _, text in Scale(0, 100, 0, 1).ticks(5)] == ["0", "20", "40", "60", "80", "100"]
    assert [value for value, _ in Scale(-0.62, 0, 0, 1).ticks(3)] == [-0.5, 0]
    assert [text for _, text in Scale(1e-12, 1, 0, 1, log=True).ticks(5)] == ["10⁻¹²", "10⁻⁹", "10⁻⁶", "10⁻³", "10⁰"]
    assert [text for _, text in Scale(1, 1000, 0, 1, log=True).ticks(5)] == ["1", "10", "100", "1,000"]
    assert [value for value, _ in Scale(4, 8, 0, 1).ticks(8, whole=True)] == [4, 5, 6, 7, 8]
    assert [value for value, _ in Scale(2, 30, 0, 1, log=True).ticks(5)] == [3, 10, 30]


@given(REAL, REAL, st.integers(2, 8))
def test_linear_ticks(low, high, count):
    assume(high - low > 1e-6 * max(abs(low), abs(high)))
    ticks = [value for value, _ in Scale(low, high, 0, 1).ticks(count)]
    slack = 1e-8 * (high - low)
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    assert len(ticks) <= count + 1
    steps = {round((b - a) / (high - low), 6) for a, b in pairwise(ticks)}
    assert len(steps) <= 1


@given(POSITIVE, POSITIVE, st.integers(2, 8))
def test_log_ticks(low, high, count):
    assume(high > low * 1.5)
    scale = Scale(low, high, 0, 1, log=True)
    ticks = [value for value, _ in scale.ticks(count)]
    assert ticks == sorted(set(ticks))
    assert all(low * 0.998 <= tick <= high * 1.002 for tick in ticks)
    assert len(ticks) <= count + 1


@given(st.lists(REAL, min_size=1), st.booleans())
def test_every_number_has_a_place_on_its_axis(values, log):
    known = [v for v in values if drawable(v, log)]
    low, high = padded(known, log=log)
    scale = Scale(low, high, 10, 90, log)
    assert low < high
    assert all(scale.holds(value) for value in known)


def test_a_logarithmic_axis_reaches_only_so_far_down():
    low, high = padded([1e-40, 1.0], log=True, decades=6)
    assert low == pytest.approx(1e-6, rel=0.6)
    assert not Scale(low, high, 0, 1000, log=True).holds(1e-40)
    assert not Scale(low, high, 0, 1000, log=True).holds(-1.0)


def test_an_axis_begins_at_zero_where_the_numbers_come_near_it():
    assert padded([1.0, 10.0], log=False)[0] == 0
    assert padded([9.0, 10.0], log=False)[0] > 8
    assert padded([-10.0, -1.0], log=False)[1] == 0
    assert padded([5.0], log=False) == (2.5, 7.5)
    assert padded([], log=False) == (0, 1.05)


def test_no_axis_zooms_in_on_rounding():
    """Norms of the powers of an orthogonal matrix: 1 up to single precision, which is no growth."""
    for log in (False, True):
        low, high = padded([1.0, 1.0 + 3e-7, 1.0 - 2e-7], log=log)
        assert high - low > 0.5
    low, high = padded([1.0, 1.001], log=False)
    assert high - low < 0.01
