"""Groups of a population in processes of their own."""

from __future__ import annotations

import json
import math
import os
import selectors
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import mnemoscope
from mnemoscope.core.errors import MnemoscopeError, UserError
from mnemoscope.nn.registry import card
from mnemoscope.runs import Checkpoint, Metrics, OutOfBudget, load
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

__all__ = ["is_movable", "main", "read_group", "run", "run_workers", "worker_command"]


def is_movable(models: Sequence[Model], task: Task, readout: Any) -> bool:
    """Say whether another process can build these networks and this task again from their names and options."""
    known = task.name in TASKS and TASKS[task.name] is type(task)
    return (
        known
        and isinstance(readout, str)
        and all("options" in describe_network(m.layer) for m in models)
        and all(card(type(m.layer)) is not None for m in models)
    )


def run_workers(layout: Layout, home: Path, everyone: Group, progress: Progress) -> None:
    """Train every group of a population that is recorded in `home`, `layout.processes` at a time, and wait for all.

    A process that is left alone, because this one was killed, ends by itself: it watches its standard input.
    """
    groups = range(len(layout.groups))
    data, options = getattr(everyone.task, "data", None), everyone.options[0]
    common: dict[str, Any] = {"home": str(home), "data": None if data is None else str(data)}
    common |= {"now": {name: getattr(options, name) for name in ("device", "checkpoint_every", "checkpoint_seconds")}}
    # The clock is that of the machine, so that the processes know when to stop, and keep what they came to.
    common |= {"until": None if math.isinf(progress.until) else progress.until}
    environment = os.environ | {"OMP_NUM_THREADS": str(layout.threads), "MKL_NUM_THREADS": str(layout.threads)}
    started = [
        subprocess.Popen(
            [*worker_command(), json.dumps({**common, "groups": list(groups[i :: layout.processes])})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for i in range(layout.processes)
    ]
    try:
        if not _follow(started, progress, len(groups)):
            raise OutOfBudget("its time is used up")
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


def worker_command() -> list[str]:
    """Return what starts a process with the modules of this one, and with nothing of the current folder.

    Isolated (``-I``), Python reads neither PYTHONPATH nor the current folder, so that no file there named as a module
    is run for it; the places of our modules are given by name.
    """
    own = str(Path(mnemoscope.__file__).parents[1])
    places = [own, *(path for path in sys.path if path not in ("", own) and not _is_here(path))]
    code = "import sys; sys.path[:] = {!r}; from mnemoscope.training.workers import run; run()"
    return [sys.executable, "-I", "-c", code.format(places)]


def _is_here(path: str) -> bool:
    return not Path(path).is_absolute() or Path(path).resolve() == Path.cwd().resolve()


def _follow(started: Sequence[subprocess.Popen[str]], progress: Progress, groups: int) -> bool:
    """Show what the processes tell, until all have ended; raise what the first that fails says.

    Returns whether all are done; False where the time of some was used up.
    """
    done = True
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
                    done = _ended_well(key.data) and done
                    continue
                told = json.loads(line)
                news[told["group"]] = told["step"], told["rows"]
                steps = sum(step for step, _ in news.values()) // groups
                progress.update(steps, [row for _, rows in news.values() for row in rows])
    return done


_STOPPED = 3
"""Exit code of a process whose time was used up."""


def _ended_well(process: subprocess.Popen[str]) -> bool:
    """Return whether a process that has ended did all, or ran out of time; raise what it says when it failed."""
    assert process.stderr is not None
    said = process.stderr.read().strip().splitlines()
    code = process.wait()
    if code in (0, _STOPPED):
        return code == 0
    last = said[-1] if said else f"it ended with code {code}"
    if last.startswith("error: "):
        raise UserError(last.removeprefix("error: "))
    raise MnemoscopeError(f"a process of the population failed: {last}; what was done is kept where it is recorded")


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


def _end_with_parent() -> None:
    """End when standard input does: whoever started this process is gone."""
    os.read(0, 1)  # not sys.stdin, whose lock this process could then not take when it ends
    os._exit(1)


def main(job: Mapping[str, Any]) -> None:
    """Train groups of a recorded population, one after the other, and tell of every line on standard output."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    home = Path(job["home"])
    record = load(home)
    first = record.latest()
    assert first is not None
    layout = Layout.from_dict(first.state["layout"])
    torch.set_num_threads(layout.threads)
    task = with_data(rebuild_task(record.spec["task"]), job["data"])
    options = recorded_options(record.spec, job["now"])
    for place in job["groups"]:
        numbers = layout.groups[place]
        models = [_model(first, n, task, options[n], record.spec["readout"]) for n in numbers]
        group = Group(numbers, models, [options[n] for n in numbers], task, group_spec(record.spec, numbers))

        def tell(step: int, rows: list[dict[str, Any]], place: int = place) -> None:
            shown = [{name: value for name, value in row.items() if value == value} for row in rows]
            print(json.dumps({"group": place, "step": step, "rows": shown}), flush=True)  # noqa: T201 - to its starter

        shown = Progress(1, "", "", show=False, until=math.inf if job["until"] is None else job["until"])
        train_group(group, group_folder(home, place), shown, tell=tell)


def _model(first: Checkpoint, number: int, task: Task, options: Options, readout: str) -> Model:
    model = ready(rebuild_layer(first.state["networks"][number]), task, options, readout)
    load_weights(model, part(first.tensors, f"{number}/"))
    return model


def run() -> None:
    """Do the job that the last argument describes; a user's mistake is one line."""
    try:
        main(json.loads(sys.argv[-1]))
    except OutOfBudget:
        sys.exit(_STOPPED)
    except UserError as error:
        sys.exit(f"error: {error}")
