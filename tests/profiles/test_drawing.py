"""Intervals as words, lags as a grid, rows that lack something."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.core.numbers import DASH
from mnemoscope.profiles import Estimate
from mnemoscope.profiles.drawing import SectionView, lag_grid, spoken
from mnemoscope.profiles.results import SectionRow
from mnemoscope.profiles.sections.spectrum import SpectrumSection


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


def test_references_without_eigenvalues_are_left_out_of_their_picture():
    """Between two sizes of the atlas a reference has curves alone."""
    curve = {"lags": [0, 1], "powers": [1.0, 0.5]}
    data = {"a": {**curve, "eigenvalues": [[0.5, 0.1]]}, "b": curve}
    rows = [
        SimpleNamespace(key=key, label=key, scalar=lambda _: None, section=lambda _, d=d: SectionRow(data=d))
        for key, d in data.items()
    ]
    section = SpectrumSection()
    view = SectionView(section, rows, ["a"])
    view.figure = lambda name, title, chart, how: chart
    view.ranking = lambda *_: None
    plane, powers, _ = section.figures(view)
    assert plane.points == {"a": [0.5 + 0.1j]}
    assert [series.entry for series in powers.series] == ["a", "b"]
