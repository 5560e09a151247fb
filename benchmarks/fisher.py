"""Processor time of Fisher memory of vector networks: as a function of N and of the horizon, and for Table 5.

Stated: O(N^3 log T + N^2 K) for K lags. The sweep over N has a finite horizon of 64 steps, so that every size takes the
same number of doublings and lags; the sweep over T shows that the horizon costs a logarithm (its curve is cut to 64
lags). Exponents are slopes over the larger half of a sweep. Run ``python benchmarks/fisher.py`` for the table in
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
from harness import machine, write

from mnemoscope.measures.fisher.vector import fisher_memory
from mnemoscope.theory import TABLE_5, kerg_matrix

Sweep = dict[int, Callable[[], object]]


def general(size: int, radius: float, **options: Any) -> Callable[[], object]:
    """Return the measure on a Gaussian matrix of this spectral radius."""
    random = np.random.default_rng(size)
    W = random.standard_normal((size, size))
    W *= radius / np.abs(np.linalg.eigvals(W)).max()
    return partial(fisher_memory, W, random.standard_normal(size), **options)


def table_5() -> None:
    """Compute all twelve rows."""
    for row in TABLE_5:
        fisher_memory(kerg_matrix(100, *row), np.eye(100)[0])


def ill_conditioned(size: int) -> Callable[[], object]:
    """Return the measure on Table 5's kind of matrix, which float64 alone cannot do."""
    return partial(fisher_memory, kerg_matrix(size, 1.05, 0.005, 0.2), np.eye(size)[0])


def sweeps() -> dict[str, Sweep]:
    """Return what is timed, by N or by the length in steps."""
    return {
        "N, float64, horizon 64": {n: general(n, 0.97, horizon=64) for n in (125, 250, 500, 1000)},
        "N, float64, infinite horizon": {n: general(n, 0.97) for n in (125, 250, 500, 1000)},
        "1/(1 - radius) at N = 200, 64 lags": {t: general(200, 1 - 1 / t, lags=64) for t in (16, 256, 4096)},
        "N, with extended precision": {n: ill_conditioned(n) for n in (25, 50, 100, 200)},
        "all rows of Table 5 (N = 100)": {12: table_5},
    }


def processor_seconds(sweep: Sweep, rounds: int) -> dict[int, float]:
    """Return the median over rounds of what each call takes of the processor."""
    found: dict[int, list[float]] = {size: [] for size in sweep}
    for _ in range(rounds):
        for size, one in sweep.items():
            start = time.process_time()
            one()
            found[size].append(time.process_time() - start)
    return {size: statistics.median(times) for size, times in found.items()}


def exponent(times: dict[int, float]) -> str:
    """Return the slope of log time over log size, over the larger half of the sizes."""
    sizes = sorted(times)[len(times) // 2 - 1 :] if len(times) > 2 else []
    if not sizes:
        return "-"
    slope, _ = np.polyfit(np.log(sizes), np.log([times[size] for size in sizes]), 1)
    return f"{slope:.2f}"


def main() -> None:
    """Measure all sweeps and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    rounds, where = f"medians of {arguments.rounds} rounds, one thread", f"{machine()}; {datetime.date.today()}"
    lines = [
        f"Processor seconds, {rounds}, and the exponent over the larger half of each sweep; {where}.",
        "",
        "| over | sizes | seconds | exponent |",
        "|---|---|---|---|",
    ]
    data: dict[str, Any] = {"machine": machine(), "date": str(datetime.date.today())}
    for name, sweep in sweeps().items():
        times = processor_seconds(sweep, arguments.rounds)
        sizes, seconds = ", ".join(map(str, times)), ", ".join(f"{one:.2g}" for one in times.values())
        lines.append(f"| {name} | {sizes} | {seconds} | {exponent(times)} |")
        data[name] = times
        print(lines[-1], flush=True)
    if arguments.write:
        write("fisher", "\n".join(lines) + "\n", data, arguments.write)


if __name__ == "__main__":
    main()
