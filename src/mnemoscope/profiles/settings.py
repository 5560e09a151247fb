"""Settings of a profile: how thorough it is, and how long it may take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mnemoscope.core.errors import expected, positive_int

__all__ = ["ENOUGH_SEEDS", "Settings"]

ENOUGH_SEEDS = 3
"""Sets of weights with which a part of the default profile is done: an interval from fewer says little."""

_SEEDS = {False: 5, True: 3}
"""How many sets of weights are drawn, by `quick`: an interval from fewer than three says nothing."""


@dataclass(frozen=True)
class Settings:
    """Settings of a profile: how much work it is.

    Attributes
    ----------
    quick
        A first look.
    seed
        The first seed.
    seeds
        How many sets of weights a network without its own is measured with; None: 5, or 3 for a first look.
    budget
        Seconds that measuring may take; None: as long as it takes, or as `bounded` says.
    train_minutes
        Minutes that training may take beside; None: nothing is trained.
    inputs, inputs_file
        Sequences of the user's that drive every measure, (time, sequences, input_size), and the file that they are
        from; None: measures draw them.
    processes
        Processes among which seeds and sections of small networks are divided; each has one thread.
    bounded
        Without a budget: whether the ceiling of `mnemoscope.profiles.budget` holds, and measuring ends earlier once
        every part has three seeds or its interval changes no judgement.
    """

    quick: bool = False
    seed: int = 0
    seeds: int | None = None
    budget: float | None = None
    train_minutes: float | None = None
    bounded: bool = False
    inputs: Any = field(default=None, compare=False, repr=False)
    inputs_file: str = ""
    processes: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**62:
            raise expected("seed", "a whole number of at least 0", self.seed)
        if self.seeds is not None:
            positive_int("seeds", self.seeds)
        positive_int("processes", self.processes)
        if self.budget is not None and not self.budget > 0:
            raise expected("the budget", "a time above zero", self.budget)
        if self.train_minutes is not None and not self.train_minutes > 0:
            raise expected("train_minutes", "a time above zero", self.train_minutes)

    def seeds_of(self, trained: bool) -> list[int]:
        """Return the seeds: one where the weights are somebody's own."""
        usual = ENOUGH_SEEDS if self.ends_early else _SEEDS[self.quick]
        count = 1 if trained else self.seeds or usual
        return list(range(self.seed, self.seed + count))

    @property
    def ends_early(self) -> bool:
        """Whether measuring ends once no judgement changes: where nobody said how many seeds or how long."""
        return self.bounded and self.budget is None and self.seeds is None
