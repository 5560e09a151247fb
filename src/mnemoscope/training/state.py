"""State of a training beside its weights: members, their endings, what callbacks are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor

from mnemoscope.training.data import Source
from mnemoscope.training.options import Options
from mnemoscope.training.schedule import Watch

__all__ = ["Callback", "Ending", "Member", "Moment"]


@dataclass
class Ending:
    """How the training of one network ended.

    Attributes
    ----------
    status
        ``"finished"`` or ``"failed"``.
    reason
        Why it ended, in one line: ``"all iterations done"``.
    step
        How many steps it made.
    weights_step
        The step whose weights it has: the best by validation, or the last good one before it failed.
    loss, score
        On the test set; None when it failed.
    tests
        Loss, score and what the task reports beside it, for each test by label.
    """

    status: str
    reason: str
    step: int
    weights_step: int
    loss: float | None = None
    score: float | None = None
    tests: dict[str, dict[str, float]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self)


@dataclass
class Member:
    """One network of a training.

    Attributes
    ----------
    number
        Its place among those that were given.
    options, source
        Its settings and its data.
    watch
        What its validations have said.
    best
        Its weights at the lowest validation loss.
    total, count
        Sum and number of its losses since the last line of the metrics.
    ending, final
        How it ended, and with which weights; None while it learns.
    """

    number: int
    options: Options
    source: Source
    watch: Watch = field(default_factory=Watch)
    best: dict[str, Tensor] | None = None
    total: float = 0.0
    count: int = 0
    ending: Ending | None = None
    final: dict[str, Tensor] | None = None

    @property
    def rate(self) -> float:
        """What its rates are multiplied by now."""
        return self.watch.rate(self.options.plateau)

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that its future depends on, and its weights once it has ended."""
        parts: dict[str, Mapping[str, Tensor]] = {"source": self.source.tensors()}
        if self.ending is not None:
            parts = {"final": self.final or {}}
        elif self.best is not None:
            parts["best"] = self.best
        return {f"{name}/{key}": tensor for name, own in parts.items() for key, tensor in own.items()}

    def state(self) -> dict[str, Any]:
        """Return the rest, ready for JSON."""
        ending = None if self.ending is None else self.ending.to_dict()
        return {"watch": self.watch.to_dict(), "total": self.total, "count": self.count, "ending": ending}

    def load(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Take over what `tensors` and `state` returned."""
        groups: dict[str, dict[str, Tensor]] = {"source": {}, "best": {}, "final": {}}
        for name, tensor in tensors.items():
            group, _, key = name.partition("/")
            groups[group][key] = tensor
        self.watch = Watch(**state["watch"])
        self.total, self.count = state["total"], state["count"]
        self.best, self.final = groups["best"] or None, groups["final"] or None
        if state["ending"] is not None:
            self.ending = Ending(**state["ending"])
        else:
            self.source.load(groups["source"])


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
