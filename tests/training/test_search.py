"""The search finds the limit, in as few levels as promised, whatever the limit is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.training.capacities.inputs import next_by_bisection, next_on_grid


def search(masters, start: int, **options) -> dict[int, bool]:
    tried: dict[int, bool] = {}
    while (level := next_by_bisection(tried, start, **options)) is not None:
        assert level not in tried
        tried[level] = masters(level)
    return tried


@given(st.integers(0, 5000), st.integers(1, 300), st.sampled_from([0.02, 0.1, 0.5]))
def test_bracket_holds_the_limit(limit: int, start: int, resolution: float) -> None:
    tried = search(lambda level: level <= limit, start, resolution=resolution)
    passed = max((level for level, good in tried.items() if good), default=0)
    failed = min(level for level, good in tried.items() if not good)
    assert passed <= limit < failed
    assert failed - passed <= max(1, resolution * passed)
    spread = abs(math.log2(max(limit, 1) / start))
    assert len(tried) <= 2 * spread + math.log2(1 / resolution) + 6


@given(st.integers(0, 500), st.integers(1, 60), st.integers(1, 10), st.integers(0, 400))
def test_stays_within_the_range(limit: int, start: int, least: int, more: int) -> None:
    largest = least + more
    tried = search(lambda level: level <= limit, start, least=least, largest=largest)
    assert all(least <= level <= largest for level in tried)
    if limit >= largest:
        assert tried[largest]
    if limit < least:
        assert not any(tried.values())


@given(st.sets(st.integers(1, 400)), st.integers(1, 50))
def test_ends_even_when_mastery_is_erratic(mastered: set[int], start: int) -> None:
    tried = search(lambda level: level in mastered, start, largest=400)
    assert len(tried) < 60


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(1, 3))
def test_grid_stops_after_failures_in_a_row(outcomes: list[bool], failures: int) -> None:
    grid, tried = [10 * i for i in range(1, len(outcomes) + 1)], {}
    while (level := next_on_grid(tried, grid, failures)) is not None:
        tried[level] = outcomes[grid.index(level)]
    rows = [outcomes[max(0, i - failures + 1) : i + 1] for i in range(failures - 1, len(outcomes))]
    first = next((i for i, row in enumerate(rows, failures - 1) if not any(row)), len(outcomes) - 1)
    assert list(tried) == grid[: first + 1]


def test_example_of_ziv() -> None:
    assert list(search(lambda level: level <= 300, 50, largest=1500)) == [50, 100, 200, 400, 300, 350, 325]


@pytest.mark.parametrize("start", [1, 7])
def test_nothing_mastered(start: int) -> None:
    assert not any(search(lambda level: False, start).values())
