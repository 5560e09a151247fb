"""Groups of a population: which networks are computed together, measured, and trained."""

from __future__ import annotations

import math
import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from mnemoscope import runs
from mnemoscope.core.errors import MnemoscopeError, UserError, choice
from mnemoscope.core.memory import allowance
from mnemoscope.machines.workers import Workers
from mnemoscope.runs import Metrics
from mnemoscope.tasks import Batch, Task
from mnemoscope.training.cohort import CohortStep
from mnemoscope.training.data import source_of
from mnemoscope.training.loop import Loop, check_time
from mnemoscope.training.model import Model
from mnemoscope.training.objective import Loss
from mnemoscope.training.options import Options
from mnemoscope.training.recording import Progress, drive, restore
from mnemoscope.training.state import Callback, Ending, Member
from mnemoscope.training.step import Step, trial_batch

__all__ = ["LAYOUTS", "Group", "GroupResult", "Layout", "choose_layout", "named_layout", "sent", "train_group"]


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
class GroupResult:
    """How the networks of a group ended: endings and weights by number, and the lines of all."""

    endings: dict[int, Ending]
    weights: dict[int, dict[str, Tensor]]
    lines: Metrics


def group_folder(home: Path, place: int) -> Path:
    """Return where a group of a population is recorded."""
    return home / f"group-{place:03d}"


def group_spec(spec: Mapping[str, Any], numbers: Sequence[int]) -> dict[str, Any]:
    """Return the configuration of a group: that of the population, and which members it has."""
    return {**spec, "members": list(numbers)}


def train_group(
    group: Group,
    folder: str | os.PathLike[str] | None,
    progress: Progress,
    *,
    loss: Loss | None = None,
    callbacks: Sequence[Callback] = (),
    tell: Callable[[int, list[dict[str, Any]]], None] | None = None,
) -> GroupResult:
    """Train a group to its end, or go on where its record in `folder` ends.

    Parameters
    ----------
    tell
        Called with the step and the new lines, when there are any.
    """
    loop = _loop(group, loss, callbacks)
    opened = folder is not None
    with (
        runs.open(group.spec, folder=folder, kind="population", start=loop.begin) if opened else nullcontext() as record
    ):
        restore(loop, record)
        if record is not None and record.finished:
            lines = record.kept
        else:
            lines = drive(loop, record, progress, tell)
            if record is not None:
                record.finish({"endings": {str(m.number): m.ending.to_dict() for m in loop.members if m.ending}})
    alone = len(group.numbers) == 1
    lines = Metrics({"step": line["step"], "member": group.numbers[0], **line} for line in lines) if alone else lines
    endings = {member.number: member.ending for member in loop.members if member.ending is not None}
    return GroupResult(endings, {member.number: member.final or {} for member in loop.members}, lines)


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


LAYOUTS = ("batched", "processes", "batched-processes", "sequential")
_START = 3.0
"""Seconds until a process has imported torch and begins."""
_CALLS = 3
_PATIENCE = 1.0
"""Seconds after which one call is enough to know the time of a step."""


@dataclass(frozen=True)
class Layout:
    """How a population is computed.

    Attributes
    ----------
    name
        One of `LAYOUTS`: all as one batched program, or several one after the other where memory does not carry all;
        several processes that train one network after the other; several processes with a batched program each; one
        network after the other.
    groups
        Which networks are computed together.
    processes
        How many at a time; 0: in the process that was asked.
    threads
        Of each process.
    """

    name: str
    groups: tuple[tuple[int, ...], ...]
    processes: int
    threads: int

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Layout:
        """Return what `to_dict` gave."""
        return cls(found["name"], tuple(map(tuple, found["groups"])), found["processes"], found["threads"])


