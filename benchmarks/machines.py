"""Workers side by side: how much faster two are than one, and what handing out a job costs.

Runs are trainings of one network, one thread each, of about as many seconds as asked for. On a machine that does other
work as well the ratio says little: the load average is printed beside it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import machine, write

from mnemoscope.machines.processes import Processes
from mnemoscope.machines.workers import Workers
from mnemoscope.studies.machinery import RunSpec, execute

EMPTY = "operator:is_"
"""Work that is done at once: whether the job is the function that it tells by."""

COMMON: dict[str, Any] = {
    "network": "lstm",
    "hidden_size": 64,
    "task": "copying",
    "task_settings": {"delay": 50},
    "batch_size": 32,
    "test_size": 32,
    "lr": 1e-3,
    "layout": "sequential",
}


@contextmanager
def processes(count: int) -> Iterator[Workers]:
    """Processes of this machine."""
    yield Processes(count)


@contextmanager
def ray(count: int) -> Iterator[Workers]:
    """A new Ray cluster of this machine."""
    import ray as cluster

    from mnemoscope.machines.cluster import RayWorkers

    cluster.init(address="local", num_cpus=count, include_dashboard=False, log_to_driver=False)
    with RayWorkers("local") as workers:
        yield workers


Maker = Callable[[int], Any]


def plan(runs: int, iterations: int) -> list[RunSpec]:
    """Return trainings that differ in their seeds."""
    return [RunSpec("fit", COMMON | {"seeds": [seed], "iterations": iterations}) for seed in range(runs)]


def warm(workers: Workers) -> None:
    """Let every worker import what it needs."""
    with tempfile.TemporaryDirectory() as folder:
        list(execute(plan(workers.count, 1), Path(folder), workers=workers))


def seconds_of(maker: Maker, count: int, specs: list[RunSpec]) -> float:
    """Return how long runs take on so many workers, from their first to their last moment."""
    with maker(count) as workers, tempfile.TemporaryDirectory() as folder:
        warm(workers)
        begin = time.perf_counter()
        done = list(execute(specs, Path(folder), workers=workers))
        assert len(done) == len(specs)
        return time.perf_counter() - begin


def overhead(maker: Maker, jobs: int) -> float:
    """Return the seconds of an empty job beyond the first, whose worker has to begin."""
    with maker(1) as workers:
        answers = workers.run(EMPTY, [{}] * (jobs + 1))
        next(answers)
        begin = time.perf_counter()
        assert len(list(answers)) == jobs
        return (time.perf_counter() - begin) / jobs


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of one run")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    trial = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        list(execute(plan(1, 40), Path(folder)))
    step = (time.process_time() - trial) / 40
    specs = plan(arguments.runs, max(1, round(arguments.seconds / step)))
    lines = [f"{machine()}; load average {os.getloadavg()[0]:.1f}.", ""]
    lines += ["| workers | 1, s | 2, s | ratio | an empty job, ms |", "|---|---|---|---|---|"]
    data: dict[str, Any] = {}
    for name, maker in {"processes": processes, "Ray": ray}.items():
        one, two = (seconds_of(maker, count, specs) for count in (1, 2))
        empty = overhead(maker, arguments.jobs)
        data[name] = {"one": one, "two": two, "ratio": one / two, "overhead": empty, "runs": len(specs)}
        lines.append(f"| {name} | {one:.1f} | {two:.1f} | {one / two:.2f} | {1000 * empty:.1f} |")
        print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        write("machines", text, data, arguments.write)


if __name__ == "__main__":
    main()
