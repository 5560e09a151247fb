"""t-maze: a cue at the start of a corridor says where to turn at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from mnemoscope.tasks.checks import at_least
from mnemoscope.tasks.control.base import TensorEnvironment
from mnemoscope.tasks.control.registry import environment

__all__ = ["TMaze"]

_UP, _DOWN, _FORWARD = range(3)


@environment("t-maze")
@dataclass(frozen=True)
class TMaze(TensorEnvironment):
    """Walk along a corridor and turn to the side that was shown at its beginning.

    A cue, up or down with equal chance, is seen at the first step only. Actions: up, down, forward. In the corridor
    only forward moves. At its end, after `corridor` moves, every action ends the episode: with reward 1 on the side of
    the cue, with 0 on the other and at the wall ahead. It also ends, without reward, after 3 (corridor + 1) steps [o].

    The best policy remembers: return 1. Without memory all junctions look alike: 1/2.

    Parameters
    ----------
    corridor
        Moves from the cue to the junction, at least 1.

    Notes
    -----
    Observation: cue up, cue down, corridor, junction; each 0 or 1.
    """

    corridor: int = 10

    references = ("bakker2001",)
    metric = "share of episodes that end on the side of the cue"
    difficulty = "corridor"

    def __post_init__(self) -> None:
        """Check the setting."""
        at_least("corridor", self.corridor, 1)

    @property
    def input_size(self) -> int:
        """Numbers of an observation."""
        return 4

    @property
    def actions(self) -> int:
        """How many actions there are."""
        return 3

    @property
    def optimum(self) -> float:
        """The return of a policy that remembers."""
        return 1.0

    @property
    def memoryless(self) -> float:
        """The return of guessing."""
        return 0.5

    @property
    def steps(self) -> int:
        """Three times as many as the way takes."""
        return 3 * (self.corridor + 1)

    @property
    def frames(self) -> int:
        """A multiple of 128 that holds the way twice, so that a cue and its reward are seen together."""
        return 128 * -(-2 * (self.corridor + 1) // 128)

    def draw(self, steps: int, count: int, generator: torch.Generator) -> Tensor:
        """Draw cues: 0 is up, 1 is down."""
        return torch.randint(2, (steps, count), generator=generator)

    def begin(self, chance: Tensor) -> dict[str, Tensor]:
        """Return copies before the first step."""
        return {"cue": chance, "place": torch.zeros_like(chance), "time": torch.zeros_like(chance)}

    def observe(self, state: Mapping[str, Tensor]) -> Tensor:
        """Return cue up, cue down, corridor, junction."""
        first, junction = state["time"] == 0, state["place"] == self.corridor
        cue = state["cue"]
        return torch.stack([first & (cue == _UP), first & (cue == _DOWN), ~junction, junction], dim=1).float()

    def turn(
        self, state: Mapping[str, Tensor], action: Tensor, chance: Tensor
    ) -> tuple[dict[str, Tensor], Tensor, Tensor]:
        """Walk, or turn at the junction."""
        place, time = state["place"], state["time"] + 1
        turned = place == self.corridor
        right = turned & (action == state["cue"])
        place = (place + (action == _FORWARD)).clamp(max=self.corridor)
        return {"cue": state["cue"], "place": place, "time": time}, right.float(), turned | (time >= self.steps)
