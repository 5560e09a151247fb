"""The largest size within a budget: what equal parameters are found by."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["largest_within"]


def largest_within(count: Callable[[int], int], budget: int, least: int = 1) -> int:
    """Return the largest size whose count is at most the budget, by doubling and bisection.

    Parameters
    ----------
    count
        A number that grows with the size; it may raise to say that it never will exceed the budget.
    budget
        At least ``count(least)``.
    least
        The smallest size.

    Examples
    --------
    >>> largest_within(lambda n: n * n, 50)
    7
    """
    low, high = least, 2 * least
    while count(high) <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) <= budget else (low, middle)
    return low
