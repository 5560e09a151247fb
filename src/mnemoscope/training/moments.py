"""What is told of a training while it runs, and what is kept of it to come back to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

__all__ = ["Callback", "Moment", "Snapshot"]


@dataclass(frozen=True)
class Moment:
    """What a callback is told at every line of the metrics.

    Attributes
    ----------
    member
        Which network, by its place among those given.
    step
        Steps done.
    row
        The line: loss and score since the last one, and on validation where there was one.
    weights
        Called, returns a copy of the network's weights by name.
    """

    member: int
    step: int
    row: dict[str, Any]
    weights: Callable[[], dict[str, Tensor]]


Callback = Callable[[Moment], Any]
"""Called at every line of the metrics; when it returns True, the network it was told of stops learning."""


@dataclass(frozen=True)
class Snapshot:
    """Everything that the rest of a training depends on."""

    step: int
    tensors: dict[str, Tensor]
    state: dict[str, Any]
