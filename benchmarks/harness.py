"""Ratios of times, measured side by side: what a shared machine can say of speed."""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

__all__ = ["interleave", "machine", "ratios", "write"]

Step = Callable[[], object]


def interleave(
    steps: dict[str, Step], rounds: int, seconds: float = 0.25, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Time every step in every round, one after the other, and return seconds per call by round.

    In each round a step is called for about `seconds`, at least twice, so that all see the same disturbances. What runs
    on one thread is timed on a busy machine by the `clock` ``time.process_time``.
    """
    calls = {}
    for name, step in steps.items():
        step()
        start = clock()
        step()
        calls[name] = max(2, round(seconds / max(clock() - start, 1e-9)))
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            start = clock()
            for _ in range(calls[name]):
                step()
            times[name].append((clock() - start) / calls[name])
    return times


def ratios(times: dict[str, list[float]], yardstick: str) -> dict[str, float]:
    """Return the median over rounds of each step's time over the yardstick's in the same round."""
    base = times[yardstick]
    return {name: statistics.median(a / b for a, b in zip(own, base, strict=True)) for name, own in times.items()}


def machine() -> str:
    """Name the processor, the number of cores and torch's version."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = f"{names[0]}, {len(names)} cores" if names else model
    return f"{model}, torch {torch.__version__}, Python {platform.python_version()}"


def write(name: str, table: str, data: object, folder: Path) -> None:
    """Write a benchmark's table (Markdown) and numbers (JSON) into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(table)
    (folder / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
