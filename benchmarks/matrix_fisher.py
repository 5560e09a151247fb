"""Processor time of Fisher memory of matrix networks as a function of the state's side N, with fitted exponents.

Stated for K lags: O(N^3 + N^2 K) where U and V are normal, O(N^4) per doubling where one is, and in general O(N^6) per
doubling of the square root (up to N = 32), then O(N^6) once and O(N^5) per doubling. The horizon is 64 steps, so that
every size takes the same number of doublings and lags. Exponents are slopes over the larger half of each sweep. Run
``python benchmarks/matrix_fisher.py`` for the table in docs/benchmarks.
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
import scipy.linalg
from harness import machine, write

from mnemoscope.measures.fisher.engine import matrix_memory
from mnemoscope.measures.fisher.published import published

HORIZON = 64
Sweep = dict[int, Callable[[], object]]


def general(random: np.random.Generator, size: int) -> np.ndarray:
    """Return a Gaussian matrix of spectral radius 0.97."""
    found = random.standard_normal((size, size))
    return np.asarray(found * (0.97 / np.abs(np.linalg.eigvals(found)).max()))


def normal(random: np.random.Generator, size: int) -> np.ndarray:
    """Return a multiple of an orthogonal matrix."""
    return np.asarray(0.97 * scipy.linalg.qr(random.standard_normal((size, size)))[0])


def call(left: Any, right: Any, size: int, weights: tuple[float, ...] = ()) -> Callable[[], object]:
    """Return the exact form of a random network, as the measures compute it."""
    random = np.random.default_rng(size)
    U, V, W = left(random, size), right(random, size), random.standard_normal((size, size))
    return partial(matrix_memory, U, V, W, weights, (1, 2) if weights else (1,), HORIZON)


def separable(size: int) -> Callable[[], object]:
    """Return the published form of a random network."""
    random = np.random.default_rng(size)
    return partial(published, general(random, size), general(random, size), random.standard_normal((size, size)), 64)


def sweeps() -> dict[str, Sweep]:
    """Return what is timed."""
    return {
        "exact, U and V normal": {n: call(normal, normal, n) for n in (16, 32, 64, 128, 256)},
        "exact, U normal": {n: call(normal, general, n) for n in (12, 16, 24, 32, 48, 64)},
        "exact, general, square root": {n: call(general, general, n) for n in (12, 16, 20, 24, 32)},
        "exact, general, covariance": {n: call(general, general, n) for n in (33, 40, 48, 64)},
        "published, general": {n: separable(n) for n in (12, 16, 24, 32, 48)},
        "queue of one, U and V normal": {n: call(normal, normal, n, (0.02,)) for n in (16, 32, 64, 128)},
        "queue of one, general": {n: call(general, general, n, (0.02,)) for n in (8, 12, 16, 20)},
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


def exponent(times: dict[int, float]) -> float:
    """Return the slope of log time over log size, over the larger half of the sizes."""
    sizes = sorted(times)[len(times) // 2 - 1 :]
    slope, _ = np.polyfit(np.log(sizes), np.log([times[size] for size in sizes]), 1)
    return float(slope)


def main() -> None:
    """Measure all sweeps and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    rounds = f"medians of {arguments.rounds} rounds, one thread, horizon {HORIZON}"
    where = f"{machine()}; {datetime.date.today()}"
    lines = [
        f"Processor seconds, {rounds}, and the exponent over the larger half of each sweep; {where}.",
        "",
        "| what | N | seconds | exponent |",
        "|---|---|---|---|",
    ]
    data: dict[str, Any] = {"machine": machine(), "date": str(datetime.date.today()), "horizon": HORIZON}
    for name, sweep in sweeps().items():
        times = processor_seconds(sweep, arguments.rounds)
        sizes, seconds = ", ".join(map(str, times)), ", ".join(f"{one:.2g}" for one in times.values())
        lines.append(f"| {name} | {sizes} | {seconds} | {exponent(times):.2f} |")
        data[name] = times
        print(lines[-1], flush=True)
    if arguments.write:
        write("matrix_fisher", "\n".join(lines) + "\n", data, arguments.write)


if __name__ == "__main__":
    main()
