"""Settings of a profile: how much work it is."""

from __future__ import annotations

from dataclasses import dataclass

from mnemoscope.core.errors import expected, positive_int

__all__ = ["Settings"]

_SEEDS = {False: 5, True: 3}
"""How many sets of weights are drawn, by `quick`: an interval from fewer than three says nothing."""


@dataclass(frozen=True)
class Settings:
    """What a person chose.

    Attributes
    ----------
    quick
        A first look.
    seed
        The first seed.
    seeds
        How many sets of weights a network without its own is measured with; None: 5, or 3 for a first look.
    budget
        Seconds that measuring may take; None: as long as it takes.
    train_minutes
        Minutes that training may take beside; None: nothing is trained.
    """

    quick: bool = False
    seed: int = 0
    seeds: int | None = None
    budget: float | None = None
    train_minutes: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**62:
            raise expected("seed", "a whole number of at least 0", self.seed)
        if self.seeds is not None:
            positive_int("seeds", self.seeds)
        if self.budget is not None and not self.budget > 0:
            raise expected("the budget", "a time above zero", self.budget)
        if self.train_minutes is not None and not self.train_minutes > 0:
            raise expected("train_minutes", "a time above zero", self.train_minutes)

    def seeds_of(self, trained: bool) -> list[int]:
        """Return the seeds: one where the weights are somebody's own."""
        count = 1 if trained else self.seeds or _SEEDS[self.quick]
        return list(range(self.seed, self.seed + count))
