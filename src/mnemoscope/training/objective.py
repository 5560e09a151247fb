"""The loss of a batch from the layer's outputs: the task's own, or the same number on a faster way.

A linear readout is applied to no more rows than count; of classification, with the classes in front (`affine`). That is
for tasks whose loss is the one of `Task`, the mean over all steps that the mask counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.utils._pytree import tree_map

from mnemoscope.tasks import Batch, Task
from mnemoscope.training.model import Model

__all__ = [
    "Buffers",
    "Loss",
    "Objective",
    "aligned",
    "class_major",
    "counted_steps",
    "is_plain",
    "quick_score",
    "rows_from",
    "stacked_losses",
]

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
        linear = type(model.readout) is nn.Linear and not model.once
        self.fast = linear and loss is None and is_plain(task)

    def __call__(
        self, hidden: Float[Tensor, "time batch n"], batch: Batch, mask: Tensor | None = None
    ) -> Float[Tensor, ""]:
        """Return the loss; `mask`: that of the batch where its values can be read without waiting for a device."""
        if not self.fast:
            return (self.own or self.task.loss)(self.model.answers(hidden), batch)
        counted, first, targets = self._counted(hidden, batch, batch.mask if mask is None else mask)
        readout = self.model.readout
        assert isinstance(readout, nn.Linear)
        if self.task.classifies:
            if _is_mixed(hidden.device):
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

    def _counted(self, hidden: Tensor, batch: Batch, seen: Tensor) -> tuple[Tensor, int, Tensor]:
        """Return outputs (.., .., n), the first of their steps that counts, and the targets of the rows from there.

        Few rows that do not count are among them, and ignored.
        """
        steps, size = hidden.shape[:2]
        if batch.per_sequence:
            ends = batch.ends - 1
            return hidden[ends, torch.arange(size, device=ends.device)].unsqueeze(0), 0, batch.targets
        count, last = counted_steps(seen)
        if last is not None:
            return hidden, steps - last, batch.targets[steps - last :].flatten(0, 1)
        mask, targets = batch.mask.flatten(), batch.targets.flatten(0, 1)
        if self.task.classifies and count > _GATHER * mask.numel():
            return hidden, 0, targets.masked_fill(~mask, _IGNORED)
        chosen = seen.flatten().nonzero().squeeze(1).to(hidden.device)
        return hidden.flatten(0, 1).index_select(0, chosen).unsqueeze(0), 0, targets.index_select(0, chosen)


def _is_mixed(device: torch.device) -> bool:
    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)


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
    masks: Sequence[Tensor] | None = None,
) -> Float[Tensor, " members"]:
    """Return the task's loss of every member; the readout is linear, the loss that of `Task`.

    Parameters
    ----------
    weights
        Stacked; those of the readout are used.
    masks
        Those of the batches where their values can be read without waiting for a device.
    """
    seen = [batch.mask for batch in batches] if masks is None else masks
    counted, first, targets, mask = _counted(hidden, batches, seen)
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


def _counted(
    hidden: Tensor, batches: Sequence[Batch], seen: Sequence[Tensor]
) -> tuple[Tensor, int, Tensor, Tensor | None]:
    """Return outputs (members, .., .., n), the first of their steps that counts, and from there the targets.

    The last is which of these count, where not all do.
    """
    steps = hidden.shape[1]
    targets = torch.stack([batch.targets for batch in batches])
    if batches[0].per_sequence:
        ends = torch.stack([batch.ends for batch in batches]) - 1
        index = ends[:, None, :, None].expand(-1, -1, -1, hidden.shape[-1])
        return hidden.gather(1, index), 0, targets.unsqueeze(1), None
    lasts = {counted_steps(mask)[1] for mask in seen}
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


class Buffers:
    """Tensors that are used again at every step of the same shape."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Tensor, int]] = {}

    def get(self, name: str, like: Tensor, zeros: int) -> Tensor:
        """Return the buffer `name` in shape, type and place of `like`, (.., time, batch, n); its first steps are 0.

        Whoever asks for it writes all but these `zeros` steps, and leaves these as they are.
        """
        found, known = self._kept.get(name, (None, 0))
        if found is None or found.shape != like.shape or found.dtype != like.dtype or found.device != like.device:
            found, known = torch.empty_like(like, memory_format=torch.contiguous_format), 0
        if zeros > known:
            found[..., known:zeros, :, :] = 0
        self._kept[name] = found, zeros
        return found


def class_major(
    h: Float[Tensor, "*members time batch n"],
    weight: Float[Tensor, "*members classes n"],
    bias: Float[Tensor, "*members classes"] | None,
    buffers: Buffers,
    first: int = 0,
) -> Float[Tensor, "*members classes rows"]:
    """Return W h^T + b of the steps from `first` on, one row after the other.

    The gradient of h is written into a buffer: it must be used up before the next step.
    """
    made: Tensor = _ClassMajor.apply(h, weight, bias, buffers, first)  # type: ignore[no-untyped-call]
    return made


class _ClassMajor(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor | None, buffers: Buffers, first: int) -> Tensor:
        ctx.save_for_backward(h, weight)
        ctx.buffers, ctx.biased, ctx.first = buffers, bias is not None, first
        columns = _rows(h, first).mT
        if bias is None:
            return weight @ columns
        add_product = torch.addmm if h.dim() == 3 else torch.baddbmm
        return add_product(bias.unsqueeze(-1), weight, columns)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Any:
        h, weight = ctx.saved_tensors
        dh = ctx.buffers.get("dh", h, ctx.first) if ctx.needs_input_grad[0] else None
        if dh is not None:
            torch.matmul(g.mT, weight, out=_rows(dh, ctx.first))
        return dh, g @ _rows(h, ctx.first), g.sum(-1) if ctx.biased else None, None, None


def _rows(h: Tensor, first: int) -> Tensor:
    return h[..., first:, :, :].flatten(-3, -2)
