"""Loss and score on held-out data, of one network or of many at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mnemoscope.tasks import Batch, Task
from mnemoscope.training.objective import Loss
from mnemoscope.training.step import evaluating

__all__ = ["Outcome", "evaluate"]


class Outcome(NamedTuple):
    """Mean loss and score over a set."""

    loss: float
    score: float


def evaluate(
    step: Any, task: Task, data: Sequence[Iterator[Batch]], carries: bool = False, loss: Loss | None = None
) -> list[Outcome]:
    """Return loss and score of each network that `step` holds on its own data.

    Both are means over what counts: parts of different sizes weigh by what counts in them.
    """
    sums = [[0.0, 0.0, 0.0, 0.0] for _ in data]
    carry = None
    own = loss or task.loss
    with evaluating(step):
        for batches in zip(*data, strict=True):
            answers, prepared, state = step.outputs(batches, carry)
            carry = state if carries else None
            for total, answer, batch in zip(sums, answers, prepared, strict=True):
                counted, scored = _weights(task, batch)
                total[0] += counted * float(own(answer, batch))
                total[1] += counted
                total[2] += scored * task.score(answer, batch)
                total[3] += scored
    return [Outcome(a / b, c / d) for a, b, c, d in sums]


def _weights(task: Task, batch: Batch) -> tuple[int, int]:
    if batch.per_sequence:
        return batch.size, batch.size
    return int(batch.mask.sum()), int(task.scored(batch).sum())
