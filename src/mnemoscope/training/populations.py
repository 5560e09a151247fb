"""Training of many networks of one shape on one task."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from mnemoscope import runs
from mnemoscope.core.errors import Description, UserError, choice, expected, positive_int
from mnemoscope.core.seeds import check_seed, stream
from mnemoscope.machines.workers import Workers
from mnemoscope.nn.storage import weights_digest
from mnemoscope.runs import Metrics
from mnemoscope.tasks import Task
from mnemoscope.training.configuration import VECTORS, describe_network, spec_of, task_of
from mnemoscope.training.data import source_of
from mnemoscope.training.descent import full_state, load_weights, part
from mnemoscope.training.fitting import Run, naive_words, network_name, ready
from mnemoscope.training.groups import (
    LAYOUTS,
    Group,
    GroupResult,
    Layout,
    check_layout,
    choose_layout,
    group_folder,
    group_spec,
    named_layout,
    sent,
    train_group,
)
from mnemoscope.training.objective import Loss
from mnemoscope.training.options import Options
from mnemoscope.training.recording import Progress, latest_checkpoint
from mnemoscope.training.state import Callback
from mnemoscope.training.step import Step, check_answers
from mnemoscope.training.workers import is_movable, read_group, run_workers

__all__ = [
    "VECTORS",
    "chosen_layout",
    "fit_population",
    "population_known",
    "population_networks",
    "population_options",
    "population_spec",
    "usual_layout",
]

_USUAL: ContextVar[str | None] = ContextVar("layout", default=None)


def chosen_layout() -> str | None:
    """Return the layout of populations that ask for none, as `usual_layout` has it; None: the fastest."""
    return _USUAL.get()


@contextmanager
def usual_layout(name: str | None) -> Iterator[None]:
    """Give populations that ask for no layout this one, instead of the one that is fastest here; None changes nothing.

    Which is the fastest may differ from machine to machine, and with it the last digits of the numbers.
    """
    before = _USUAL.set(name if name is None else choice("layout", name, LAYOUTS))
    try:
        yield
    finally:
        _USUAL.reset(before)


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
    workers: int | Workers | None = None,
    loss: Loss | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    minutes: float | None = None,
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
        Processes that there may be, by default as many as torch uses threads; or the workers of a cluster
        (`mnemoscope.machines`), among which the population is divided, as many networks to each as is fastest and its
        memory holds. A cluster needs a `folder` that all its machines see.
    loss, callbacks, progress
        As in `fit`. An own loss and callbacks stay in this process.
    minutes
        Stop after these, with `mnemoscope.runs.OutOfBudget`; a population that is recorded can go on later.
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
    until = math.inf if minutes is None else time.monotonic() + 60 * minutes
    layout = _USUAL.get() if layout is None else layout
    task = task_of(task)
    networks, seeds, drawn = population_networks(layers, seeds)
    options = population_options(len(networks), seeds, {"iterations": iterations, **settings})
    models = [
        ready(one, task, own, deepcopy(readout) if isinstance(readout, nn.Module) else readout)
        for one, own in zip(networks, options, strict=True)
    ]
    elsewhere = None if workers is None or isinstance(workers, int) else workers
    available = torch.get_num_threads() if workers is None else workers if elsewhere is None else elsewhere.count
    processes = positive_int("workers", available)
    spec = population_spec(
        models, task, options, readout, population_known(models, drawn, root) if known is None else known
    )
    everyone = Group(tuple(range(len(models))), models, options, task, spec)
    movable = is_movable(models, task, readout) and loss is None and not callbacks
    check_answers(models[0], task, source_of(task, options[0]), options[0])
    if layout is not None:
        check_layout(layout, everyone, movable=movable, loss=loss)
    recorded = folder is not None or root is not None
    if elsewhere is not None:
        _check_elsewhere(movable, recorded)
    choose = partial(_layout, everyone, layout, processes, movable, loss, until, elsewhere)
    with ExitStack() as stack:
        chosen = None if recorded else choose()
        if chosen is not None and chosen.processes:  # which find what to do in a record
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mnemoscope-"))) / "population"
        record = None
        if folder is not None or root is not None:
            start = partial(_start, everyone, chosen, choose, known)
            record = stack.enter_context(runs.open(spec, folder=folder, root=root, kind="population", start=start))
            chosen = _recorded_layout(everyone, record)
        assert chosen is not None
        label = f"{len(models)} {network_name(models[0])} on {task.name}"
        with Progress(iterations, label, naive_words(task), progress, until=until) as shown:
            found = _train(everyone, chosen, record, shown, loss, callbacks, elsewhere)
        if record is not None and not record.finished:
            _merge(record, found, chosen)
    where = None if record is None or not recorded else Path(record.folder)
    return _runs(everyone, found, chosen, where)


def _check_elsewhere(movable: bool, recorded: bool) -> None:
    if not movable:
        raise UserError("another machine cannot build these networks, or the own loss and callbacks, again: train here")
    if not recorded:
        raise UserError("folder must be given for a population on other machines: a place that all of them see")


def _layout(
    everyone: Group,
    asked: str | None,
    processes: int,
    movable: bool,
    loss: Loss | None,
    until: float,
    elsewhere: Workers | None,
) -> Layout:
    """Return the layout that was asked for, else the fastest; for workers elsewhere, one in groups."""
    if asked is not None:
        found = named_layout(asked, len(everyone.models), processes, torch.get_num_threads())
    else:
        found = choose_layout(everyone, processes, movable=movable, loss=loss, until=until, elsewhere=elsewhere)
    return found if elsewhere is None else sent(found, everyone, elsewhere)


def _start(
    everyone: Group, layout: Layout | None, choose: Callable[[], Layout], known: Mapping[str, Any] | None
) -> runs.Checkpoint:
    """Return what a population begins with: how it is computed, its networks and their weights."""
    named = (known or {}).get("network")
    state = {
        "layout": (layout or choose()).to_dict(),
        "networks": [named or describe_network(model.layer) for model in everyone.models],
    }
    tensors = {
        f"{n}/{name}": tensor
        for n, model in zip(everyone.numbers, everyone.models, strict=True)
        for name, tensor in full_state(model).items()
    }
    return runs.Checkpoint(0, tensors, state)


def _recorded_layout(everyone: Group, record: runs.Recorder) -> Layout:
    """Return the layout that a population began with; where it was there before, give its networks their weights."""
    first = latest_checkpoint(record)
    if record.resumed and not record.finished:
        for n, model in zip(everyone.numbers, everyone.models, strict=True):
            load_weights(model, part(first.tensors, f"{n}/"))
    return Layout.from_dict(first.state["layout"])


def _train(
    everyone: Group,
    layout: Layout,
    record: runs.Recorder | None,
    progress: Progress,
    loss: Loss | None,
    callbacks: Sequence[Callback],
    elsewhere: Workers | None,
) -> list[GroupResult]:
    home = None if record is None else record.folder
    if layout.processes:
        assert home is not None
        run_workers(layout, home, everyone, progress, elsewhere)
        return [read_group(group_folder(home, i), numbers) for i, numbers in enumerate(layout.groups)]
    before = torch.get_num_threads()
    torch.set_num_threads(layout.threads)
    try:
        return [
            train_group(
                _part(everyone, numbers),
                None if home is None else group_folder(home, i),
                progress,
                loss=loss,
                callbacks=callbacks,
            )
            for i, numbers in enumerate(layout.groups)
        ]
    finally:
        torch.set_num_threads(before)


def _part(everyone: Group, numbers: Sequence[int]) -> Group:
    models, options = [everyone.models[n] for n in numbers], [everyone.options[n] for n in numbers]
    return Group(numbers, models, options, everyone.task, group_spec(everyone.spec, numbers))


def _merge(record: runs.Recorder, groups: Sequence[GroupResult], layout: Layout) -> None:
    """Put the lines of all groups into the record of the population, by step and network, and finish it."""
    for line in sorted((line for one in groups for line in one.lines), key=lambda line: (line["step"], line["member"])):
        record.append(line)
    endings = {str(n): ending.to_dict() for one in groups for n, ending in sorted(one.endings.items())}
    record.finish({"layout": layout.to_dict(), "endings": endings})


def _runs(everyone: Group, groups: Sequence[GroupResult], layout: Layout, folder: Path | None) -> list[Run]:
    found = {}
    for group in groups:
        for n, ending in group.endings.items():
            model, own = everyone.models[n], everyone.options[n]
            Step(model, everyone.task, own).load_state(0, group.weights[n])
            model.eval()
            lines = Metrics(line for line in group.lines if line["member"] == n)
            found[n] = Run(model, everyone.task, own.seed, lines, ending, folder, layout.to_dict())
    return [found[n] for n in everyone.numbers]


def population_networks(layers: Any, seeds: Sequence[int] | None) -> tuple[list[nn.Module], list[int], bool]:
    """Return the networks, their seeds, and whether their weights were drawn here."""
    if isinstance(layers, nn.Module):
        if seeds is None:
            raise UserError("seeds must be given where layers is one network: each seed gets a copy of it")
        network: Any = layers
        if not hasattr(network, "reset_parameters"):
            name = type(network).__name__
            raise UserError(f"{name} has no reset_parameters(generator) to draw weights with; give a list of networks")
        made = [deepcopy(network) for _ in seeds]
        for one, seed in zip(made, seeds, strict=True):
            one.reset_parameters(stream(check_seed(seed), "layer"))
        return _distinct(made), list(seeds), True
    if not isinstance(layers, Sequence) or not layers or not all(isinstance(one, nn.Module) for one in layers):
        raise expected("layers", "a network, or one or more networks in a list", Description(repr(layers)[:80]))
    seeds = list(range(len(layers))) if seeds is None else list(seeds)
    if len(seeds) != len(layers):
        raise expected("seeds", f"{len(layers)} whole numbers, one for each network", seeds)
    return _distinct(list(layers)), seeds, False


def _distinct(networks: list[nn.Module]) -> list[nn.Module]:
    if not networks:
        raise expected("seeds", "one or more whole numbers", Description("none"))
    if len({id(one) for one in networks}) < len(networks):
        raise UserError("layers must be different objects, got one of them twice; give it once, with seeds=")
    return networks


def population_options(members: int, seeds: Sequence[int], settings: dict[str, Any]) -> list[Options]:
    """Return the settings of every network, vectors divided among them."""
    found = []
    for k in range(members):
        own = {"seed": seeds[k]}
        for name, value in settings.items():
            if name in VECTORS and isinstance(value, Sequence) and not isinstance(value, str):
                if len(value) != members:
                    raise expected(name, f"a number, or {members} of them, one for each network", list(value))
                value = value[k]
            own[name] = value
        found.append(Options.make(own))
    return found


def population_known(models: Sequence[Any], drawn: bool, root: Any) -> dict[str, Any]:
    """Return what the record says of the weights: drawn from the seeds, or which where content names the run."""
    if root is None or drawn:
        return {"drawn": drawn}
    return {"drawn": drawn, "weights": [weights_digest(model) for model in models]}


def population_spec(
    models: Sequence[Any], task: Task, options: Sequence[Options], readout: Any, known: dict[str, Any]
) -> dict[str, Any]:
    """Return the configuration of a population: everything that its numbers depend on."""
    own: dict[str, Any] = {"seeds": [one.seed for one in options], **known}
    own |= {name: [getattr(one, name) for one in options] for name in VECTORS}
    spec = spec_of("population", models[0], task, options[0], readout, own)
    spec["training"] = {name: value for name, value in spec["training"].items() if name not in VECTORS}
    return {name: value for name, value in spec.items() if name != "seed"}
