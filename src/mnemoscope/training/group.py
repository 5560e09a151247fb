"""Some networks of a population, trained by this process: all at once, or one that is alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from mnemoscope import runs
from mnemoscope.runs.record import Metrics
from mnemoscope.tasks import Task
from mnemoscope.training.cohort import CohortStep
from mnemoscope.training.data import source_of
from mnemoscope.training.loop import Loop
from mnemoscope.training.member import Ending, Member
from mnemoscope.training.model import Model
from mnemoscope.training.moments import Callback
from mnemoscope.training.objective import Loss
from mnemoscope.training.options import Options
from mnemoscope.training.progress import Progress
from mnemoscope.training.recording import drive, restore
from mnemoscope.training.step import Step

__all__ = ["Group", "Outcome", "train_group"]


@dataclass(frozen=True)
class Group:
    """Some networks of a population.

    Attributes
    ----------
    numbers
        Their places among all.
    models, options
        The networks and their settings.
    task
        What they learn.
    spec
        What the record says of them.
    """

    numbers: Sequence[int]
    models: Sequence[Model]
    options: Sequence[Options]
    task: Task
    spec: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """How the networks of a group ended: endings and weights by number, and the lines of all."""

    endings: dict[int, Ending]
    weights: dict[int, dict[str, Tensor]]
    lines: Metrics


def train_group(
    group: Group,
    folder: str | os.PathLike[str] | None,
    progress: Progress,
    *,
    loss: Loss | None = None,
    callbacks: Sequence[Callback] = (),
    tell: Callable[[int, list[dict[str, Any]]], None] | None = None,
) -> Outcome:
    """Train a group to its end, or go on where its record in `folder` ends.

    Parameters
    ----------
    tell
        Called with the step and the new lines, when there are any.
    """
    with runs.open(group.spec, folder=folder, kind="population") if folder is not None else nullcontext() as record:
        loop = _loop(group, loss, callbacks)
        restore(loop, record)
        if record is None or not record.finished:
            lines = drive(loop, record, progress, tell)
            if record is not None:
                record.finish({"endings": {str(m.number): m.ending.to_dict() for m in loop.members if m.ending}})
    if record is not None:
        lines = Metrics(runs.load(Path(record.folder)).metrics)
    alone = len(group.numbers) == 1
    lines = Metrics({"step": line["step"], "member": group.numbers[0], **line} for line in lines) if alone else lines
    endings = {member.number: member.ending for member in loop.members if member.ending is not None}
    return Outcome(endings, {member.number: member.final or {} for member in loop.members}, lines)


def _loop(group: Group, loss: Loss | None, callbacks: Sequence[Callback]) -> Loop:
    task = group.task
    members = [Member(n, o, source_of(task, o)) for n, o in zip(group.numbers, group.options, strict=True)]
    models = dict(zip(group.numbers, group.models, strict=True))

    def solo(member: Member, weights: Mapping[str, Tensor]) -> Step:
        step = Step(models[member.number], task, member.options, loss)
        step.load_state(0, weights)
        return step

    if len(members) == 1:
        step: Any = Step(group.models[0], task, group.options[0], loss)
    else:
        step = CohortStep(group.models, task, group.options, loss)
    return Loop(step, task, members, solo, loss, callbacks)
