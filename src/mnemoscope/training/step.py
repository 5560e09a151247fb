"""One step of training one network on a batch: forward, loss, descent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from mnemoscope.core.errors import MnemoscopeError, UserError, expected
from mnemoscope.nn.maps.base import Transition
from mnemoscope.tasks import Batch, Task
from mnemoscope.training.data import Fixed, Source
from mnemoscope.training.descent import Descent, autocast, read_as, trained_parameters
from mnemoscope.training.model import Model
from mnemoscope.training.objective import Loss, Objective, quick_score
from mnemoscope.training.options import Options

__all__ = ["Step", "check_answers", "evaluating", "needs_after_step", "prepared", "trial_batch"]


class Step(Descent):
    """What training does to one network, step by step. It serves your own loop as well.

    >>> import mnemoscope as ms
    >>> task = ms.tasks.create("copy", delay=5)
    >>> model = ms.training.build_model(ms.nn.RNN(10, 8), task, "linear", ms.training.stream(0, "readout"))
    >>> step = ms.training.Step(model, task, ms.training.Options(iterations=10, lr=1e-3))
    >>> loss = step.train(task.sample(16))

    Parameters
    ----------
    model
        Whose parameters move, in place.
    task
        Whose loss it is.
    options
        Rates, optimiser, clipping, penalty, precision.
    loss
        An own loss, of answers and batch, instead of the task's.
    """

    def __init__(self, model: Model, task: Task, options: Options, loss: Loss | None = None) -> None:
        super().__init__(model, options)
        self.task = task
        self.objective = Objective(model, task, loss)
        self.last: tuple[Tensor, Batch] | None = None

    def train(self, batch: Batch) -> float:
        """Make one step on a batch, and return its loss before the step, without the penalty."""
        return float(self.advance(batch))

    def advance(self, batch: Batch) -> Tensor:
        """Do what `train` does, and return the loss where it was computed: nothing waits for the device."""
        self.last = None  # so that its memory is free for this step: a fresh piece of this size is slow
        # Lengths and mask are looked at where they were drawn; on the device one would wait for them.
        lengths, mask = batch.lengths, batch.mask
        batch = prepared(batch, self._like, self.options)
        with autocast(self._like, self.options):
            hidden, state = self.model.hidden(batch.inputs, self.carry, lengths)
            loss = self.objective(hidden, batch, mask)
        if self.carries:
            self.carry = tree_map(Tensor.detach, state)
        self.descend(loss)
        self.last = hidden.detach(), batch
        return loss.detach()

    def __call__(self, batches: Sequence[Batch]) -> list[float]:
        """Make one step on the one batch of a sequence."""
        return [self.train(batches[0])]

    @torch.no_grad()
    def scores(self) -> list[float]:
        """Return the score on the batch of the last step, with the outputs before it."""
        assert self.last is not None
        hidden, batch = self.last
        with autocast(self._like, self.options):
            return [quick_score(self.task, self._answers, hidden, batch)]

    def _answers(self, hidden: Tensor) -> Tensor:
        return self.model.answers(hidden).to(self._like.dtype)

    @torch.no_grad()
    def outputs(self, batches: Sequence[Batch], carry: Any = None) -> tuple[list[Tensor], list[Batch], Any]:
        """Return the answers to a batch, the batch in the network's numbers, and the last state."""
        batch, lengths = prepared(batches[0], self._like, self.options), batches[0].lengths
        with autocast(self._like, self.options):
            answers, state = self.model(batch.inputs, carry, lengths)
        return [answers.to(self._like.dtype)], [batch], state


def prepared(batch: Batch, like: Tensor, options: Options) -> Batch:
    """Return the batch on the device and in the number type of the network."""
    if like.device.type != "cpu":
        batch = batch.to(like.device)
    dtype = read_as(like, options)
    return batch._replace(
        inputs=tree_map(lambda part: part.to(dtype) if part.is_floating_point() else part, batch.inputs)
    )


@contextmanager
def evaluating(step: Any) -> Iterator[None]:
    """Answer instead of learning, and draw nothing from the generator that training draws from."""
    step.train_mode(False)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        step.train_mode(True)


def needs_after_step(model: Model) -> bool:
    """Say whether something follows a step of the optimiser; a map whose base never moves asks for nothing."""
    layer = model.layer
    transitions = getattr(layer, "_transitions", None)
    if transitions is None:
        return hasattr(layer, "after_step")
    return any(_follows(module) for transition, _ in transitions() for module in transition.modules())


def _follows(module: nn.Module) -> bool:
    own = getattr(type(module), "after_step", Transition.after_step)
    return own is not Transition.after_step and getattr(module, "every", 0) is not None


def trial_batch(task: Task, source: Source, size: int = 2) -> Batch:
    """Return a few sequences that nothing else depends on."""
    if isinstance(source, Fixed):
        return source.splits.train.take(slice(0, size))
    return task.sample(size, torch.Generator().manual_seed(0))


@torch.no_grad()
def check_answers(model: Model, task: Task, source: Source, options: Options) -> None:
    """Raise one line unless the model answers a batch in the shape that the task asks for."""
    like = trained_parameters(model)[1][0]
    batch = prepared(trial_batch(task, source), like, options)
    training = model.training
    model.eval()
    try:
        with torch.random.fork_rng(devices=[]), autocast(like, options):
            answers = model(batch.inputs, None, batch.lengths)[0]
    except MnemoscopeError:
        raise
    except RuntimeError as error:
        raise UserError(f"the network cannot answer {task.name}: {' '.join(str(error).split())[:300]}") from error
    finally:
        model.train(training)
    steps, size = batch.mask.shape
    wanted = (steps, size, task.output_size)
    known = [wanted, wanted[1:]] if batch.per_sequence else [wanted]
    if tuple(answers.shape) not in known:
        raise expected(
            "the answers of the network", f"of shape {wanted} (time, batch, output_size)", tuple(answers.shape)
        )
