"""Time of a training step, as a ratio to torch.nn.RNN of the same size.

One step is forward, backward and RMSprop, with a Linear head and cross entropy on every step of the sequence; 10
inputs, 10 classes, float32. Run ``python benchmarks/step_time.py`` for the table in docs/benchmarks.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from harness import Step, interleave, machine, ratios, write
from torch import nn

import mnemoscope as ms

SHAPES = [(16, 128, 32), (220, 10, 128), (220, 128, 128), (1000, 128, 64), (64, 128, 512)]
BARS: dict[str, list[float | None]] = {
    "rnn tanh": [0.76, 0.55, 0.80, 0.66, 0.90],
    "rnn modrelu": [0.76, 0.55, 0.80, 0.66, 0.90],
    "linear-rnn": [0.65, 0.45, 0.70, 0.55, 0.85],
    "scornn": [None, 0.65, 0.82, None, None],
    "exprnn": [None, 0.75, 0.82, None, None],
    "nnrnn": [None, 0.80, 0.82, None, None],
}
OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "rnn tanh": ("rnn", {"nonlinearity": "tanh"}),
    "rnn modrelu": ("rnn", {"nonlinearity": "modrelu"}),
    "full-urnn complex": ("full-urnn", {"field": "complex"}),
    "exprnn complex": ("exprnn", {"field": "complex"}),
    "soft-orth penalty": ("soft-orth", {"mode": "penalty"}),
}
OTHERS = [
    "irnn",
    "orth-rnn",
    "henaff",
    "ornn",
    "eurnn",
    "urnn",
    "full-urnn",
    "full-urnn complex",
    "scurnn",
    "exprnn complex",
    "soft-orth",
    "soft-orth penalty",
]
OTHER_BAR = 2.0
YARDSTICK = "torch.nn.RNN"


def build(name: str, hidden: int) -> nn.Module:
    """Return the layer by its row's name."""
    if name == YARDSTICK:
        return nn.RNN(10, hidden)
    registered, options = OPTIONS.get(name, (name, {}))
    return ms.nn.create(registered, input_size=10, hidden_size=hidden, **options)


def training_step(layer: nn.Module, steps: int, batch: int) -> Step:
    """Return a function that makes one training step."""
    width = getattr(layer, "output_size", None) or layer.hidden_size
    head = nn.Linear(width, 10)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(steps, batch, 10, generator=generator)
    labels = torch.randint(10, (steps * batch,), generator=generator)
    optimiser = torch.optim.RMSprop([*layer.parameters(), *head.parameters()], lr=1e-4)
    after_step = getattr(layer, "after_step", lambda: None)

    def step() -> None:
        optimiser.zero_grad()
        output, _ = layer(x)
        F.cross_entropy(head(output).flatten(0, 1), labels).backward()
        optimiser.step()
        after_step()

    return step


def measure(shape: tuple[int, int, int], names: list[str], rounds: int) -> dict[str, float]:
    """Return the ratio of every network at one shape."""
    steps, batch, hidden = shape
    torch.manual_seed(0)
    yardstick = training_step(build(YARDSTICK, hidden), steps, batch)
    found, base = {}, []
    for name in names:
        # In pairs, so that little time lies between the two: a disturbance of some seconds then touches both.
        pair = {YARDSTICK: yardstick, name: training_step(build(name, hidden), steps, batch)}
        times = interleave(pair, rounds, seconds=0.1)
        found[name] = ratios(times, YARDSTICK)[name]
        base += times[YARDSTICK]
    found["yardstick ms"] = 1000 * statistics.median(base)
    return found


def main() -> None:
    """Measure all shapes and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--shape", type=int, nargs=3, action="append", help="T B n; by default all")
    parser.add_argument("--only", nargs="+", help="rows; by default all")
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    shapes = [tuple(shape) for shape in arguments.shape] if arguments.shape else SHAPES
    lines = [
        f"Ratios to torch.nn.RNN(tanh), median of {arguments.rounds} interleaved rounds; in parentheses the bar;",
        f"{machine()}; {datetime.date.today()}.",
        "",
    ]
    data: dict[str, Any] = {"machine": machine(), "date": str(datetime.date.today()), "rounds": arguments.rounds}
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        columns = {}
        for shape in shapes:
            main_rows = [name for name, bars in BARS.items() if shape not in SHAPES or bars[SHAPES.index(shape)]]
            names = main_rows + (OTHERS if shape == (220, 128, 128) else [])
            names = [name for name in names if not arguments.only or name in arguments.only]
            columns[shape] = measure(shape, names, arguments.rounds)
            print(threads, shape, {name: round(value, 3) for name, value in columns[shape].items()}, flush=True)
        data[f"{threads} threads"] = {str(shape): column for shape, column in columns.items()}
        lines += table(columns, threads)
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        write("step_time", text, data, arguments.write)


def bar_of(name: str, shape: tuple[int, ...]) -> float | None:
    """Return the ratio that a network is to reach on one thread."""
    if shape not in SHAPES:
        return None
    return BARS[name][SHAPES.index(shape)] if name in BARS else OTHER_BAR


def table(columns: dict[tuple[int, ...], dict[str, float]], threads: int) -> list[str]:
    """Return the lines of one table."""
    heads = [f"({', '.join(map(str, shape))})" for shape in columns]
    lines = [
        f"### {threads} thread{'s' if threads > 1 else ''}",
        "",
        "| network | " + " | ".join(heads) + " |",
        "|---|" + "---|" * len(heads),
    ]
    lines.append(
        "| torch.nn.RNN, ms | " + " | ".join(f"{column['yardstick ms']:.1f}" for column in columns.values()) + " |"
    )
    for name in [*BARS, *OTHERS]:
        if not any(name in column for column in columns.values()):
            continue
        cells = []
        for shape, column in columns.items():
            bar = bar_of(name, shape) if threads == 1 else None
            cells.append((f"{column[name]:.2f}" + (f" ({bar:.2f})" if bar else "")) if name in column else "-")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, ""]


if __name__ == "__main__":
    main()
