"""Time of `fit`, record included, as a ratio to the plain loop over torch.nn.RNN, and over its own bare step.

The plain loop is what a person would write: torch.nn.RNN(tanh), torch.nn.Linear, F.cross_entropy on all steps,
torch.optim.RMSprop, fresh batches of the same task (`copy`). The bare step is `fit`'s own, batches included, without
its loop, metrics and record. Run ``python benchmarks/fit.py`` for the table in docs/benchmarks.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from harness import machine, write
from torch import nn

import mnemoscope as ms

SHAPES = {(220, 10, 128): 0.50, (1000, 128, 64): 0.50, (220, 128, 128): 0.70}
ITERATIONS = {(220, 10, 128): 300, (1000, 128, 64): 50, (220, 128, 128): 100, (16, 128, 32): 2000}
SMALL, OVERHEAD = (16, 128, 32), 1.05
OVERHEAD_ROUNDS = 4
"""How many times as many rounds: a ratio near 1 asks for more of them than the others."""
RATE = 1e-4


def task_of(steps: int) -> Any:
    """Return the task of a length: copy, or for short sequences lag-copy."""
    return ms.tasks.create("copy", delay=steps - 20) if steps > 20 else ms.tasks.create("lag-copy", length=steps)


def plain(task: Any, batch: int, hidden: int, iterations: int) -> Any:
    """Return the plain loop."""
    rnn, head = nn.RNN(task.input_size, hidden), nn.Linear(hidden, task.output_size)
    optimiser = torch.optim.RMSprop([*rnn.parameters(), *head.parameters()], lr=RATE)
    generator = torch.Generator().manual_seed(0)

    def run() -> None:
        for _ in range(iterations):
            drawn = task.sample(batch, generator)
            output, _ = rnn(drawn.inputs)
            loss = F.cross_entropy(head(output).flatten(0, 1), drawn.targets.flatten())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            loss.item()

    return run


def fitted(task: Any, batch: int, hidden: int, iterations: int, folder: Path | None) -> Any:
    """Return a call of `fit` on a new network, recorded in a new folder; its test is of one sequence."""
    numbers = iter(range(10**6))

    def run() -> None:
        where = None if folder is None else folder / f"run-{next(numbers)}"
        common: dict[str, Any] = {"batch_size": batch, "lr": RATE, "test_size": 1, "data": "fresh", "progress": False}
        ms.training.fit(ms.nn.RNN(task.input_size, hidden), task, iterations=iterations, folder=where, **common)

    return run


def bare(task: Any, batch: int, hidden: int, iterations: int) -> Any:
    """Return `fit`'s own step in a plain loop."""
    options = ms.training.Options(iterations=iterations, batch_size=batch, lr=RATE)
    model = ms.training.build_model(
        ms.nn.RNN(task.input_size, hidden), task, "linear", ms.training.stream(0, "readout")
    )
    step = ms.training.Step(model, task, options)
    generator = torch.Generator().manual_seed(0)

    def run() -> None:
        for _ in range(iterations):
            step.train(task.sample(batch, generator))

    return run


def measured(programs: dict[str, Any], rounds: int) -> dict[str, list[float]]:
    """Time every program in every round, after one call that warms it up."""
    times: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        for name, program in programs.items():
            start = time.perf_counter()
            program()
            if number:
                times[name].append(time.perf_counter() - start)
    return times


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of the iterations of a round")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    lines = [
        "`fit` of rnn (tanh) on copy, record included, over the plain loop of torch.nn.RNN, Linear, cross_entropy and",
        f"RMSprop; median of {arguments.rounds} interleaved rounds, {arguments.threads} thread; {machine()};",
        f"{datetime.date.today()}. The last row: `fit` over its own bare step, on lag-copy, {OVERHEAD_ROUNDS} times as",
        "many rounds.",
        "",
        "| (T, B, n) | iterations | ms per step | ratio | bar |",
        "|---|---|---|---|---|",
    ]
    data: dict[str, Any] = {"machine": machine(), "date": str(datetime.date.today())}
    with tempfile.TemporaryDirectory() as folder:
        for number, (shape, bar) in enumerate([*SHAPES.items(), (SMALL, OVERHEAD)]):
            steps, batch, hidden = shape
            task = task_of(steps)
            against = bare if shape == SMALL else plain
            count = max(2, round(arguments.scale * ITERATIONS[shape]))
            own = fitted(task, batch, hidden, count, Path(folder) / str(number))
            rounds = arguments.rounds * (OVERHEAD_ROUNDS if shape == SMALL else 1)
            times = measured({"plain": against(task, batch, hidden, count), "fit": own}, rounds)
            ratio = statistics.median(a / b for a, b in zip(times["fit"], times["plain"], strict=True))
            each = 1000 * statistics.median(times["fit"]) / count
            label = f"{shape}, overhead" if shape == SMALL else str(shape)
            lines.append(f"| {label} | {count} | {each:.2f} | {ratio:.3f} | {bar:.2f} |")
            data[label] = {"ratio": ratio, "bar": bar, "iterations": count, "ms": each, **times}
            print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        write("fit", text, data, arguments.write)


if __name__ == "__main__":
    main()
