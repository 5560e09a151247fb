"""Sources of batches: drawn anew, from a fixed set, or windows of a text in order; and what is tested on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from mnemoscope.core.errors import UserError
from mnemoscope.core.seeds import seed_of, stream
from mnemoscope.tasks import Batch, Splits, Task
from mnemoscope.training.options import Options

__all__ = ["Fixed", "Fresh", "Source", "Stream", "source_of"]

_CHUNK = 500
"""Sequences that are answered at once in a test."""


class Source(ABC):
    """The data of one run.

    Attributes
    ----------
    epoch
        Steps of one pass over the data; None when every batch is new.
    carries
        Whether the state goes on from one batch to the next.
    validates
        Whether there is anything to validate on.
    """

    epoch: int | None = None
    carries: bool = False
    validates: bool = True

    @abstractmethod
    def next(self) -> Batch:
        """Return the next batch to learn from."""

    @property
    def starts(self) -> bool:
        """Whether the next batch starts a pass over the text, so that no state is carried into it."""
        return False

    @abstractmethod
    def held_out(self, split: str) -> Iterator[Batch]:
        """Give the batches of ``"validation"`` or ``"test"``, the same at every call."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return what the next batches depend on."""

    @abstractmethod
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` returned."""

    @abstractmethod
    def tests(self) -> dict[str, tuple[Task, Iterator[Batch]]]:
        """Return the tests by label, each with its task."""


class Fresh(Source):
    """Every batch is new, drawn from the run's own generator."""

    def __init__(self, task: Task, options: Options) -> None:
        self.task, self.options = task, options
        self.generator = stream(options.seed, "batches")

    def next(self) -> Batch:
        """Draw a batch."""
        return self.task.sample(self.options.batch_size, self.generator)

    def held_out(self, split: str) -> Iterator[Batch]:
        """Draw the same sequences again, from a generator of their own."""
        size = self.options.validation_size if split == "validation" else self.options.test_size
        return _drawn(self.task, size, self.options.seed, split)

    def tests(self) -> dict[str, tuple[Task, Iterator[Batch]]]:
        """Return the task's own tests, each on as many sequences as the options say."""
        options = self.options
        return {
            one.label: (one.task, _drawn(one.task, options.test_size, options.seed, f"test/{one.label}"))
            for one in self.task.evaluations()
        }

    def tensors(self) -> dict[str, Tensor]:
        """Return the state of the generator."""
        return {"generator": self.generator.get_state()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Set the state of the generator."""
        self.generator.set_state(tensors["generator"].cpu())


def _drawn(task: Task, size: int, seed: int, purpose: str) -> Iterator[Batch]:
    generator = stream(seed, purpose)
    for start in range(0, size, _CHUNK):
        yield task.sample(min(_CHUNK, size - start), generator)


class Fixed(Source):
    """A fixed set, in a new order at every pass."""

    def __init__(self, task: Task, options: Options, splits: Splits) -> None:
        self.task, self.options, self.splits = task, options, splits
        self.size = splits.train.size
        self.epoch = -(-self.size // options.batch_size)
        self.validates = splits.validation.size > 0
        self.step = 0
        self._order: tuple[int, Tensor] | None = None

    def next(self) -> Batch:
        """Return the next part of the present order."""
        epoch, place = divmod(self.step, self.epoch or 1)
        self.step += 1
        if self._order is None or self._order[0] != epoch:
            # An order is a function of seed and pass, so that a resumed run needs no more than the step.
            generator = torch.Generator().manual_seed(seed_of(self.options.seed, f"batches/{epoch}"))
            self._order = epoch, torch.randperm(self.size, generator=generator)
        size = self.options.batch_size
        return self.splits.train.take(self._order[1][place * size : (place + 1) * size])

    def held_out(self, split: str) -> Iterator[Batch]:
        """Give a set in chunks."""
        chosen: Batch = getattr(self.splits, split)
        for start in range(0, chosen.size, _CHUNK):
            yield chosen.take(slice(start, start + _CHUNK))

    def tests(self) -> dict[str, tuple[Task, Iterator[Batch]]]:
        """Return the test set."""
        return {"test": (self.task, self.held_out("test"))}

    def tensors(self) -> dict[str, Tensor]:
        """Return the number of batches that were given."""
        return {"step": torch.tensor(self.step)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go to the same place."""
        self.step = int(tensors["step"])


class Stream(Source):
    """Windows of a text in order, many places of it side by side; the state goes on from window to window."""

    carries = True

    def __init__(self, task: Any, options: Options) -> None:
        self.task, self.options = task, options
        self.step = 0
        self.epoch = sum(1 for _ in self._windows("train"))
        self._open: Iterator[Batch] | None = None

    def _windows(self, split: str) -> Iterator[Batch]:
        found: Iterator[Batch] = self.task.windows(split, self.options.batch_size, self.options.truncate)
        return found

    @property
    def starts(self) -> bool:
        """Whether a pass begins."""
        return self.step % (self.epoch or 1) == 0

    def next(self) -> Batch:
        """Return the next window."""
        place = self.step % (self.epoch or 1)
        if self._open is None or place == 0:
            self._open = islice(self._windows("train"), place, None)
        self.step += 1
        return next(self._open)

    def held_out(self, split: str) -> Iterator[Batch]:
        """Give the windows of a part of the text."""
        return self._windows(split)

    def tests(self) -> dict[str, tuple[Task, Iterator[Batch]]]:
        """Return the last part of the text."""
        return {"test": (self.task, self.held_out("test"))}

    def tensors(self) -> dict[str, Tensor]:
        """Return the number of windows that were given."""
        return {"step": torch.tensor(self.step)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go to the same place."""
        self.step, self._open = int(tensors["step"]), None


def source_of(task: Task, options: Options) -> Source:
    """Return where the batches of a run come from: what was asked for, else what the task has."""
    kind = options.data
    if kind == "stream" or (kind is None and task.streams):
        if not task.streams:
            raise UserError(f"data must be 'fresh' or 'fixed': {task.name} is not a text, got 'stream'")
        return Stream(task, options)
    splits = task.splits(options.seed) if kind != "fresh" else None
    if splits is not None:
        return Fixed(task, options, splits)
    if kind == "fixed":
        raise UserError(f"data must be 'fresh': {task.name} has no fixed sets, got 'fixed'")
    return Fresh(task, options)
