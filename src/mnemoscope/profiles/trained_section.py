"""Base of sections that train a network: asked for by --train, with minutes of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemoscope.profiles.drawing import SectionView
from mnemoscope.profiles.section import Context, ProfileSection

if TYPE_CHECKING:
    from mnemoscope.tasks import Task
    from mnemoscope.training.capacities.inputs import Builder

__all__ = ["TRAINING", "TrainedSection", "minutes_of"]

TRAINING: dict[str, Any] = {"lr": 3e-3, "batch_size": 64, "progress": False}
"""Of every training of these sections."""

PARTS = {"trained": 4, "ladder": 1, "memories": 1, "recall": 1}
"""Shares of the minutes that --minutes gives to all training."""

_SEEDS = 3
_PER_MINUTE, _LEAST, _MOST = 45, 200, 2000
"""Steps of one training: so many for each minute that --minutes gives, within bounds."""


def minutes_of(name: str, context: Context) -> float:
    """Return the minutes that a part may train all networks that are compared."""
    return (context.train_minutes or 0.0) * PARTS[name] / sum(PARTS.values())


class TrainedSection(ProfileSection):
    """A section that trains networks of several seeds, within its share of the minutes."""

    listed_for_others = False
    once = True
    threads = True
    trains = True

    def kept_as(self, context: Context) -> str:
        """Return a name for every number of minutes and of networks that share them."""
        return f"{super().kept_as(context)}/{context.train_minutes:g}/{context.rivals}"

    def reason_against(self, network: Any, context: Context) -> str | None:
        """Say that training has to be asked for, and needs weights that can be drawn anew."""
        against = super().reason_against(network, context)
        if against is not None:
            return against
        if context.train_minutes is None:
            return "not asked for: --train"
        return None if context.make is not None else "the weights are somebody's own: give the class, to train it anew"

    def seconds(self, network: Any, context: Context) -> float:
        """Return its share of the minutes."""
        return 60 * self.minutes(context)

    def minutes(self, context: Context) -> float:
        """Return its share of the minutes."""
        return minutes_of(self.name, context) / context.rivals

    @staticmethod
    def iterations(context: Context) -> int:
        """Return how many steps one training has at most."""
        given = (context.train_minutes or 0.0) / context.rivals
        return max(_LEAST, min(_MOST, round(_PER_MINUTE * given)))

    @staticmethod
    def seeds(context: Context) -> list[int]:
        """Return the seeds of the trainings."""
        return [context.seed + k for k in range(_SEEDS)]

    @staticmethod
    def builder(context: Context) -> Callable[[Task], Builder]:
        """Return what builds the network of the profile for a task."""
        from mnemoscope.training.capacities.inputs import Builder

        make, facts = context.make, context.facts
        assert make is not None
        network = {
            "name": facts.name,
            "options": dict(facts.options),
            "hidden_size": facts.hidden_size,
            "num_layers": facts.num_layers,
        }

        def build(task: Task) -> Builder:
            width = getattr(task, "embedding_size", 64) if task.embedding is not None else task.input_size
            return Builder(facts.name, lambda seed: make(seed, width), {"network": network})

        return build

    def folder(self, context: Context) -> Path | None:
        """Return where its trainings are recorded, so that an interrupted profile goes on."""
        return None if context.folder is None else context.folder / f"{self.name}-{self.iterations(context)}"

    def typed(self, view: SectionView) -> str:
        """Return the commands that make the section again."""
        lines = [
            f"mnemoscope profile {row.command} --train --minutes {row.settings.train_minutes:g}"
            for row in view.subjects
            if row.command and row.settings.train_minutes is not None
        ]
        return "\n".join(lines)
