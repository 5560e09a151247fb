"""The loss of a batch from the layer's outputs: the task's own, or the same number on a faster way.

A linear readout is applied to no more rows than count; of classification, with the classes in front (`affine`). That is
for tasks whose loss is the one of `Task`, the mean over all steps that the mask counts.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.tasks import Batch, Task
from mnemoscope.training.affine import Buffers, class_major
from mnemoscope.training.model import Model

__all__ = ["Loss", "Objective", "counted_steps", "is_plain", "quick_score", "rows_from"]

Loss = Callable[[Tensor, Batch], Tensor]
"""An own loss: of the answers (time, batch, answers) and the batch."""

_IGNORED = -100
_GATHER = 0.5
"""The share of counted rows below which they are gathered; above it all rows are computed, and some ignored."""


def is_plain(task: Task) -> bool:
    """Say whether the task's loss is that of `Task`, which the fast ways compute."""
    return type(task).loss is Task.loss


class Objective:
    """The loss of one network.

    Parameters
    ----------
    model
        Whose readout is applied.
    task
        Whose loss it is.
    loss
        An own loss instead of the task's.
    """

    def __init__(self, model: Model, task: Task, loss: Loss | None = None) -> None:
        self.model, self.task = model, task
        self.own = loss
        self.buffers = Buffers()
        linear = type(model.readout) is nn.Linear and model.kind != "classifier"
        self.fast = linear and loss is None and is_plain(task)

    def __call__(self, hidden: Float[Tensor, "time batch n"], batch: Batch) -> Float[Tensor, ""]:
        """Return the loss."""
        if not self.fast:
            return (self.own or self.task.loss)(self.model.answers(hidden), batch)
        counted, first, targets = self._counted(hidden, batch)
        readout = self.model.readout
        assert isinstance(readout, nn.Linear)
        if self.task.kind == "classification":
            if torch.is_autocast_enabled(hidden.device.type):
                logits = readout(rows_from(counted, first)).mT
            else:
                logits = class_major(counted, readout.weight, readout.bias, self.buffers, first)
            return F.cross_entropy(logits.unsqueeze(0), targets.unsqueeze(0), ignore_index=_IGNORED)
        answers = readout(rows_from(counted, first))
        answers = answers.squeeze(-1) if batch.per_sequence else answers
        targets = targets.to(answers.dtype)
        if self.task.kind == "binary":
            return F.binary_cross_entropy_with_logits(answers, targets)
        return F.mse_loss(answers, targets)

    def _counted(self, hidden: Tensor, batch: Batch) -> tuple[Tensor, int, Tensor]:
        """Return outputs (.., .., n), the first of their steps that counts, and the targets of the rows from there.

        Few rows that do not count are among them, and ignored.
        """
        steps, size = hidden.shape[:2]
        if batch.per_sequence:
            ends = batch.lengths - 1
            return hidden[ends, torch.arange(size, device=ends.device)].unsqueeze(0), 0, batch.targets
        count, last = counted_steps(batch.mask)
        if last is not None:
            return hidden, steps - last, batch.targets[steps - last :].flatten(0, 1)
        mask, targets = batch.mask.flatten(), batch.targets.flatten(0, 1)
        if self.task.kind == "classification" and count > _GATHER * mask.numel():
            return hidden, 0, targets.masked_fill(~mask, _IGNORED)
        chosen = mask.nonzero().squeeze(1)
        return hidden.flatten(0, 1).index_select(0, chosen).unsqueeze(0), 0, targets.index_select(0, chosen)


def rows_from(hidden: Float[Tensor, "*members time batch n"], first: int) -> Float[Tensor, "*members rows n"]:
    """Return the rows of the steps from `first` on; a slice that takes all would cost a copy on the way back."""
    return (hidden[..., first:, :, :] if first else hidden).flatten(-3, -2)


def quick_score(
    task: Task, answers: Callable[[Tensor], Tensor], hidden: Float[Tensor, "time batch n"], batch: Batch
) -> float:
    """Return the task's score from the layer's outputs; the readout is applied to no more steps than are scored.

    Parameters
    ----------
    answers
        The readout, for outputs of any number of steps.
    """
    if type(task).score is not Task.score or batch.per_sequence:
        return task.score(answers(hidden), batch)
    mask = task.scored(batch)
    first = int(mask.any(1).int().argmax())
    part = batch.since(first)
    if not first or not torch.equal(task.scored(part), mask[first:]):
        return task.score(answers(hidden), batch)
    return task.score(answers(hidden[first:]), part)


def counted_steps(mask: Tensor) -> tuple[int, int | None]:
    """Return how many entries of (time, batch) count, and how many last steps if these are all of them."""
    steps, size = mask.shape
    count = int(mask.count_nonzero())
    last, rest = divmod(count, size)
    if rest or (last < steps and not bool(mask[steps - last :].all())):
        return count, None
    return count, last
