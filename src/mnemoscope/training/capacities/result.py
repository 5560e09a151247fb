"""Result of a capacity search, and comparison of several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from mnemoscope.core.errors import UserError
from mnemoscope.core.intervals import wilson
from mnemoscope.core.result import Result, plain, result
from mnemoscope.report import chart
from mnemoscope.training.statistics import Comparison, compare_paired, holm

__all__ = ["Capacity", "Versus", "compare_capacities", "draw_capacities", "rates"]


_WIDE = 8
"""From the easiest to the hardest level: three doublings."""


@result
class Capacity(Result):
    """What a network learns to remember.

    Attributes
    ----------
    network, task
        What was trained on what, in words.
    axis
        The setting of the task that is its difficulty.
    limit
        The hardest level that was mastered, below which none failed; None when there is none.
    below
        The easiest level that was not mastered: the limit lies below it. None when all were.
    unfinished
        The level whose trainings were under way when the time was up; None when there was none.
    curve
        The success rate at each level.
    levels
        The difficulties that were tried, ascending.
    lower, upper
        Wilson's 95% interval of the success rates.
    scores
        Test score of each level and seed; NaN where training diverged.
    steps
        Iterations that each training took.
    seeds
        Of the trainings; each level is trained with all of them.
    seed_limits
        For each seed, the hardest level that it mastered; None for none.
    criterion, quorum
        A training masters a level when its test score reaches `criterion`; the network does when at least the share
        `quorum` of the seeds do.
    complete
        Whether the search came to its end; otherwise `reason` says what ended it.
    seconds
        Of training, in all.
    parameters
        Of the network, readout included, at the hardest level.
    """

    measure: ClassVar[str] = "capacity"
    references: ClassVar[tuple[str, ...]] = ("ziv2020",)

    network: str
    task: str
    axis: str
    limit: int | None
    below: int | None
    unfinished: int | None
    levels: Int[np.ndarray, " levels"]
    curve: Float[np.ndarray, " levels"]
    lower: Float[np.ndarray, " levels"]
    upper: Float[np.ndarray, " levels"]
    scores: Float[np.ndarray, "levels seeds"]
    steps: Int[np.ndarray, "levels seeds"]
    seeds: tuple[int, ...]
    seed_limits: tuple[int | None, ...]
    criterion: float
    quorum: float
    warm_start: bool
    complete: bool
    reason: str
    seconds: float
    parameters: int

    def __str__(self) -> str:
        end = "" if self.complete else f"; {self.reason}"
        if self.limit is None:
            many = f"{len(self.levels)} {'level' if len(self.levels) == 1 else 'levels'}"
            tried = f", none of {many} mastered" if len(self.levels) else ""
            return f"{self.network} on {self.task}: {self.axis} {self.known}{tried}{end}"
        i = int(np.flatnonzero(self.levels == self.limit)[0])
        least = f"below {self.levels[0]}"
        seeds = ", ".join(least if limit is None else str(limit) for limit in self.seed_limits)
        rate = f"success rate there {self.curve[i]:.2f} [{self.lower[i]:.2f}, {self.upper[i]:.2f}]"
        return f"{self.network} masters {self.task} up to {self.axis} = {self.known} (seeds: {seeds}), {rate}{end}"

    @property
    def known(self) -> str:
        """What is known of the limit, in words: ``"40"``, ``"at least 20; 40 not finished"``, ``"below 25"``."""
        if self.complete and self.limit is not None:
            return str(self.limit)
        least = [] if self.limit is None else [f"at least {self.limit}"]
        most = [] if self.below is None else [f"below {self.below}"]
        words = ", ".join(least + most) or "unknown"
        return words if self.unfinished is None else f"{words}; {self.unfinished} not finished"

    def plot(self) -> chart.Chart:
        """Draw the success rate against the difficulty, with its interval."""
        return draw_capacities([self])

    def versus(self, other: Capacity) -> Comparison:
        """Compare the limits of two networks, paired by seed; a seed that mastered no level counts as 0."""
        shared = [seed for seed in self.seeds if seed in other.seeds]
        mine, theirs = (
            [float(one.seed_limits[one.seeds.index(seed)] or 0) for seed in shared] for one in (self, other)
        )
        return compare_paired(mine, theirs)


def rates(mastered: Bool[np.ndarray, "levels seeds"]) -> Float[np.ndarray, "3 levels"]:
    """Return success rates of all levels with Wilson's intervals: rate, lower, upper."""
    found = [wilson(int(row.sum()), len(row)) for row in mastered]
    return np.array([[one.value, one.lower, one.upper] for one in found]).reshape(-1, 3).T


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
    """Compare every two of several capacities of one task; one of which no level was finished is in no pair.

    Parameters
    ----------
    found
        Results of `capacity` with the same task, criterion and seeds.
    """
    if len({(one.task, one.axis, one.criterion) for one in found}) > 1:
        raise UserError("capacities must be of one task and one criterion to be compared")
    pairs = list(combinations([one for one in found if len(one.levels)], 2))
    own = [first.versus(second) for first, second in pairs]
    corrected = holm([comparison.p for comparison in own])
    return [
        Versus(first.network, second.network, comparison, p)
        for (first, second), comparison, p in zip(pairs, own, corrected, strict=True)
    ]


def draw_capacities(found: Sequence[Capacity]) -> chart.Chart:
    """Draw the success rates of networks on one task against its difficulty, with their intervals."""
    first, several = found[0], len(found) > 1
    names = {f"{one.network}: {one.known}" if several else one.network: one for one in found}
    return chart.lines(
        {name: (one.levels, one.curve) for name, one in names.items()},
        # Intervals of few seeds fill the plot: of several networks they would hide the curves.
        bands={} if several else {name: (one.lower, one.upper) for name, one in names.items()},
        x=first.axis,
        y=f"share of seeds that master it, of {len(first.seeds)}",
        title=f"Capacity on {first.task}" if several else f"{first.network} on {first.task}: {first.known}",
        points=True,
        log_x=_is_wide(found),
    )


def _is_wide(found: Sequence[Capacity]) -> bool:
    """Whether levels spread so far that they would crowd at one end of a linear axis."""
    levels = [int(level) for one in found for level in one.levels]
    return bool(levels) and min(levels) > 0 and max(levels) >= _WIDE * min(levels)
