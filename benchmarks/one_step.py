"""Time of one call of one step, as reinforcement learning and decoding make it, as a ratio to torch.nn.RNN.

128 units, 10 inputs, batch 1, float32, without gradients and within ``layer.cached()``, the state handed on. Run
``python benchmarks/one_step.py`` for the table in docs/benchmarks.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import time
from pathlib import Path

import torch
from harness import Step, interleave, machine, ratios, write
from step_time import YARDSTICK, build
from torch import nn

BAR = 2.0
NAMES = ["exprnn", "scornn", "nnrnn"]
HIDDEN = 128


def one_step(layer: nn.Module) -> Step:
    """Return a function that hands one input and the last state to a layer."""
    x, hx = torch.randn(1, 1, 10), torch.zeros(1, 1, HIDDEN)

    def step() -> None:
        nonlocal hx
        hx = layer(x, hx)[1]

    return step


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found: dict[str, dict[str, float]] = {}
    with torch.no_grad():
        for name in NAMES:
            layer = build(name, HIDDEN)
            pair = {YARDSTICK: one_step(build(YARDSTICK, HIDDEN)), name: one_step(layer)}
            compared = ratios(interleave(pair, arguments.rounds, seconds=0.05, clock=time.process_time), YARDSTICK)[
                name
            ]
            with layer.cached():
                times = interleave(pair, arguments.rounds, seconds=0.05, clock=time.process_time)
            inside = ratios(times, YARDSTICK)[name]
            yardstick = 1e6 * statistics.median(times[YARDSTICK])
            found[name] = {"cached": inside, "no_grad": compared, "torch.nn.RNN us": yardstick}
    lines = [
        f"Ratios of processor time to torch.nn.RNN(tanh), 1 thread, median of {arguments.rounds} interleaved rounds;",
        f"the bar is {BAR:g}; within `cached()` the three run the same code: their spread is the machine's;",
        f"{machine()}; {datetime.date.today()}.",
        "",
        "| network | within cached() | under no_grad alone | torch.nn.RNN, us |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {row['cached']:.2f} | {row['no_grad']:.2f} | {row['torch.nn.RNN us']:.0f} |"
        for name, row in found.items()
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        data = {"machine": machine(), "date": str(datetime.date.today()), "rounds": arguments.rounds, "ratios": found}
        write("one_step", text, data, arguments.write)


if __name__ == "__main__":
    main()
