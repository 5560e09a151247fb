"""The result of `capacity`: the whole curve, the limit, and how it is printed and drawn."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from mnemoscope.core.intervals import wilson
from mnemoscope.core.result import Result, result
from mnemoscope.report import chart
from mnemoscope.training.drawing import draw_capacities
from mnemoscope.training.statistics import Comparison, compare_paired

__all__ = ["Capacity"]


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
        The hardest level that was mastered, below which none failed; 0 when there is none.
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
        For each seed, the hardest level that it mastered; 0 for none.
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
    limit: int
    levels: Int[np.ndarray, " levels"]
    curve: Float[np.ndarray, " levels"]
    lower: Float[np.ndarray, " levels"]
    upper: Float[np.ndarray, " levels"]
    scores: Float[np.ndarray, "levels seeds"]
    steps: Int[np.ndarray, "levels seeds"]
    seeds: tuple[int, ...]
    seed_limits: Int[np.ndarray, " seeds"]
    criterion: float
    quorum: float
    warm_start: bool
    complete: bool
    reason: str
    seconds: float
    parameters: int

    def __str__(self) -> str:
        if not len(self.levels):
            return f"{self.network} on {self.task}: no level was tried, {self.reason}"
        spread = "" if not self.limit else f" (seeds: {', '.join(map(str, self.seed_limits))})"
        end = "" if self.complete else f"; {self.reason}"
        rate = self._rate()
        return f"{self.network} masters {self.task} up to {self.axis} = {self.limit}{spread}{rate}{end}"

    def _rate(self) -> str:
        at = np.flatnonzero(self.levels == self.limit)
        if not len(at):
            return f", none of {len(self.levels)} levels"
        i = int(at[0])
        return f", success rate there {self.curve[i]:.2f} [{self.lower[i]:.2f}, {self.upper[i]:.2f}]"

    def plot(self) -> chart.Chart:
        """Draw the success rate against the difficulty, with its interval."""
        return draw_capacities([self])

    def versus(self, other: Capacity) -> Comparison:
        """Compare the limits of two networks, paired by seed."""
        shared = [seed for seed in self.seeds if seed in other.seeds]
        mine, theirs = ([float(one.seed_limits[one.seeds.index(seed)]) for seed in shared] for one in (self, other))
        return compare_paired(mine, theirs)


def rates(mastered: Bool[np.ndarray, "levels seeds"]) -> Float[np.ndarray, "3 levels"]:
    """Return success rates of all levels with Wilson's intervals: rate, lower, upper."""
    found = [wilson(int(row.sum()), len(row)) for row in mastered]
    return np.array([[one.value, one.lower, one.upper] for one in found]).reshape(-1, 3).T
