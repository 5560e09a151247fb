"""Trainings per second of 16 networks by `fit_population`, as a ratio to 16 calls of `fit` one after the other.

Both use all cores, and draw, train and test the same. The layout is the one that the scheduler takes by its own
measurements, whose time counts, as does that of starting processes. Run ``python benchmarks/fit_population.py`` for the
table in docs/benchmarks.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from harness import machine, write

import mnemoscope as ms

MEMBERS, HIDDEN, BAR = 16, 32, 2.2
CASES: dict[str, tuple[str, dict[str, Any], int, int]] = {
    "lag-copy, L=2, T=16, B=128": ("lag-copy", {"length": 16, "lag": 8}, 2, 128),
    "copy, L=1, T=220, B=32": ("copy", {"delay": 200}, 1, 32),
}


def networks(task: Any, layers: int) -> list[Any]:
    """Build 16 networks of one shape."""
    torch.manual_seed(0)
    return [ms.nn.RNN(task.input_size, HIDDEN, layers) for _ in range(MEMBERS)]


def seconds(train: Any) -> tuple[float, Any]:
    """Return how long a call takes, and what it returns."""
    start = time.perf_counter()
    made = train()
    return time.perf_counter() - start, made


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--layout", help="instead of the one that the scheduler takes")
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(cores)
    lines = [
        f"Trainings per second of {MEMBERS} networks (rnn tanh, n = {HIDDEN}, {arguments.iterations} iterations) by",
        f"`fit_population`, over {MEMBERS} calls of `fit` one after the other, both with {cores} cores; median of",
        f"{arguments.rounds} interleaved rounds; bar {BAR}; {machine()}; {datetime.date.today()}.",
        "",
        "| task | layout taken | one after the other, s | at once, s | ratio |",
        "|---|---|---|---|---|",
    ]
    data: dict[str, Any] = {"machine": machine(), "date": str(datetime.date.today())}
    for label, (name, settings, layers, batch) in CASES.items():
        task = ms.tasks.create(name, **settings)
        common: dict[str, Any] = {"iterations": arguments.iterations, "batch_size": batch, "progress": False}
        times: dict[str, list[float]] = {"one": [], "all": []}
        taken = set()
        for _ in range(arguments.rounds):
            each = networks(task, layers)
            one, _ = seconds(
                lambda e=each, t=task, c=common: [ms.training.fit(x, t, seed=k, **c) for k, x in enumerate(e)]
            )
            together = networks(task, layers)
            every, made = seconds(
                lambda e=together, t=task, c=common: ms.training.fit_population(e, t, layout=arguments.layout, **c)
            )
            taken.add(made[0].layout["name"])
            times["one"].append(one)
            times["all"].append(every)
            print(f"{label}: {one:.1f} s, {every:.1f} s, {one / every:.2f} ({made[0].layout['name']})", flush=True)
        gain = statistics.median(a / b for a, b in zip(times["one"], times["all"], strict=True))
        middle = {name: statistics.median(own) for name, own in times.items()}
        lines.append(
            f"| {label} | {', '.join(sorted(taken))} | {middle['one']:.1f} | {middle['all']:.1f} | {gain:.2f} |"
        )
        data[label] = {"ratio": gain, "layouts": sorted(taken), **times}
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        write("fit_population", text, data, arguments.write)


if __name__ == "__main__":
    main()
