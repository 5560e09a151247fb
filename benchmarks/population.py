"""Trainings per second of 16 networks at once, as a ratio to 16 trained one after the other.

One training step is forward, backward and RMSprop with a Linear head and cross entropy on every step; 10 inputs,
10 classes, 32 units, float32. Run ``python benchmarks/population.py`` for the table in docs/benchmarks.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from harness import Step, interleave, machine, write
from step_time import training_step
from torch import nn

import mnemoscope as ms
from mnemoscope.training.objective import Buffers, class_major

MEMBERS, HIDDEN = 16, 32
SHAPES = {"L=1, T=220, B=32": (1, 220, 32), "L=2, T=16, B=128": (2, 16, 128)}


def one_after_the_other(build: Any, steps: int, batch: int) -> Step:
    """Return a function that makes one training step of each of the networks."""
    each = [training_step(build(), steps, batch) for _ in range(MEMBERS)]

    def step() -> None:
        for one in each:
            one()

    return step


def all_at_once(layers: int, steps: int, batch: int) -> Step:
    """Return a function that makes one training step of the whole population."""
    population = ms.nn.Population([ms.nn.RNN(10, HIDDEN, layers) for _ in range(MEMBERS)])
    heads = [nn.Linear(HIDDEN, 10) for _ in range(MEMBERS)]
    weight = nn.Parameter(torch.stack([head.weight.detach() for head in heads]))
    bias = nn.Parameter(torch.stack([head.bias.detach() for head in heads]))
    x = torch.randn(MEMBERS, steps, batch, 10)
    labels = torch.randint(10, (MEMBERS, steps * batch))
    optimiser = torch.optim.RMSprop([*population.parameters(), weight, bias], lr=1e-4)
    buffers = Buffers()

    def step() -> None:
        optimiser.zero_grad()
        output, _ = population(x)
        logits = class_major(output, weight, bias, buffers)
        # The sum of the members' mean losses: each member's gradient is that of its own loss.
        (MEMBERS * F.cross_entropy(logits, labels)).backward()
        optimiser.step()

    return step


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    lines = [
        f"Trainings per second of {MEMBERS} networks at once (rnn tanh, n = {HIDDEN}) over those one after the other,",
        f"median of {arguments.rounds} interleaved rounds; {machine()}; {datetime.date.today()}.",
        "",
        "| shape | threads | 16 torch.nn.RNN, ms | against 16 torch.nn.RNN | against 16 of ours |",
        "|---|---|---|---|---|",
    ]
    data: dict[str, Any] = {"machine": machine(), "date": str(datetime.date.today())}
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        for name, (layers, steps, batch) in SHAPES.items():
            torch.manual_seed(0)
            timed = {
                "torch": one_after_the_other(lambda n=layers: nn.RNN(10, HIDDEN, n), steps, batch),
                "ours": one_after_the_other(lambda n=layers: ms.nn.RNN(10, HIDDEN, n), steps, batch),
                "population": all_at_once(layers, steps, batch),
            }
            times = interleave(timed, arguments.rounds, seconds=0.5)
            gain = {
                other: statistics.median(a / b for a, b in zip(times[other], times["population"], strict=True))
                for other in ("torch", "ours")
            }
            torch_ms = 1000 * statistics.median(times["torch"])
            lines.append(f"| {name} | {threads} | {torch_ms:.0f} | {gain['torch']:.1f} | {gain['ours']:.1f} |")
            data[f"{name}, {threads} threads"] = {"torch_ms": torch_ms, **gain}
            print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        write("population", text, data, arguments.write)


if __name__ == "__main__":
    main()
