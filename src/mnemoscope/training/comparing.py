"""Capacities side by side: differences of limits, paired by seed, corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

from mnemoscope.core.errors import UserError
from mnemoscope.core.result import plain
from mnemoscope.training.capacity_result import Capacity
from mnemoscope.training.statistics import Comparison, holm

__all__ = ["Versus", "compare_capacities"]


class Versus(NamedTuple):
    """One network's limit less another's.

    Attributes
    ----------
    first, second
        Which networks.
    comparison
        The difference of their limits, paired by seed.
    corrected
        Its p value, corrected for the number of pairs of networks by Holm's method.
    """

    first: str
    second: str
    comparison: Comparison
    corrected: float

    def __str__(self) -> str:
        return f"{self.first} - {self.second}: {self.comparison}; corrected p = {self.corrected:.2g}"

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        own, difference = self.comparison, self.comparison.difference
        found: dict[str, Any] = {
            "first": self.first,
            "second": self.second,
            "difference": difference.value,
            "lower": difference.lower,
            "upper": difference.upper,
            "effect": own.effect,
            "p": own.p,
            "corrected_p": self.corrected,
            "pairs": own.pairs,
        }
        return plain(found)  # type: ignore[no-any-return]  # the effect of few or equal differences is not finite


def compare_capacities(found: Sequence[Capacity]) -> list[Versus]:
    """Compare every two of several capacities of one task.

    Parameters
    ----------
    found
        Results of `capacity` with the same task, criterion and seeds.
    """
    if len({(one.task, one.axis, one.criterion) for one in found}) > 1:
        raise UserError("capacities must be of one task and one criterion to be compared")
    pairs = list(combinations(found, 2))
    own = [first.versus(second) for first, second in pairs]
    corrected = holm([comparison.p for comparison in own])
    return [
        Versus(first.network, second.network, comparison, p)
        for (first, second), comparison, p in zip(pairs, own, corrected, strict=True)
    ]
