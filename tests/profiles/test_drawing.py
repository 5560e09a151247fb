"""Intervals as words, lags as a grid."""

from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.core.numbers import DASH
from mnemoscope.profiles import Estimate
from mnemoscope.profiles.drawing import lag_grid, spoken


def test_intervals_are_spoken_where_there_is_one():
    assert spoken(Estimate(value=1.911, lower=1.88, upper=1.94)) == "1.91 (1.88 to 1.94)"
    assert spoken(Estimate(value=3.0, lower=3.0, upper=3.0)) == "3"
    assert spoken(Estimate(value=3.0, lower=None, upper=None)) == "3"
    assert spoken(None) == spoken(Estimate(value=None, lower=None, upper=None)) == DASH


@given(st.integers(0, 2000))
def test_the_grid_of_lags_rises_to_its_end(longest):
    grid = lag_grid(longest)
    assert (grid[0], grid[-1]) == (0, longest)
    assert grid == sorted(set(grid))
    assert len(grid) < 50
    assert grid[:17] == list(range(min(16, longest) + 1))
