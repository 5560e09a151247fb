"""What a fresh batch costs, as a share of the training step that uses it: for every task, B = 128, n = 128.

The yardstick of each task is a training step on a batch of its own: torch.nn.RNN (tanh), a linear head, the task's
loss, RMSprop. Generation and step take turns in every round; the table gives medians. Tasks that read files, whose
content does not matter here, read random files of the same sizes.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import struct
import tempfile
from pathlib import Path

import numpy as np
import torch
from harness import Step, interleave, machine, ratios, write
from torch import nn

import mnemoscope as ms
from mnemoscope.tasks.datasets import DATASETS

BAR = 0.05
BATCH, HIDDEN = 128, 128
STEP, GENERATION = "training step", "generation"


def write_stand_ins(folder: Path) -> None:
    """Write random files of the formats and sizes of the real ones."""
    random = np.random.default_rng(0)
    for dataset in DATASETS.values():
        for file in dataset.files:
            if dataset.name != "mnist":
                letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz,.\n", dtype=np.uint8)
                data = letters[random.integers(0, len(letters), file.size)].tobytes()
            elif "images" in file.name:
                count = (file.size - 16) // 784
                data = struct.pack(">4I", 2051, count, 28, 28) + random.bytes(784 * count)
            else:
                count = file.size - 8
                data = struct.pack(">2I", 2049, count) + random.integers(0, 10, count).astype(np.uint8).tobytes()
            (folder / file.name).write_bytes(data)


def create(name: str, folder: Path) -> ms.tasks.Task:
    """Return a task at its default settings, on the stand-ins where it reads files."""
    files = {"data": str(folder), "verify": False} if ms.tasks.get(name).dataset else {}
    return ms.tasks.create(name, **files)


def training_step(task: ms.tasks.Task, batch: ms.tasks.Batch) -> Step:
    """Return a function that makes one training step on a batch."""
    width = task.embedding_size if task.embedding else task.input_size
    embed = nn.Embedding(task.embedding, width) if task.embedding else nn.Identity()
    layer, head = nn.RNN(width, HIDDEN), nn.Linear(HIDDEN, task.output_size)
    optimiser = torch.optim.RMSprop([*embed.parameters(), *layer.parameters(), *head.parameters()], lr=1e-4)

    def step() -> None:
        optimiser.zero_grad()
        output, _ = layer(embed(batch.inputs))
        task.loss(head(output[-1] if batch.per_sequence else output), batch).backward()
        optimiser.step()

    return step


def measure(task: ms.tasks.Task, rounds: int) -> dict[str, float]:
    """Return milliseconds of a batch and of a step, and the median of their ratio."""
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    steps: dict[str, Step] = {
        STEP: training_step(task, task.sample(BATCH, generator)),
        GENERATION: lambda: task.sample(BATCH, generator),
    }
    times = interleave(steps, rounds)
    found = {name: 1000 * statistics.median(own) for name, own in times.items()}
    return found | {"ratio": ratios(times, STEP)[GENERATION]}


def main() -> None:
    """Measure all tasks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", help="tasks; by default all")
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_stand_ins(Path(folder))
        for name in arguments.only or ms.tasks.names():
            found[name] = measure(create(name, Path(folder)), arguments.rounds)
            print(name, {key: round(value, 4) for key, value in found[name].items()}, flush=True)
    text = "\n".join(table(found, arguments.rounds)) + "\n"
    print(text)
    if arguments.write:
        data = {"machine": machine(), "date": str(datetime.date.today()), "rounds": arguments.rounds, "tasks": found}
        write("task_generation", text, data, arguments.write)


def table(found: dict[str, dict[str, float]], rounds: int) -> list[str]:
    """Return the lines of the table."""
    lines = [
        "Time of a fresh batch of 128 over the training step of torch.nn.RNN with n = 128 that uses it, every task",
        f"at its default settings, one thread, medians of {rounds} interleaved rounds; {machine()};",
        f"{datetime.date.today()}. The bar is {BAR:.0%}. Images and texts are random files of the real sizes.",
        "",
        "| task | batch, ms | step, ms | share |",
        "|---|---|---|---|",
    ]
    for name, one in found.items():
        over = " **over the bar**" if one["ratio"] > BAR else ""
        lines.append(f"| {name} | {one[GENERATION]:.2f} | {one[STEP]:.1f} | {one['ratio']:.1%}{over} |")
    return lines


if __name__ == "__main__":
    main()
