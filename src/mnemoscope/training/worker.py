"""A process that trains groups of a population: ``python -m mnemoscope.training.worker FOLDER..``."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from mnemoscope.core.errors import UserError
from mnemoscope.tasks import Task
from mnemoscope.training.fit import ready
from mnemoscope.training.group import Group, train_group
from mnemoscope.training.options import Options
from mnemoscope.training.progress import Progress
from mnemoscope.training.spec import rebuild_layer, rebuild_task
from mnemoscope.training.step import full_state, part
from mnemoscope.training.workers import JOB, WEIGHTS

__all__ = ["main", "read_job"]


def read_job(folder: Path) -> tuple[Group, int]:
    """Return the group that is described in a folder, and how many threads it is to use."""
    job = json.loads((folder / JOB).read_text())
    weights = load_file(folder / WEIGHTS)
    task: Task = rebuild_task(job["task"])
    if job["data"] is not None:
        task = dataclasses.replace(task, data=job["data"])  # type: ignore[call-arg]
    options = [Options(**own["options"]) for own in job["members"]]
    models = []
    for own, settings in zip(job["members"], options, strict=True):
        model = ready(rebuild_layer(own["network"]), task, settings, job["readout"])
        state = part(weights, f"{own['number']}/")
        with torch.no_grad():
            for name, tensor in full_state(model).items():
                tensor.copy_(state[name])
        models.append(model)
    numbers = [own["number"] for own in job["members"]]
    return Group(numbers, models, options, task, job["spec"]), int(job["threads"])


def _end_with_parent() -> None:
    """End when standard input does: whoever started this process is gone."""
    os.read(0, 1)  # not sys.stdin, whose lock this process could then not take when it ends
    os._exit(1)


def main(folders: list[str]) -> None:
    """Train the groups in the folders, one after the other, and tell of every line on standard output."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for place in folders:
        group, threads = read_job(Path(place))
        torch.set_num_threads(threads)

        def tell(step: int, rows: list[dict[str, Any]], first: int = group.numbers[0]) -> None:
            shown = [{name: value for name, value in row.items() if value == value} for row in rows]
            print(json.dumps({"group": first, "step": step, "rows": shown}), flush=True)  # noqa: T201 - to its starter

        train_group(group, place, Progress(1, "", 0.0, show=False), tell=tell)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.exit(f"error: {error}")
