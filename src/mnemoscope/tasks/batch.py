"""Sequences with their answers, and fixed sets of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemoscope.nn.panels import Panels

__all__ = ["Batch", "Splits", "all_steps", "at_the_end", "final_steps", "last_step", "one_hot", "place", "steps_before"]


class Batch(NamedTuple):
    """Sequences with their answers.

    Attributes
    ----------
    inputs
        (time, batch, *input_shape) numbers; (time, batch) int64 token numbers for tasks with an `embedding`; or a
        pytree of such tensors, `Panels` among them.
    targets
        (time, batch) classes, or (time, batch, output_size) numbers, or one label or number per sequence (batch,).
    mask
        (time, batch): the steps that the loss counts. With one target per sequence: its last step.
    lengths
        (batch,): where each sequence ends; (batch, 2) of tasks of kind ``"pairs"``, whose inputs are (time, batch, 2).
    """

    inputs: Any
    targets: Tensor
    mask: Bool[Tensor, "time batch"]
    lengths: Int64[Tensor, " batch"]

    @property
    def size(self) -> int:
        """How many sequences there are."""
        return len(self.lengths)

    @property
    def per_sequence(self) -> bool:
        """Whether there is one target per sequence instead of one per step."""
        return self.targets.ndim == 1

    @property
    def ends(self) -> Int64[Tensor, " batch"]:
        """How many steps there are until a sequence is answered: its length; of a pair all."""
        return self.lengths if self.lengths.ndim == 1 else torch.full_like(self.lengths[:, 0], len(self.mask))

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on another device."""
        return Batch(*tree_map(lambda part: part.to(device), tuple(self)))

    def take(self, which: Int64[Tensor, " some"] | slice) -> Batch:
        """Return some of the sequences, by their numbers.

        Examples
        --------
        >>> import torch, mnemoscope as ms
        >>> ms.tasks.create("copy", delay=5).sample(9).take(torch.tensor([8, 0])).inputs.shape
        torch.Size([25, 2, 10])
        """
        targets = self.targets[which] if self.per_sequence else _columns(self.targets, which)
        return Batch(_sequences(self.inputs, which), targets, self.mask[:, which], self.lengths[which])

    def since(self, first: int) -> Batch:
        """Return the batch without the steps before `first`."""
        targets = self.targets if self.per_sequence else self.targets[first:]
        return Batch(tree_map(lambda part: part[first:], self.inputs), targets, self.mask[first:], self.lengths - first)


def _sequences(inputs: Any, which: Tensor | slice) -> Any:
    if isinstance(inputs, Panels):
        return inputs.take(which)
    return tree_map(lambda part: _columns(part, which), inputs)


def _columns(values: Tensor, which: Tensor | slice) -> Tensor:
    """Return some columns of a tensor whose first two axes are time and sequence."""
    # A fixed set is stored sequence by sequence behind a transposed view: one read for each.
    return values.transpose(0, 1)[which].transpose(0, 1).contiguous()


class Splits(NamedTuple):
    """Fixed sets: to learn from, to choose by, and to report."""

    train: Batch
    validation: Batch
    test: Batch


def one_hot(
    tokens: Int64[Tensor, "time batch"], classes: int, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "time batch classes"]:
    """Return tokens as vectors with a single 1."""
    found = torch.zeros(*tokens.shape, classes, dtype=dtype, device=tokens.device)
    return found.scatter_(-1, tokens.unsqueeze(-1), 1.0)


def last_step(
    output: Float[Tensor, "time batch output"], lengths: Int64[Tensor, " batch"]
) -> Float[Tensor, "batch output"]:
    """Return the output at the last step of every sequence."""
    return output[lengths - 1, torch.arange(len(lengths), device=lengths.device)]


def place(generator: torch.Generator | None) -> torch.device:
    """Return where a generator draws."""
    return torch.device("cpu") if generator is None else generator.device


def all_steps(inputs: Tensor, targets: Tensor) -> Batch:
    """Return a batch whose sequences have one length, and whose steps all count."""
    steps, size = inputs.shape[:2]
    mask = torch.ones(steps, size, dtype=torch.bool, device=inputs.device)
    return Batch(inputs, targets, mask, torch.full((size,), steps, device=inputs.device))


def at_the_end(inputs: Tensor, targets: Tensor) -> Batch:
    """Return a batch whose sequences have one length, and one target each, asked for at the last step."""
    steps, size = inputs.shape[:2]
    mask = torch.zeros(steps, 1, dtype=torch.bool, device=inputs.device)
    mask[-1] = True
    # One column serves all: a set of images would hold a mask as large as itself.
    return Batch(inputs, targets, mask.expand(steps, size), torch.full((size,), steps, device=inputs.device))


def final_steps(batch: Batch, count: int) -> Bool[Tensor, "time batch"]:
    """Return a mask of the last `count` steps of sequences of one length."""
    mask = torch.zeros_like(batch.mask)
    mask[-count:] = True
    return mask


def steps_before(lengths: Int64[Tensor, " batch"], steps: int) -> Bool[Tensor, "time batch"]:
    """Return which of the steps 0, 1, .. lie before each length."""
    return torch.arange(steps, device=lengths.device).unsqueeze(1) < lengths
