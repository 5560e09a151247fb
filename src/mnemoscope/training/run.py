"""What a training gives back."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import MnemoscopeError
from mnemoscope.core.result import plain
from mnemoscope.report.chart import Chart
from mnemoscope.runs.record import Metrics
from mnemoscope.tasks import Task
from mnemoscope.training.member import Ending
from mnemoscope.training.model import Model

__all__ = ["Diverged", "Run"]


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A training that has ended.

    Attributes
    ----------
    model
        The trained network, with the weights of the best validation where there was one.
    task, seed
        What it learned, and the seed of everything random in it.
    metrics
        Lines as they came: step, loss, score, validation; ``metrics.column("loss")`` is an array.
    ending
        How it ended.
    folder
        Where it is recorded, or None.
    layout
        How a population was computed; None for a network alone.
    """

    model: Model
    task: Task
    seed: int
    metrics: Metrics
    ending: Ending
    folder: Path | None = None
    layout: dict[str, Any] | None = field(default=None)

    @property
    def score(self) -> float:
        """The score on the test set; NaN of a run that failed."""
        return float("nan") if self.ending.score is None else self.ending.score

    @property
    def loss(self) -> float:
        """The loss on the test set; NaN of a run that failed."""
        return float("nan") if self.ending.loss is None else self.ending.loss

    @property
    def baseline(self) -> float:
        """The loss of the best answer without memory."""
        return self.task.baseline

    @property
    def status(self) -> str:
        """``"finished"`` or ``"failed"``."""
        return self.ending.status

    @property
    def reason(self) -> str:
        """Why it ended."""
        return self.ending.reason

    @property
    def tests(self) -> dict[str, dict[str, float]]:
        """Loss, score and more for each test of the task, by label."""
        return self.ending.tests

    def __str__(self) -> str:
        name = type(getattr(self.model.layer, "module", self.model.layer)).__name__.removeprefix("Parametrized")
        if self.status == "failed":
            return f"{name} on {self.task.name}: failed, {self.reason}"
        found = f"score {self.score:.4g} ({self.task.metric}), loss {self.loss:.4g}, without memory {self.baseline:.4g}"
        return f"{name} on {self.task.name}: {found}, {self.ending.step} steps ({self.reason})"

    def __repr__(self) -> str:
        return f"<Run: {self}>"

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(str(self))}</b></p>"

    def to_dict(self) -> dict[str, Any]:
        """Return what came out, ready for JSON: NaN and infinities as text."""
        where = None if self.folder is None else str(self.folder)
        facts = {"task": self.task.name, "metric": self.task.metric, "seed": self.seed, "baseline": self.baseline}
        found: dict[str, Any] = plain(
            {**facts, **self.ending.to_dict(), "folder": where, "metrics": list(self.metrics)}
        )
        return found

    def plot(self) -> Chart:
        """Draw the loss against the step, with the loss of answering without memory."""
        from mnemoscope.training.drawing import draw_losses

        return draw_losses(self)


class Diverged(MnemoscopeError):
    """A training whose loss or weights stopped being finite. The model has its last good weights.

    Attributes
    ----------
    run
        The run up to then, with ``run.reason``.
    """

    def __init__(self, run: Run) -> None:
        kept = f"the weights are those of step {run.ending.weights_step}, the last good one"
        where = "" if run.folder is None else f"; checkpoint in {run.folder}"
        super().__init__(f"{run.reason}; {kept}{where}")
        self.run = run
