"""Training of one network on one task, and its result."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from mnemoscope import runs
from mnemoscope.core.errors import MnemoscopeError, UserError, expected
from mnemoscope.core.result import plain
from mnemoscope.core.seeds import stream
from mnemoscope.nn.storage import weights_digest
from mnemoscope.report import chart
from mnemoscope.report.chart import Chart
from mnemoscope.runs import Metrics
from mnemoscope.tasks import Problem, Task
from mnemoscope.tasks.control import Environment
from mnemoscope.training.configuration import spec_of, task_of
from mnemoscope.training.data import source_of
from mnemoscope.training.loop import Loop
from mnemoscope.training.model import Model, build_model
from mnemoscope.training.objective import Loss
from mnemoscope.training.options import PRECISIONS, Options
from mnemoscope.training.recording import Progress, drive, restore
from mnemoscope.training.schedule import Plateau
from mnemoscope.training.state import Callback, Ending, Member
from mnemoscope.training.step import Step, check_answers

__all__ = ["Diverged", "Run", "conduct", "draw_losses", "draw_returns", "fit", "fit_with", "placed", "ready"]


def fit(
    layer: nn.Module,
    task: Task | str,
    *,
    iterations: int,
    batch_size: int = 128,
    lr: float | None = None,
    lr_orthogonal: float | None = None,
    lr_state_space: float | None = None,
    optimizer: str = "rmsprop",
    seed: int = 0,
    readout: str | nn.Module = "linear",
    folder: str | os.PathLike[str] | None = None,
    alpha: float = 0.99,
    eps: float = 1e-8,
    momentum: float = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
    penalty: float = 1.0,
    clip_norm: float | None = None,
    clip_value: float | None = None,
    clip_largest: float | None = None,
    schedule: Plateau | str | dict[str, Any] | None = None,
    patience: int | None = None,
    target: float | None = None,
    data: str | None = None,
    validate_every: int | None = None,
    validation_size: int = 1000,
    test_size: int = 1000,
    truncate: int | None = None,
    log_every: int | None = None,
    checkpoint_every: int | None = None,
    checkpoint_seconds: float = 60.0,
    checkpoints: int | None = None,
    device: str | None = None,
    precision: str | None = None,
    weight_decay: float = 0.0,
    warmup: float = 0.0,
    loss: Loss | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    root: str | os.PathLike[str] | None = None,
) -> Run:
    """Train a network on a task, in place, and test it.

    Parameters
    ----------
    layer
        A network, anybody's module, or a `Model`; what the task needs around it is put there.
    task
        A task, or the name of one.
    readout
        ``"linear"``; ``"mean"``, the same of the mean over the steps of a sequence, for one answer; ``"none"`` (the
        layer's outputs are the answers) or a module.
    folder
        Where the run is recorded. A run that is there and has not ended goes on; one that has ended is returned.
    loss
        Of answers and batch, instead of the task's.
    callbacks
        Each is called with a `Moment` at every line of the metrics; when it returns True, the training stops.
    progress
        Whether to show how far it is; by default on a terminal.
    root
        Instead of `folder`: a folder of runs, in which this one is found by its content.
    iterations, batch_size, lr, lr_orthogonal, lr_state_space, weight_decay, warmup
        As in `Options`.
    optimizer, seed, alpha, eps, momentum, betas, penalty
        As in `Options`.
    clip_norm, clip_value, clip_largest, schedule, patience, target, data, validate_every, validation_size, test_size
        As in `Options`.
    truncate, log_every, checkpoint_every, checkpoint_seconds, checkpoints, device, precision
        As in `Options`.

    Returns
    -------
    Run
        With ``.score`` on the test set, ``.metrics``, ``.model``, ``.folder``.

    Raises
    ------
    Diverged
        When the loss stops being finite; its ``.run`` has the last good weights.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> run = ms.training.fit(ms.nn.RNN(10, 16), ms.tasks.create("copy", delay=5), iterations=20, batch_size=16)
    >>> run.status, len(run.metrics), 0 <= run.score <= 1
    ('finished', 20, True)
    """
    given = dict(locals())
    options = Options.make({name: given[name] for name in Options.names()})
    return fit_with(
        layer,
        task_of(task),
        options,
        readout,
        loss=loss,
        callbacks=callbacks,
        progress=progress,
        folder=folder,
        root=root,
    )


def fit_with(
    layer: nn.Module,
    task: Task,
    options: Options,
    readout: Any = "linear",
    *,
    loss: Loss | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    folder: str | os.PathLike[str] | None = None,
    root: str | os.PathLike[str] | None = None,
    known: dict[str, Any] | None = None,
) -> Run:
    """Do what `fit` does, from checked options.

    Parameters
    ----------
    known
        What the record says of the network, where the caller knows better than the object: its ``network``, and that
        its weights were ``drawn`` from the seed.
    """
    if folder is not None and root is not None:
        raise expected("root", "None where a folder is given", root)
    model = ready(layer, task, options, readout)
    member = Member(0, options, source_of(task, options))
    check_answers(model, task, member.source, options)
    own = {"weights": weights_digest(model)} if known is None and root is not None else known or {}
    spec = spec_of("fit", model, task, options, readout, own)
    step = Step(model, task, options, loss)
    loop = Loop(step, task, [member], lambda *_: step, loss, callbacks)
    return conduct(loop, model, spec, folder=folder, root=root, progress=progress)


def conduct(
    loop: Loop,
    model: Model,
    spec: dict[str, Any],
    *,
    folder: str | os.PathLike[str] | None,
    root: str | os.PathLike[str] | None,
    progress: bool | None,
    until: float = math.inf,
) -> Run:
    """Run the training of one network to its end, recorded where there is a folder for it, and return what came out."""
    task, options = loop.task, loop.options
    opened = folder is not None or root is not None
    keep = options.checkpoints
    with runs.open(spec, folder=folder, root=root, start=loop.begin, keep=keep) if opened else nullcontext() as record:
        restore(loop, record)
        where = None if record is None else record.folder
        if record is not None and record.finished:
            return _ended(loop, model, task, record.kept, where)
        label = f"{network_name(model)} on {task.name}"
        with Progress(options.iterations, label, naive_words(task), progress, until=until) as shown:
            lines = drive(loop, record, shown, rewind=True)
        run = _ended(loop, model, task, lines, where)
        if record is not None:
            _close(record, run.ending)
    if run.status == "failed":
        raise Diverged(run)
    return run


def ready(layer: nn.Module, task: Task | Environment, options: Options, readout: Any) -> Model:
    """Return the model of a layer, on its device and in its precision; in an environment with an encoder and heads."""
    generator = stream(options.seed, "readout")
    if isinstance(task, Environment):
        from mnemoscope.training.control.agent import build_agent  # whose room is above this one

        return placed(build_agent(layer, task, generator), options)
    model = build_model(layer, task, readout, generator)
    return placed(model, options)


def placed(model: Model, options: Options) -> Model:
    """Return a model on the device and in the precision of its training."""
    if options.precision is not None:
        model.to(PRECISIONS[options.precision])
    if options.device is not None:
        model.to(options.device)
    return model


def naive_words(task: Problem, digits: int = 3) -> str:
    """Return the loss of a task's naive answer, of an environment the return without memory; empty if nobody knows."""
    words, value = (
        ("without memory", task.memoryless) if isinstance(task, Environment) else (task.baseline_is, task.baseline)
    )
    return "" if math.isnan(value) else f"{words} {value:.{digits}g}"


def network_name(model: Model) -> str:
    """Return the name of a model's network, for people."""
    layer = model.layer
    return str(getattr(getattr(layer, "card", None), "name", None) or type(getattr(layer, "module", layer)).__name__)


def _ended(loop: Loop, model: Model, task: Problem, lines: Metrics, folder: Path | None) -> Run:
    member = loop.members[0]
    if member.ending is None or member.final is None:
        # A record says that the run has ended, but the checkpoint of its end is gone: an earlier one was taken.
        raise UserError(f"the last checkpoint of the run in {str(folder)!r} is damaged; train again in another folder")
    loop.step.load_state(0, member.final)
    model.eval()
    return Run(model, task, member.options.seed, lines, member.ending, folder)


def _close(record: runs.Recorder, ending: Ending) -> None:
    if ending.status == "failed":
        record.fail(f"{ending.reason}; last good checkpoint: step {ending.weights_step}")
    else:
        record.finish(ending.to_dict())


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A training that has ended.

    Attributes
    ----------
    model
        The trained network, with the weights of the best validation where there was one.
    task, seed
        What it learned, and the seed of everything random in it.
    metrics
        Lines as they came: step, loss, score, validation; ``metrics.column("loss")`` is an array.
    ending
        How it ended.
    folder
        Where it is recorded, or None.
    layout
        How a population was computed; None for a network alone.
    """

    model: Model
    task: Problem
    seed: int
    metrics: Metrics
    ending: Ending
    folder: Path | None = None
    layout: dict[str, Any] | None = field(default=None)

    @property
    def score(self) -> float:
        """The score on the test set; NaN of a run that failed."""
        return float("nan") if self.ending.score is None else self.ending.score

    @property
    def loss(self) -> float:
        """The loss on the test set; NaN of a run that failed."""
        return float("nan") if self.ending.loss is None else self.ending.loss

    @property
    def baseline(self) -> float:
        """The loss of the task's naive answer, which ``task.baseline_is`` names."""
        return self.task.baseline

    @property
    def status(self) -> str:
        """``"finished"`` or ``"failed"``."""
        return self.ending.status

    @property
    def reason(self) -> str:
        """Why it ended."""
        return self.ending.reason

    @property
    def tests(self) -> dict[str, dict[str, float]]:
        """Loss, score and more for each test of the task, by label."""
        return self.ending.tests

    def __str__(self) -> str:
        name = type(getattr(self.model.layer, "module", self.model.layer)).__name__.removeprefix("Parametrized")
        if self.status == "failed":
            return f"{name} on {self.task.name}: failed, {self.reason}"
        loss = "" if isinstance(self.task, Environment) else f", loss {self.loss:.4g}"
        naive = naive_words(self.task, 4)
        found = f"score {self.score:.4g} ({self.task.metric}){loss}{', ' if naive else ''}{naive}"
        return f"{name} on {self.task.name}: {found}, {self._steps()} ({self.reason})"

    def _steps(self) -> str:
        """Say how many steps were made, and which was tested where that is not the last."""
        made, tested = self.ending.step, self.ending.weights_step
        return f"{made} steps" if tested == made else f"tested at step {tested} of {made}"

    def __repr__(self) -> str:
        return f"<Run: {self}>"

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(str(self))}</b></p>"

    def to_dict(self) -> dict[str, Any]:
        """Return what came out, ready for JSON: NaN and infinities as text."""
        where = None if self.folder is None else str(self.folder)
        facts = {"task": self.task.name, "metric": self.task.metric, "seed": self.seed, "baseline": self.baseline}
        found: dict[str, Any] = plain(
            {**facts, **self.ending.to_dict(), "folder": where, "metrics": list(self.metrics)}
        )
        return found

    def plot(self) -> Chart:
        """Draw the loss against the step, in an environment the return; beside it that of the task's naive answer."""
        return draw_returns(self) if isinstance(self.task, Environment) else draw_losses(self)


