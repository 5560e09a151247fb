"""What a fresh batch costs, as a share of the training step that uses it: for every task, B = 128, n = 128.

The yardstick of each task is a training step on a batch of its own: torch.nn.RNN (tanh), a linear head, the task's
loss, RMSprop. Generation and step take turns in every round; the table gives medians. Tasks whose files are missing
are left out and named: `--data` or MNEMOSCOPE_DATA says where they are.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
from pathlib import Path

import torch
from harness import Step, interleave, machine, ratios, write
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError

BAR = 0.05
BATCH, HIDDEN = 128, 128
STEP, GENERATION = "training step", "generation"


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
    parser.add_argument("--data", help="the data folder")
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    if arguments.data:
        os.environ["MNEMOSCOPE_DATA"] = arguments.data
    torch.set_num_threads(1)
    found: dict[str, dict[str, float]] = {}
    missing = []
    for name in arguments.only or ms.tasks.names():
        try:
            found[name] = measure(ms.tasks.create(name), arguments.rounds)
        except UserError as error:
            missing.append(name)
            print(f"{name}: {error}")
            continue
        print(name, {key: round(value, 4) for key, value in found[name].items()}, flush=True)
    text = "\n".join(table(found, missing, arguments.rounds)) + "\n"
    print(text)
    if arguments.write:
        data = {"machine": machine(), "date": str(datetime.date.today()), "rounds": arguments.rounds, "tasks": found}
        write("task_generation", text, data, arguments.write)


def table(found: dict[str, dict[str, float]], missing: list[str], rounds: int) -> list[str]:
    """Return the lines of the table."""
    lines = [
        "Time of a fresh batch of 128 over the training step of torch.nn.RNN with n = 128 that uses it, every task",
        f"at its default settings, one thread, medians of {rounds} interleaved rounds; {machine()};",
        f"{datetime.date.today()}.",
        f"The bar is {BAR:.0%}.",
        "",
        "| task | batch, ms | step, ms | share |",
        "|---|---|---|---|",
    ]
    for name, one in found.items():
        over = " **over the bar**" if one["ratio"] > BAR else ""
        lines.append(f"| {name} | {one[GENERATION]:.2f} | {one[STEP]:.1f} | {one['ratio']:.1%}{over} |")
    return [*lines, "", *([f"Without their files: {', '.join(missing)}."] if missing else [])]


if __name__ == "__main__":
    main()
