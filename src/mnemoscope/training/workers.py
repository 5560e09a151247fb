"""Groups of a population that are trained elsewhere: in processes of this machine, or on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mnemoscope.machines.processes import Processes
from mnemoscope.machines.workers import Tell, Workers
from mnemoscope.nn.registry import card
from mnemoscope.runs import Checkpoint, Metrics, load
from mnemoscope.tasks import Task
from mnemoscope.tasks.registry import TASKS
from mnemoscope.training.configuration import describe_network, rebuild_layer, rebuild_task, recorded_options, with_data
from mnemoscope.training.descent import load_weights, part
from mnemoscope.training.fitting import ready
from mnemoscope.training.groups import Group, GroupResult, Layout, group_folder, group_spec, train_group
from mnemoscope.training.model import Model
from mnemoscope.training.options import Options
from mnemoscope.training.recording import Progress
from mnemoscope.training.state import Ending

__all__ = ["is_movable", "read_group", "run_workers", "train"]


def is_movable(models: Sequence[Model], task: Task, readout: Any) -> bool:
    """Say whether another process can build these networks and this task again from their names and options."""
    known = task.name in TASKS and TASKS[task.name] is type(task)
    return (
        known
        and isinstance(readout, str)
        and all("options" in describe_network(m.layer) for m in models)
        and all(card(type(m.layer)) is not None for m in models)
    )


def run_workers(
    layout: Layout, home: Path, everyone: Group, progress: Progress, workers: Workers | None = None
) -> None:
    """Train every group of a population that is recorded in `home`, and wait for all.

    Parameters
    ----------
    workers
        Who trains them; None: `layout.processes` processes of this machine.
    """
    data, options = getattr(everyone.task, "data", None), everyone.options[0]
    now = {name: getattr(options, name) for name in ("device", "checkpoint_every", "checkpoint_seconds", "checkpoints")}
    common: dict[str, Any] = {"home": str(home), "data": None if data is None else str(data), "now": now}
    jobs = [common | {"group": place} for place in range(len(layout.groups))]
    chosen = Processes(layout.processes, layout.threads) if workers is None else workers
    news: dict[int, tuple[int, list[dict[str, Any]]]] = {}

    def tell(place: int, told: Mapping[str, Any]) -> None:
        news[place] = told["step"], told["rows"]
        steps = sum(step for step, _ in news.values()) // len(jobs)
        progress.update(steps, [row for _, rows in news.values() for row in rows])

    for _ in chosen.run("mnemoscope.training.workers:train", jobs, tell, progress.until):
        pass


def read_group(folder: Path, numbers: Sequence[int]) -> GroupResult:
    """Return how the networks of a group ended, from the record in its folder."""
    record = load(folder)
    checkpoint = record.latest()
    assert checkpoint is not None
    endings = {n: Ending(**record.summary["endings"][str(n)]) for n in numbers}
    weights: dict[int, dict[str, Tensor]] = {n: part(checkpoint.tensors, f"member/{n}/final/") for n in numbers}
    alone: Mapping[str, int] = {"member": numbers[0]} if len(numbers) == 1 else {}
    lines = Metrics({"step": line["step"], **alone, **line} for line in record.metrics)
    return GroupResult(endings, weights, lines)


def train(job: Mapping[str, Any], tell: Tell) -> None:
    """Train one group of a recorded population, and tell of every line."""
    home, place = Path(job["home"]), job["group"]
    record = load(home)
    first = record.latest()
    assert first is not None
    layout = Layout.from_dict(first.state["layout"])
    task = with_data(rebuild_task(record.spec["task"]), job["data"])
    options = recorded_options(record.spec, job["now"])
    numbers = layout.groups[place]
    models = [_model(first, n, task, options[n], record.spec["readout"]) for n in numbers]
    group = Group(numbers, models, [options[n] for n in numbers], task, group_spec(record.spec, numbers))

    def show(step: int, rows: list[dict[str, Any]]) -> None:
        shown = [{name: value for name, value in row.items() if value == value} for row in rows]
        tell({"step": step, "rows": shown})

    before = torch.get_num_threads()
    torch.set_num_threads(layout.threads)
    try:
        train_group(group, group_folder(home, place), Progress(1, "", "", show=False), tell=show)
    finally:
        torch.set_num_threads(before)


def _model(first: Checkpoint, number: int, task: Task, options: Options, readout: str) -> Model:
    model = ready(rebuild_layer(first.state["networks"][number]), task, options, readout)
    load_weights(model, part(first.tensors, f"{number}/"))
    return model
