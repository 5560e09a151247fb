"""Training many networks of one shape on one task."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from mnemoscope import runs
from mnemoscope.core.errors import positive_int
from mnemoscope.runs.record import Metrics
from mnemoscope.tasks import Task
from mnemoscope.training.data import source_of
from mnemoscope.training.fit import network_name, ready
from mnemoscope.training.group import Group, Outcome, train_group
from mnemoscope.training.layout import Layout, check_layout, choose_layout, named_layout
from mnemoscope.training.moments import Callback
from mnemoscope.training.objective import Loss
from mnemoscope.training.population_inputs import (
    population_known,
    population_networks,
    population_options,
    population_spec,
)
from mnemoscope.training.progress import Progress
from mnemoscope.training.run import Run
from mnemoscope.training.spec import task_of
from mnemoscope.training.step import Step
from mnemoscope.training.trial import check_answers
from mnemoscope.training.workers import is_movable, read_outcome, run_workers, write_job

__all__ = ["fit_population"]


def fit_population(
    layers: nn.Module | Sequence[nn.Module],
    task: Task | str,
    *,
    iterations: int,
    seeds: Sequence[int] | None = None,
    readout: str | nn.Module = "linear",
    folder: str | os.PathLike[str] | None = None,
    root: str | os.PathLike[str] | None = None,
    layout: str | None = None,
    workers: int | None = None,
    loss: Loss | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    known: dict[str, Any] | None = None,
    **settings: Any,
) -> list[Run]:
    """Train many networks of one shape on a task; each as `fit` trains it alone.

    Parameters
    ----------
    layers
        The networks, trained in place; or one, of which each seed gets a copy with weights that it draws.
    task
        A task, or the name of one.
    seeds
        One for each network: it draws its batches, its tests and its readout. By default 0, 1, 2, ..
    readout
        As in `fit`; a module is copied for each network.
    folder, root
        Where the population is recorded, as in `fit`.
    layout
        ``"batched"``: one program for all; ``"processes"``: several processes that train one network after the other;
        ``"batched-processes"``: several with a batched program each; ``"sequential"``. By default a few steps of each
        are measured, and the fastest is taken; it is recorded, so that a resumed run repeats it.
    workers
        Processes that there may be, by default as many as torch uses threads.
    loss, callbacks, progress
        As in `fit`. An own loss and callbacks stay in this process.
    known
        What the record says of the networks, where the caller knows better than the objects: for `resume`.
    iterations, settings
        As in `fit`. ``lr``, ``lr_orthogonal`` and ``penalty`` may be sequences, one number for each network.

    Returns
    -------
    list of Run
        In the order of the networks. One that diverged has the status ``"failed"``, its reason and its last good
        weights; it is dropped, and the others go on as if it had not been there.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> task = ms.tasks.create("copy", delay=5)
    >>> runs = ms.training.fit_population(
    ...     ms.nn.RNN(10, 8), task, iterations=5, seeds=[0, 1, 2], batch_size=8, lr=[1e-2, 1e-3, 1e-4], layout="batched"
    ... )
    >>> [run.status for run in runs]
    ['finished', 'finished', 'finished']
    """
    task = task_of(task)
    networks, seeds, drawn = population_networks(layers, seeds)
    options = population_options(len(networks), seeds, {"iterations": iterations, **settings})
    models = [
        ready(one, task, own, deepcopy(readout) if isinstance(readout, nn.Module) else readout)
        for one, own in zip(networks, options, strict=True)
    ]
    workers = positive_int("workers", torch.get_num_threads() if workers is None else workers)
    spec = population_spec(
        models, task, options, readout, population_known(models, drawn, root) if known is None else known
    )
    everyone = Group(tuple(range(len(models))), models, options, task, spec)
    movable = is_movable(models, task, readout) and loss is None and not callbacks
    check_answers(models[0], task, source_of(task, options[0]), options[0])
    if layout is not None:
        check_layout(layout, everyone, movable=movable, loss=loss)
    with ExitStack() as stack:
        record = None
        if folder is not None or root is not None:
            record = stack.enter_context(runs.open(spec, folder=folder, root=root, kind="population"))
        chosen = _layout(everyone, record, layout, workers, movable, loss)
        home = _home(stack, record, chosen)
        label = f"{len(models)} {network_name(models[0])} on {task.name}"
        with Progress(iterations, label, task.baseline, progress) as shown:
            outcomes = _train(everyone, chosen, home, readout, shown, loss, callbacks)
        if record is not None and not record.finished:
            _merge(record, outcomes, chosen)
    where = None if record is None else Path(record.folder)
    return _runs(everyone, outcomes, chosen, where)


def _layout(
    everyone: Group, record: runs.Run | None, asked: str | None, workers: int, movable: bool, loss: Loss | None
) -> Layout:
    """Return the layout: that of the record where there is one, else what was asked for, else the fastest."""
    found = None if record is None else record.latest()
    if found is not None:
        return Layout.from_dict(found.state["layout"])
    if asked is not None:
        chosen = named_layout(asked, len(everyone.models), workers, torch.get_num_threads())
    else:
        chosen = choose_layout(everyone, workers, movable=movable, loss=loss)
    if record is not None:
        record.checkpoint(0, {}, {"layout": chosen.to_dict()})
    return chosen


def _home(stack: ExitStack, record: runs.Run | None, layout: Layout) -> Path | None:
    """Return where the groups are recorded; None where nothing needs to be."""
    if record is not None:
        return Path(record.folder)
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mnemoscope-"))) if layout.processes else None


def _train(
    everyone: Group,
    layout: Layout,
    home: Path | None,
    readout: Any,
    progress: Progress,
    loss: Loss | None,
    callbacks: Sequence[Callback],
) -> list[Outcome]:
    groups = [_part(everyone, numbers) for numbers in layout.groups]
    folders = [None if home is None else home / f"group-{i:03d}" for i in range(len(groups))]
    if not layout.processes:
        before = torch.get_num_threads()
        torch.set_num_threads(layout.threads)
        try:
            return [
                train_group(group, folder, progress, loss=loss, callbacks=callbacks)
                for group, folder in zip(groups, folders, strict=True)
            ]
        finally:
            torch.set_num_threads(before)
    paths = [folder for folder in folders if folder is not None]
    for group, path in zip(groups, paths, strict=True):
        if not (path / "job.json").is_file():  # the weights that a resumed run began with, not those it was given now
            write_job(path, group, readout, layout.threads)
    run_workers(layout, paths, progress)
    return [read_outcome(path, group.numbers) for group, path in zip(groups, paths, strict=True)]


def _part(everyone: Group, numbers: Sequence[int]) -> Group:
    models, options = [everyone.models[n] for n in numbers], [everyone.options[n] for n in numbers]
    return dataclasses.replace(
        everyone, numbers=numbers, models=models, options=options, spec={**everyone.spec, "members": list(numbers)}
    )


def _merge(record: runs.Run, outcomes: Sequence[Outcome], layout: Layout) -> None:
    """Put the lines of all groups into the record of the population, by step and network, and finish it."""
    for line in sorted(
        (line for one in outcomes for line in one.lines), key=lambda line: (line["step"], line["member"])
    ):
        record.append(line)
    endings = {str(n): ending.to_dict() for one in outcomes for n, ending in sorted(one.endings.items())}
    record.finish({"layout": layout.to_dict(), "endings": endings})


def _runs(everyone: Group, outcomes: Sequence[Outcome], layout: Layout, folder: Path | None) -> list[Run]:
    found = {}
    for outcome in outcomes:
        for n, ending in outcome.endings.items():
            model, own = everyone.models[n], everyone.options[n]
            Step(model, everyone.task, own).load_state(0, outcome.weights[n])
            model.eval()
            lines = Metrics(line for line in outcome.lines if line["member"] == n)
            found[n] = Run(model, everyone.task, own.seed, lines, ending, folder, layout.to_dict())
    return [found[n] for n in everyone.numbers]