class Diverged(MnemoscopeError):
    """A training whose loss or weights stopped being finite. The model has its last good weights.

    Attributes
    ----------
    run
        The run up to then, with ``run.reason``.
    """

    def __init__(self, run: Run) -> None:
        kept = f"the weights are those of step {run.ending.weights_step}, the last good one"
        where = "" if run.folder is None else f"; checkpoint in {run.folder}"
        super().__init__(f"{run.reason}; {kept}{where}")
        self.run = run


def draw_losses(run: Run) -> chart.Chart:
    """Draw the losses of a run against the step, with that of the task's naive answer."""
    steps = run.metrics.column("step") if run.metrics else np.zeros(0)
    series: dict[str, Any] = {}
    for name, words in (("loss", "training"), ("validation_loss", "validation")):
        if name in run.metrics.names():
            values = run.metrics.column(name).astype(float)
            series[words] = (steps[np.isfinite(values)], values[np.isfinite(values)])
    ends = (float(steps.min(initial=0)), float(steps.max(initial=1)))
    series[run.task.baseline_is] = (ends, (run.baseline, run.baseline))
    title = f"{run.task.name}: {'failed' if run.status == 'failed' else f'score {run.score:.4g}'}"
    return chart.lines(series, x="steps of the optimiser", y="loss", title=title, log_y=True)


def draw_returns(run: Run) -> chart.Chart:
    """Draw the returns of a run in an environment against the update, with the best ones with and without memory."""
    environment = run.task
    assert isinstance(environment, Environment)
    steps = run.metrics.column("step") if run.metrics else np.zeros(0)
    ends = (float(steps.min(initial=0)), float(steps.max(initial=1)))
    series: dict[str, Any] = {}
    for name, words in (("score", "training"), ("validation_score", "validation")):
        if name in run.metrics.names():
            values = run.metrics.column(name).astype(float)
            series[words] = (steps[np.isfinite(values)], values[np.isfinite(values)])
    for words, value in (("optimum", environment.optimum), ("without memory", environment.memoryless)):
        if math.isfinite(value):
            series[words] = (ends, (value, value))
    title = f"{environment.name}: {'failed' if run.status == 'failed' else f'score {run.score:.4g}'}"
    return chart.lines(series, x="updates", y=environment.metric, title=title)
