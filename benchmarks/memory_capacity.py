"""Time of memory capacity as a function of units, samples and lags, with fitted exponents.

Three costs are stated: O(N^3 + N^2 L) of the exact value from eigenvalues (with one exact rank modulo a prime), about
O(N^4) of the exact characteristic polynomial, and O(T N^2 + T N M) of an estimate from T samples and M targets. Each
sweep is timed in interleaved rounds, in processor seconds, which other programs on the machine change little; the
exponent is the slope over its larger half. Run ``python benchmarks/memory_capacity.py`` for the table in
docs/benchmarks.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import machine, write

import mnemoscope as ms
from mnemoscope.measures.capacity.memory import memory_capacity
from mnemoscope.theory.formulas.capacity import reachable_polynomial

Sweep = dict[int, Callable[[], object]]


def matrices(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a random stable network."""
    random = np.random.default_rng(size)
    W = random.normal(size=(size, size))
    return W * (0.95 / np.abs(np.linalg.eigvals(W)).max()), random.normal(size=size)


def sweeps() -> dict[str, tuple[str, Sweep]]:
    """Return what is timed: by name, what is swept over and the calls."""
    torch.manual_seed(0)
    lstm = ms.nn.create("lstm", input_size=1, hidden_size=64)
    pair = matrices(64)
    return {
        "exact value, eigenvalues (N > 64)": (
            "N",
            {size: partial(memory_capacity, matrices(size), lag=200) for size in (100, 200, 400, 800)},
        ),
        "exact characteristic polynomial": (
            "N",
            {size: partial(reachable_polynomial, *matrices(size)) for size in (25, 50, 100, 200)},
        ),
        "estimate, N = 64, lag 100": (
            "T",
            {
                samples: partial(memory_capacity, pair, exact=False, lag=100, samples=samples)
                for samples in (16384, 32768, 65536, 131072)
            },
        ),
        "estimate, T = 16384, lag 20": (
            "N",
            {
                size: partial(memory_capacity, matrices(size), exact=False, lag=20, samples=16384)
                for size in (32, 64, 128, 256)
            },
        ),
        "quick look at an LSTM of 64 units": (
            "T",
            {8192: partial(memory_capacity, lstm, lag=100)},
        ),
    }


def processor_seconds(sweep: Sweep, rounds: int) -> dict[int, float]:
    """Return the median over rounds of what each call takes of the processor."""
    found: dict[int, list[float]] = {size: [] for size in sweep}
    for _ in range(rounds):
        for size, call in sweep.items():
            start = time.process_time()
            call()
            found[size].append(time.process_time() - start)
    return {size: statistics.median(each) for size, each in found.items()}


def exponent(times: dict[int, float]) -> float | None:
    """Return the slope of log time over log size in the larger half, None for a single size."""
    sizes = sorted(times)[len(times) // 2 - 1 :] if len(times) > 1 else []
    if not sizes:
        return None
    return float(np.polyfit(np.log(sizes), np.log([times[size] for size in sizes]), 1)[0])


def main() -> None:
    """Time all sweeps and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rounds = f"medians of {arguments.rounds} interleaved rounds, one thread"
    where = f"{machine()}; {datetime.date.today()}"
    lines = [
        f"Processor seconds, {rounds}, and the exponent over the larger half of each sweep; {where}.",
        "",
        "| what | over | sizes | seconds | exponent |",
        "|---|---|---|---|---|",
    ]
    data: dict[str, Any] = {"machine": machine(), "date": str(datetime.date.today())}
    for name, (axis, sweep) in sweeps().items():
        times = processor_seconds(sweep, arguments.rounds)
        slope = exponent(times)
        data[name] = {"seconds": times, "exponent": slope}
        seconds = ", ".join(f"{each:.2g}" for each in times.values())
        shown = "-" if slope is None else f"{slope:.2f}"
        lines.append(f"| {name} | {axis} | {', '.join(map(str, times))} | {seconds} | {shown} |")
        print(lines[-1], flush=True)
    if arguments.write:
        write("memory_capacity", "\n".join(lines) + "\n", data, arguments.write)


if __name__ == "__main__":
    main()
