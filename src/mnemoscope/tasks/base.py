"""Base of all tasks: batches, scores, and the loss of answering without memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from mnemoscope.core.errors import Description, UserError, expected, positive_int
from mnemoscope.tasks.batch import Batch, Splits, last_step
from mnemoscope.tasks.problems import Problem

__all__ = ["Evaluation", "Task"]


class Evaluation(NamedTuple):
    """One test of a trained network on fresh sequences: the mean over `batches` batches of `batch_size`."""

    label: str
    task: Task
    batches: int = 100
    batch_size: int = 100


@dataclass(frozen=True)
class Task(Problem):
    """A problem of sequences and answers: a frozen dataclass whose fields are its settings.

    Attributes
    ----------
    name, references, difficulty, axes, dataset
        As every `Problem` has them.
    kind
        What the targets are, and so the loss: ``"classification"`` (cross entropy of logits), ``"relational"`` (the
        same, one answer for a sequence of images), ``"pairs"`` (the same, one answer for two sequences),
        ``"regression"`` (mean squared error) or ``"binary"`` (binary cross entropy of logits, one per number).
    metric
        The score in words.
    naive
        The formula of `baseline` in the settings' names.
    streams
        Whether `windows` gives contiguous text.
    """

    kind: ClassVar[str] = "classification"
    metric: ClassVar[str] = "accuracy"
    naive: ClassVar[str] = ""
    streams: ClassVar[bool] = False

    @property
    @abstractmethod
    def steps(self) -> int:
        """Steps of a sequence; of the longest, where they differ."""

    @property
    @abstractmethod
    def input_size(self) -> int:
        """Numbers per step of the input; the size of the vocabulary for tasks with an `embedding`."""

    @property
    @abstractmethod
    def output_size(self) -> int:
        """Numbers per step that the readout must give: classes, or dimensions."""

    @property
    @abstractmethod
    def baseline(self) -> float:
        """The loss of a naive answer, which `baseline_is` names: for most tasks the best that uses no memory."""

    @property
    def memoryless(self) -> float | None:
        """The loss of the best answer that sees only the present input; None where it is not known."""
        return self.baseline

    @abstractmethod
    def draw(self, batch: int, generator: torch.Generator | None) -> Batch:
        """Draw fresh sequences on the generator's device: what a task writes, and `sample` calls."""

    @property
    def classifies(self) -> bool:
        """Whether an answer is one of several classes."""
        return self.kind in ("classification", "relational", "pairs")

    @property
    def embedding(self) -> int | None:
        """The size of the vocabulary when the inputs are token numbers to embed, else None."""
        return None

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one step of the input: `input_size` is its product."""
        return (self.input_size,)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of one step of the answer: `output_size` is its product."""
        return (self.output_size,)

    def sample(
        self, batch: int, generator: torch.Generator | None = None, *, device: torch.device | str | None = None
    ) -> Batch:
        """Draw fresh sequences.

        Parameters
        ----------
        batch
            How many.
        generator
            Where the random numbers come from: one seed gives one batch, whatever the device; by default torch's own.
        device
            Where the batch goes, by default where the generator lives.
        """
        positive_int("batch", batch)
        if generator is not None and not isinstance(generator, torch.Generator):
            raise expected("generator", "a torch.Generator or None", generator)
        drawn = self.draw(batch, generator)
        return drawn if device is None else drawn.to(device)

    def splits(self, seed: int = 0) -> Splits | None:
        """Return the fixed train, validation and test sets, or None for a task that always draws fresh sequences."""
        return None

    def windows(self, split: str, batch: int, length: int | None = None) -> Iterator[Batch]:
        """Give a text as `batch` contiguous streams, window after window; training carries the state between them."""
        raise UserError(f"the task {self.name} has no contiguous text; shakespeare and ptb have")

    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return the tests of a trained network on fresh sequences: by default 10,000 of the same task."""
        return (Evaluation(f"{self.difficulty}={getattr(self, self.difficulty)}", self),)

    def loss(self, output: Float[Tensor, "*time batch output"], batch: Batch) -> Float[Tensor, ""]:
        """Return the mean loss over the steps that the mask counts: cross entropy in nats, or squared error.

        Parameters
        ----------
        output
            (time, batch, output_size), or (time, batch, *output_shape); with one target per sequence
            (batch, output_size) of the last step will do.
        """
        answers, targets = self._counted(output, batch, batch.mask)
        if self.classifies:
            return F.cross_entropy(answers, targets)
        if self.kind == "binary":
            return F.binary_cross_entropy_with_logits(answers, targets.to(answers.dtype))
        return F.mse_loss(answers, targets.to(answers.dtype))

    def scored(self, batch: Batch) -> Bool[Tensor, "time batch"]:
        """Return the steps that the score counts: by default those of the loss."""
        return batch.mask

    def score(self, output: Float[Tensor, "*time batch output"], batch: Batch) -> float:
        """Return how good the answers are: 1 is perfect, higher is better.

        The accuracy of the largest logit (classification) or of the signs of the logits (binary) over the steps
        `scored`, or 1 - MSE / baseline (regression).
        """
        answers, targets = self._counted(output, batch, self.scored(batch))
        if self.classifies:
            return float((answers.argmax(-1) == targets).double().mean())
        if self.kind == "binary":
            return float(((answers > 0) == (targets > 0.5)).double().mean())
        return 1 - F.mse_loss(answers.double(), targets.double()).item() / self.baseline

    def reported(self, loss: float) -> dict[str, float]:
        """Return what people of the field would rather read than the loss, by name: bits per character, say."""
        return {}

    def glyphs(self) -> tuple[list[str], list[str]] | None:
        """Return signs for every input and every class of a task of symbols; None where the inputs are numbers."""
        return None

    def input_names(self) -> list[str]:
        """Return what the numbers of a step are called, where each is something of its own."""
        return []

    def pictures(self, batch: Batch, which: int = 0) -> dict[str, Float[np.ndarray, "rows columns"]]:
        """Return a sequence as images with values in [0, 1], by what they show, where it is made of one."""
        return {}

    def _counted(self, output: Any, batch: Batch, mask: Bool[Tensor, "time batch"]) -> tuple[Tensor, Tensor]:
        """Return answers and targets of the steps that count, one row each."""
        output = self._flat(output, batch)
        if batch.per_sequence:
            answers = output if output.ndim == 2 else last_step(output, batch.ends)
            return (answers if self.classifies else answers.squeeze(-1)), batch.targets
        return output[mask], batch.targets[mask]

    def _flat(self, output: Any, batch: Batch) -> Tensor:
        """Return answers whose last axis is `output_size`, or raise the standard error."""
        wanted = (*batch.mask.shape, self.output_size)
        shape = tuple(output.shape) if isinstance(output, Tensor) else Description(type(output).__name__)
        if shape == wanted or (batch.per_sequence and shape == wanted[1:]):
            return output  # type: ignore[no-any-return]
        if shape == (*batch.mask.shape, *self.output_shape):
            return output.flatten(2)  # type: ignore[no-any-return]
        raise expected("output", f"of shape {wanted} (time, batch, output_size)", shape)
