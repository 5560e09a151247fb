"""Which difficulty to try next: doubling then bisection, or up a given grid. Pure functions of what was tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["Tried", "next_by_bisection", "next_on_grid"]

Tried = Mapping[int, bool]
"""Difficulties that were tried, and whether the network mastered them."""


def next_by_bisection(
    tried: Tried, start: int, least: int = 1, largest: int | None = None, resolution: float = 0.1
) -> int | None:
    """Return the next difficulty, or None when the limit is known well enough.

    From `start` the difficulty doubles as long as it is mastered (or halves as long as it is not); then the gap between
    the hardest that was mastered and the easiest that was not is halved, until it is at most `resolution` times the
    former, or 1. That takes about 2 log2(limit / start) + log2(1 / resolution) levels.

    Parameters
    ----------
    tried
        What was tried so far; the answer depends on nothing else, so that a search can be taken up again.
    start
        The first difficulty.
    least, largest
        The range of difficulties; None: no end.
    resolution
        How wide the last gap may be, as a share of the limit.

    Examples
    --------
    >>> tried = {}
    >>> while (level := next_by_bisection(tried, 10)) is not None:
    ...     tried[level] = level <= 57
    >>> list(tried)
    [10, 20, 40, 80, 60, 50, 55]
    """
    failed = min((level for level, passed in tried.items() if not passed), default=None)
    # A level that was mastered above one that was not is luck: the limit is looked for below the failure.
    passed = max((level for level, good in tried.items() if good and (failed is None or level < failed)), default=None)
    if passed is None and failed is None:
        return max(least, start if largest is None else min(start, largest))
    if failed is None and passed is not None:
        return _unless_tried(tried, 2 * passed if largest is None else min(2 * passed, largest))
    if passed is None and failed is not None:
        return _unless_tried(tried, max(least, failed // 2))
    assert passed is not None
    assert failed is not None
    if failed - passed <= max(1, resolution * passed):
        return None
    return (passed + failed) // 2


def next_on_grid(tried: Tried, grid: Sequence[int], failures: int = 2) -> int | None:
    """Return the next difficulty of an ascending grid, or None after so many failures in a row or at its end.

    Examples
    --------
    >>> next_on_grid({10: True, 20: False}, [10, 20, 30, 40])
    30
    >>> next_on_grid({10: True, 20: False, 30: False}, [10, 20, 30, 40]) is None
    True
    """
    row = 0
    for level in grid:
        if level not in tried:
            return level
        row = 0 if tried[level] else row + 1
        if row >= failures:
            return None
    return None


def _unless_tried(tried: Tried, level: int) -> int | None:
    return None if level in tried else level
