"""Groups of a population in processes of their own: what they are given, what they tell, how they end."""

from __future__ import annotations

import dataclasses
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from mnemoscope.core.errors import MnemoscopeError, UserError
from mnemoscope.core.files import write_atomic
from mnemoscope.nn.registry import card
from mnemoscope.runs import load
from mnemoscope.runs.record import Metrics
from mnemoscope.tasks import Task
from mnemoscope.tasks.registry import TASKS
from mnemoscope.training.group import Group, Outcome
from mnemoscope.training.layout import Layout
from mnemoscope.training.member import Ending
from mnemoscope.training.model import Model
from mnemoscope.training.progress import Progress
from mnemoscope.training.spec import describe_network, describe_task
from mnemoscope.training.step import full_state, part

__all__ = ["is_movable", "read_outcome", "run_workers", "write_job"]

JOB, WEIGHTS = "job.json", "job.safetensors"


def is_movable(models: Sequence[Model], task: Task, readout: Any) -> bool:
    """Say whether another process can build these networks and this task again from their names and options."""
    known = task.name in TASKS and TASKS[task.name] is type(task)
    return (
        known
        and isinstance(readout, str)
        and all("options" in describe_network(m.layer) for m in models)
        and all(card(type(m.layer)) is not None for m in models)
    )


def write_job(folder: Path, group: Group, readout: str, threads: int) -> None:
    """Write what a process needs to train a group into the folder of the group."""
    folder.mkdir(parents=True, exist_ok=True)
    members: list[dict[str, Any]] = [
        {"number": n, "network": describe_network(m.layer), "options": dataclasses.asdict(o)}
        for n, m, o in zip(group.numbers, group.models, group.options, strict=True)
    ]
    for member in members:
        member["options"].pop("patience")  # which the schedule holds
    job = {
        "task": describe_task(group.task),
        "data": getattr(group.task, "data", None) and str(group.task.data),  # type: ignore[attr-defined]
        "readout": readout,
        "threads": threads,
        "members": members,
        "spec": dict(group.spec),
    }
    states = {n: full_state(model) for n, model in zip(group.numbers, group.models, strict=True)}
    weights = {f"{n}/{name}": t.detach().clone().contiguous() for n, own in states.items() for name, t in own.items()}
    write_atomic(folder / WEIGHTS, save(weights), durable=False)
    write_atomic(folder / JOB, json.dumps(job).encode(), durable=False)


def run_workers(layout: Layout, folders: Sequence[Path], progress: Progress) -> None:
    """Train every group in its folder, `layout.processes` at a time, and wait for all.

    A process that is left alone, because this one was killed, ends by itself: it watches its standard input.
    """
    share = [[str(folder) for folder in folders[i :: layout.processes]] for i in range(layout.processes)]
    environment = os.environ | {"OMP_NUM_THREADS": str(layout.threads), "MKL_NUM_THREADS": str(layout.threads)}
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-m", "mnemoscope.training.worker"]
    started = [
        subprocess.Popen(
            [*command, *own],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment | {"PYTHONPATH": paths},
        )
        for own in share
        if own
    ]
    try:
        _follow(started, progress, len(folders))
    except BaseException:
        for process in started:
            process.kill()
        raise
    finally:
        for process in started:
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            process.wait()


def _follow(started: Sequence[subprocess.Popen[str]], progress: Progress, groups: int) -> None:
    """Show what the processes tell, until all have ended well; raise what the first that fails says."""
    news: dict[int, tuple[int, list[dict[str, Any]]]] = {}
    with selectors.DefaultSelector() as selector:
        for process in started:
            assert process.stdout is not None
            selector.register(process.stdout, selectors.EVENT_READ, process)
        while selector.get_map():
            for key, _ in selector.select():
                line = key.fileobj.readline()  # type: ignore[union-attr]
                if not line:
                    selector.unregister(key.fileobj)
                    _check_end(key.data)
                    continue
                told = json.loads(line)
                news[told["group"]] = told["step"], told["rows"]
                steps = sum(step for step, _ in news.values()) // groups
                progress.update(steps, [row for _, rows in news.values() for row in rows])


def _check_end(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    said = process.stderr.read().strip().splitlines()
    code = process.wait()
    if code == 0:
        return
    last = said[-1] if said else f"it ended with code {code}"
    if last.startswith("error: "):
        raise UserError(last.removeprefix("error: "))
    raise MnemoscopeError(f"a process of the population failed: {last}; what was done is kept where it is recorded")


def read_outcome(folder: Path, numbers: Sequence[int]) -> Outcome:
    """Return how the networks of a group ended, from the record in its folder."""
    record = load(folder)
    checkpoint = record.latest()
    assert checkpoint is not None
    endings = {n: Ending(**record.summary["endings"][str(n)]) for n in numbers}
    weights: dict[int, dict[str, Tensor]] = {n: part(checkpoint.tensors, f"member/{n}/final/") for n in numbers}
    alone: Mapping[str, int] = {"member": numbers[0]} if len(numbers) == 1 else {}
    lines = Metrics({"step": line["step"], **alone, **line} for line in record.metrics)
    return Outcome(endings, weights, lines)
