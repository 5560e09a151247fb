"""Time of the measure of resources, and how it grows with the longest sequence and with the units.

It streams the longest sequence a few times through `step` and makes one training pass over every length, so that its
time is a number of steps: proportional to T, and to n^2 once the products outweigh the calls. The yardstick is one
stream of the longest sequence. Run ``python benchmarks/resources.py`` for the table in docs/benchmarks.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import Step, machine, ratios, write

import mnemoscope as ms
from mnemoscope.measures.cost.network import resources
from mnemoscope.measures.cost.step import stream

LENGTHS, UNITS = (256, 512, 1024, 2048), (64, 256, 512, 1024)
FIXED_LENGTH, FIXED_UNITS, REPEATS = 256, 64, 5


def measured(layer: Any, longest: int) -> Step:
    """Return the measure up to a length."""
    return partial(resources, layer, lengths=(longest // 8, longest // 4, longest // 2, longest), repeats=REPEATS)


def streamed(layer: Any, steps: int) -> Step:
    """Return one stream."""
    return partial(stream, layer, torch.randn(steps, 1, 1))


def row(steps: int, units: int, rounds: int) -> tuple[float, float]:
    """Return seconds of the processor, which a busy machine does not stretch, and their ratio to those of a stream."""
    torch.manual_seed(0)
    layer = ms.nn.LSTM(1, units)
    work = {"stream": streamed(layer, steps), "measure": measured(layer, steps)}
    times: dict[str, list[float]] = {name: [] for name in work}
    for name in [*work] * (rounds + 1):
        begin = time.process_time()
        work[name]()
        times[name].append(time.process_time() - begin)
    times = {name: own[1:] for name, own in times.items()}  # the first round warms up
    return statistics.median(times["measure"]), ratios(times, "stream")["measure"]


def slope(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """Return the exponent over the two largest sizes, where overhead weighs least."""
    return float(np.diff(np.log(seconds[-2:]))[0] / np.diff(np.log(sizes[-2:]))[0])


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    setting = f"batch of 1, {REPEATS} repeats, 1 thread, median of {arguments.rounds} rounds"
    lines = [
        f"`resources` of an LSTM, {setting}; {machine()}; {datetime.date.today()}.",
        "",
        "Stated cost: (repeats + 2) T steps, so about 7 streams, T^1, and n^2 where products outweigh calls.",
        "",
        "| T | n | seconds of the processor | ratio to one stream |",
        "|---|---|---|---|",
    ]
    data: dict[str, Any] = {"machine": machine(), "date": str(datetime.date.today())}
    exponents = {}
    for name, sizes in (("T", LENGTHS), ("n", UNITS)):
        seconds = []
        for size in sizes:
            steps, units = (size, FIXED_UNITS) if name == "T" else (FIXED_LENGTH, size)
            found, ratio = row(steps, units, arguments.rounds)
            seconds.append(found)
            lines.append(f"| {steps} | {units} | {found:.3f} | {ratio:.1f} |")
            print(lines[-1], flush=True)
        exponents[name] = slope(sizes, seconds)
        data[name] = {"sizes": sizes, "seconds": seconds, "exponent": exponents[name]}
    lines += ["", f"Exponents over the two largest sizes: T^{exponents['T']:.2f}, n^{exponents['n']:.2f}."]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        write("resources", text, data, arguments.write)


if __name__ == "__main__":
    main()
