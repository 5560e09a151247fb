"""The losses of many networks at once, each on its own batch, from the outputs of their layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemoscope.tasks import Batch, Task
from mnemoscope.training.affine import Buffers, class_major
from mnemoscope.training.objective import counted_steps, rows_from

__all__ = ["aligned", "stacked_losses"]


def aligned(batches: Sequence[Batch]) -> list[Batch]:
    """Return batches of equally many steps: shorter ones go on with zeros that nothing counts."""
    most = max(len(batch.mask) for batch in batches)
    return [batch if len(batch.mask) == most else _longer(batch, most - len(batch.mask)) for batch in batches]


def _longer(batch: Batch, more: int) -> Batch:
    def longer(part: Tensor) -> Tensor:
        return part if part.ndim == 1 else torch.cat([part, part.new_zeros(more, *part.shape[1:])])

    inputs, targets, mask = tree_map(longer, tuple(batch[:3]))
    return batch._replace(inputs=inputs, targets=targets, mask=mask)


def stacked_losses(
    task: Task,
    hidden: Float[Tensor, "members time batch n"],
    batches: Sequence[Batch],
    weights: Mapping[str, Tensor],
    buffers: Buffers,
) -> Float[Tensor, " members"]:
    """Return the task's loss of every member; the readout is linear, the loss that of `Task`.

    Parameters
    ----------
    weights
        Stacked; those of the readout are used.
    """
    counted, first, targets, mask = _counted(hidden, batches)
    weight, bias = weights["readout.weight"], weights.get("readout.bias")
    if task.classifies:
        logits = class_major(counted, weight, bias, buffers, first)
        losses = F.cross_entropy(logits, targets.flatten(1), reduction="none")
        return _mean(losses.view_as(targets), mask)
    rows = rows_from(counted, first)
    answers = rows @ weight.mT if bias is None else torch.baddbmm(bias.unsqueeze(1), rows, weight.mT)
    answers = answers.view(len(answers), *targets.shape[1:3], -1)
    answers = answers.squeeze(-1) if batches[0].per_sequence else answers
    targets = targets.to(answers.dtype)
    each = F.binary_cross_entropy_with_logits if task.kind == "binary" else F.mse_loss
    return _mean(each(answers, targets, reduction="none"), mask)


def _counted(hidden: Tensor, batches: Sequence[Batch]) -> tuple[Tensor, int, Tensor, Tensor | None]:
    """Return outputs (members, .., .., n), the first of their steps that counts, and from there the targets.

    The last is which of these count, where not all do.
    """
    steps = hidden.shape[1]
    targets = torch.stack([batch.targets for batch in batches])
    if batches[0].per_sequence:
        ends = torch.stack([batch.lengths for batch in batches]) - 1
        index = ends[:, None, :, None].expand(-1, -1, -1, hidden.shape[-1])
        return hidden.gather(1, index), 0, targets.unsqueeze(1), None
    lasts = {counted_steps(batch.mask)[1] for batch in batches}
    last = lasts.pop() if len(lasts) == 1 else None
    if last is not None:
        return hidden, steps - last, targets[:, steps - last :], None
    return hidden, 0, targets, torch.stack([batch.mask for batch in batches])


def _mean(each: Tensor, mask: Tensor | None) -> Float[Tensor, " members"]:
    """Return for each member the mean over what counts."""
    if mask is None:
        return each.flatten(1).mean(1)
    counted = mask.to(each.dtype) if each.dim() == 3 else mask.unsqueeze(-1).to(each.dtype)
    width = 1 if each.dim() == 3 else each.shape[-1]
    # Zero times infinity is not a number: what does not count is put aside, not multiplied by zero.
    kept = torch.where(counted.bool(), each, torch.zeros_like(each))
    return kept.flatten(1).sum(1) / (width * counted.flatten(1).sum(1))
