"""Numbers as words, lags as a grid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.profiles.drawing import DASH, lag_grid, number, spoken


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *[(0, "0"), (1.0, "1"), (48.0, "48"), (17152, "17,152"), (0.9996, "1.00"), (9.999, "10.0"), (1234.5, "1,234")],
        *[(-0.000765, "-7.65e-04"), (0.0123, "0.0123"), (1e12, "1.00e+12"), (4.5e-130, "4.50e-130")],
        *[(None, DASH), (float("inf"), DASH)],
    ],
)
def test_numbers_in_three_digits(value, said):
    assert number(value) == said


@given(st.floats(-1e8, 1e8).filter(lambda x: abs(x) > 1e-6))
def test_a_number_is_never_off_by_more_than_a_digit(value):
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=6e-3)


def test_intervals_are_spoken_where_there_is_one():
    assert spoken({"value": 1.911, "lower": 1.88, "upper": 1.94}) == "1.91 (1.88 to 1.94)"
    assert spoken({"value": 3.0, "lower": 3.0, "upper": 3.0}) == "3"
    assert spoken({"value": 3.0, "lower": None, "upper": None}) == "3"
    assert spoken(None) == spoken({"value": None, "lower": None, "upper": None}) == DASH


@given(st.integers(0, 2000))
def test_the_grid_of_lags_rises_to_its_end(longest):
    grid = lag_grid(longest)
    assert (grid[0], grid[-1]) == (0, longest)
    assert grid == sorted(set(grid))
    assert len(grid) < 50
    assert grid[:17] == list(range(min(16, longest) + 1))