def named_layout(name: str, members: int, workers: int, threads: int) -> Layout:
    """Return the layout of a name: `workers` processes where there are several."""
    choice("layout", name, LAYOUTS)
    everyone = tuple(range(members))
    workers = min(workers, members)
    if name == "batched":
        return Layout(name, (everyone,), 0, threads)
    if name == "sequential":
        return Layout(name, tuple((k,) for k in everyone), 0, threads)
    if name == "processes":
        return Layout(name, tuple((k,) for k in everyone), workers, 1)
    bounds = [members * i // workers for i in range(workers + 1)]
    return Layout(name, tuple(everyone[a:b] for a, b in pairwise(bounds)), workers, 1)


def choose_layout(
    group: Group,
    workers: int,
    *,
    movable: bool,
    loss: Loss | None = None,
    until: float = math.inf,
    elsewhere: Workers | None = None,
) -> Layout:
    """Measure a few steps of each way to train all networks of a group, and return the fastest.

    Parameters
    ----------
    workers
        Processes that there may be.
    movable
        Whether another process could build the networks again.
    until
        When to stop, of `time.monotonic`: `OutOfBudget` is raised.
    elsewhere
        Workers on other machines: then nothing is trained in this process.
    """
    members, threads = len(group.models), torch.get_num_threads()
    iterations = group.options[0].iterations
    stackable = why_not_stacked(group, loss) is None
    if elsewhere is not None:
        names = ["processes", *(["batched-processes"] if stackable else [])]
    else:
        names = ["sequential", *(["batched"] if stackable else [])]
        if movable and workers > 1 and members > 1:
            names += ["processes", *(["batched-processes"] if stackable else [])]
    found = [named_layout(name, members, workers, threads) for name in names]
    if stackable:
        one = member_bytes(group)
        found = [fitted(layout, one, _memory(layout, elsewhere)) for layout in found]
        found = [layout for layout in found if "batched" not in layout.name or len(layout.groups) < members]
    if len(found) == 1:
        return found[0]
    # On a busy machine threads that wait for each other are slower than one.
    found += [replace(layout, threads=1) for layout in found if layout.name == "batched" and threads > 1]
    batches = [_batch(group, group.options[0].batch_size)] * members

    def seconds(layout: Layout) -> float:
        check_time(until)
        return _seconds(group, layout, batches, loss) * iterations + (_START if layout.processes else 0)

    return min(found, key=seconds)


def _memory(layout: Layout, elsewhere: Workers | None) -> float:
    """Return the bytes that one process of a layout may take."""
    return allowance() / max(1, layout.processes) if elsewhere is None else elsewhere.memory


def fitted(layout: Layout, member: int, memory: float) -> Layout:
    """Return a layout whose groups, at so many bytes for each network, are no larger than the memory of a process."""
    most = max(map(len, layout.groups))
    if math.isfinite(memory):
        most = max(1, min(most, int(memory // member)))
    groups = tuple(one[start : start + most] for one in layout.groups for start in range(0, len(one), most))
    return replace(layout, groups=groups)


def sent(layout: Layout, group: Group, workers: Workers) -> Layout:
    """Return a layout for workers elsewhere, as far as their memory carries it: none of the groups is trained here."""
    if any(len(numbers) > 1 for numbers in layout.groups):
        layout = fitted(layout, member_bytes(group), workers.memory)
    name = "batched-processes" if max(map(len, layout.groups)) > 1 else "processes"
    return Layout(name, layout.groups, workers.count, workers.threads)


def member_bytes(group: Group) -> int:
    """Return about how many bytes the training of one network takes: the most that a step has at a time, and weights.

    Weights count five times: for themselves, their gradient, two moments of the optimiser, and the best so far.
    """
    step, taken = _step(group, group.numbers[:1], None), _Taken()
    with torch.random.fork_rng(devices=[]), taken:
        step([_batch(group, group.options[0].batch_size)])
    return taken.most + 5 * sum(p.numel() * p.element_size() for p in group.models[0].parameters())


class _Taken(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all tensors that operations have made and that are still there, and their most."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._there: dict[int, int] = {}
        self.most = self._now = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for one in tree_leaves(made):
            if isinstance(one, Tensor):
                storage = one.untyped_storage()
                if storage._cdata not in self._there:
                    self._there[storage._cdata] = storage.nbytes()
                    self._now += storage.nbytes()
                    self.most = max(self.most, self._now)
                    weakref.finalize(storage, self._gone, storage._cdata)
        return made

    def _gone(self, place: int) -> None:
        self._now -= self._there.pop(place)


def why_not_stacked(group: Group, loss: Loss | None) -> str | None:
    """Return why the networks cannot be one batched program; None when they can."""
    models, options = group.models, group.options
    if len(models) < 2:
        return "there is one network"
    shapes = {tuple((name, tuple(p.shape), p.dtype) for name, p in model.named_parameters()) for model in models}
    if len(shapes) > 1 or len({repr(model) for model in models}) > 1:
        return "they are of different shapes or options"
    if options[0].precision == "bfloat16":
        return "autocast has no batched form"
    if not getattr(models[0].layer, "causal", True):
        return "they read the future, and the ends of sequences matter to them"
    if models[0].pool:
        return "answers are taken from means over the steps of each sequence"
    before = torch.get_rng_state()
    try:
        step = CohortStep([deepcopy(model) for model in models[:2]], group.task, options[:2], loss)
        step.train_mode(True)
        step([_batch(group, 2)] * 2)
    except MnemoscopeError:
        raise
    except Exception as error:  # a stranger's module may do what a transform of torch.func cannot
        return " ".join(str(error).split())[:200]
    drawn = not torch.equal(before, torch.get_rng_state())
    torch.set_rng_state(before)
    return "they draw random numbers in training" if drawn else None


def _batch(group: Group, size: int) -> Batch:
    return trial_batch(group.task, source_of(group.task, group.options[0]), size)


def _seconds(group: Group, layout: Layout, batches: Sequence[Batch], loss: Loss | None) -> float:
    """Return the time of one step of all networks, in a layout; processes are taken to run side by side.

    The largest group is measured: the others wait for it.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(layout.threads)
    try:
        largest = max(layout.groups, key=len)
        one = _timed(_step(group, largest, loss), [batches[k] for k in largest])
    finally:
        torch.set_num_threads(before)
    return one * -(-len(layout.groups) // max(1, layout.processes))


def _step(group: Group, members: Sequence[int], loss: Loss | None) -> Any:
    models = [deepcopy(group.models[k]).train() for k in members]
    options = [group.options[k] for k in members]
    if len(members) == 1:
        return Step(models[0], group.task, options[0], loss)
    step = CohortStep(models, group.task, options, loss)
    step.train_mode(True)
    return step


def _timed(step: Callable[[Sequence[Batch]], Any], batches: Sequence[Batch]) -> float:
    with torch.random.fork_rng(devices=[]):
        times = []
        for _ in range(1 + _CALLS):
            start = time.perf_counter()
            step(batches)
            times.append(time.perf_counter() - start)
            if times[-1] > _PATIENCE and len(times) > 1:
                break
    return min(times[1:])


def check_layout(name: str, group: Group, *, movable: bool, loss: Loss | None) -> None:
    """Raise one line when networks cannot be trained in the layout that was asked for."""
    choice("layout", name, LAYOUTS)
    reason = why_not_stacked(group, loss) if "batched" in name else None
    if reason is not None:
        raise UserError(f"layout must be 'processes' or 'sequential', since {reason}, got {name!r}")
    if "processes" in name and not movable:
        why = "another process cannot build these networks, or the own loss and callbacks, again"
        raise UserError(f"layout must be 'batched' or 'sequential', since {why}, got {name!r}")
