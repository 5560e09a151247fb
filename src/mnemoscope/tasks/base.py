"""What a task is: it draws batches, scores answers, and knows the loss of answering without memory."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from mnemoscope.core.errors import Description, UserError, expected, nearest, positive_int
from mnemoscope.core.registry import Registry

__all__ = ["TASKS", "Batch", "Task", "create", "names", "task"]

TASKS: Registry[type[Task]] = Registry("task", "mnemoscope.tasks")

K = TypeVar("K", bound="type[Task]")


class Batch(NamedTuple):
    """Sequences with their answers.

    Attributes
    ----------
    inputs
        (time, batch, input_size).
    targets
        (time, batch) classes, or (time, batch, output_size) numbers, or one label per sequence (batch,).
    mask
        (time, batch): the steps that the loss counts.
    lengths
        (batch,): where each sequence ends.
    """

    inputs: Float[Tensor, "time batch input"]
    targets: Tensor
    mask: Bool[Tensor, "time batch"]
    lengths: Int64[Tensor, " batch"]


@dataclass(frozen=True)
class Task(ABC):
    """A problem: a frozen dataclass whose fields are its settings.

    Attributes
    ----------
    kind
        ``"classification"`` or ``"regression"``.
    difficulty
        The field that makes the task harder as it grows.
    """

    name: ClassVar[str]
    references: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[str] = "classification"
    difficulty: ClassVar[str]

    @property
    @abstractmethod
    def input_size(self) -> int:
        """Numbers per step of the input."""

    @property
    @abstractmethod
    def output_size(self) -> int:
        """Numbers per step that the readout must give: classes, or dimensions."""

    @property
    @abstractmethod
    def baseline(self) -> float:
        """The loss of the best answer that uses no memory."""

    @abstractmethod
    def sample(
        self, batch: int, generator: torch.Generator | None = None, *, device: torch.device | str | None = None
    ) -> Batch:
        """Draw fresh sequences."""

    @abstractmethod
    def score(self, output: Float[Tensor, "time batch output"], batch: Batch) -> float:
        """Return how good the answers are: 1 is perfect, higher is better."""

    def loss(self, output: Float[Tensor, "time batch output"], batch: Batch) -> Float[Tensor, ""]:
        """Return the mean cross entropy (nats) over the steps that count."""
        self._check_output(output, batch)
        each = F.cross_entropy(output.flatten(0, 1), batch.targets.flatten(), reduction="none")
        counted = batch.mask.flatten().to(each.dtype)
        return (each * counted).sum() / counted.sum()

    def _check_output(self, output: Any, batch: Batch) -> None:
        wanted = (*batch.inputs.shape[:2], self.output_size)
        if not isinstance(output, Tensor) or output.shape != wanted:
            came = tuple(output.shape) if isinstance(output, Tensor) else Description(type(output).__name__)
            raise expected("output", f"of shape {wanted} (time, batch, output_size)", came)

    def _check_batch(self, batch: int, generator: torch.Generator | None) -> None:
        positive_int("batch", batch)
        if generator is not None and not isinstance(generator, torch.Generator):
            raise expected("generator", "a torch.Generator or None", generator)


def task(name: str) -> Callable[[K], K]:
    """Return a class decorator that registers a task under `name`."""

    def file(cls: K) -> K:
        cls.name = name
        TASKS.register(name)(cls)
        return cls

    return file


def names() -> list[str]:
    """Return the names of all tasks, sorted."""
    return TASKS.names()


def create(name: str, /, **settings: Any) -> Task:
    """Build a task by name.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> ms.tasks.create("copy", delay=100)
    Copy(delay=100)
    """
    cls = TASKS[name]
    known = list(inspect.signature(cls).parameters)
    for setting in settings:
        if setting not in known:
            near = nearest(setting, known)
            hint = f"did you mean {near!r}?" if near else f"it has {', '.join(known)}"
            raise UserError(f"the task {name} has no setting {setting!r}; {hint}")
    return cls(**settings)
