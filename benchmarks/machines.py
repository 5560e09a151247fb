"""Workers side by side: how much faster two are than one, and what handing out a job costs.

Every worker does one run, a training of one network on one thread, of about as many seconds as asked for; two are as
many times faster as they do more runs in the same time. Where a machine does other work too, the ratio says little:
what others took of the cores is printed beside it, and the processor time of a run says whether two workers are in each
other's way (memory, caches). `--workers` and `--counts` measure a part, and leave what was written of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
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

MAKERS: dict[str, Maker] = {"processes": processes, "Ray": ray}


@dataclass(frozen=True)
class Timing:
    """A run on each worker: elapsed seconds, processor seconds of a run, and the share of the cores others took."""

    elapsed: float
    of_run: float
    others: float


def plan(runs: int, iterations: int) -> list[RunSpec]:
    """Return trainings that differ in their seeds."""
    return [RunSpec("fit", COMMON | {"seeds": [seed], "iterations": iterations}) for seed in range(runs)]


def step_seconds(few: int = 20, many: int = 120) -> float:
    """Return the processor seconds of a step, without what a process does once."""
    took = {}
    for iterations in (few, few, many):
        with tempfile.TemporaryDirectory() as folder:
            begin = time.process_time()
            list(execute(plan(1, iterations), Path(folder)))
            took[iterations] = time.process_time() - begin
    return (took[many] - took[few]) / (many - few)


def timed(maker: Maker, count: int, iterations: int) -> Timing:
    """Return how long a run on each of so many workers takes, from their first to their last moment."""
    specs = plan(count, iterations)
    with maker(count) as workers, tempfile.TemporaryDirectory() as warm, tempfile.TemporaryDirectory() as folder:
        list(execute(plan(count, 1), Path(warm), workers=workers))  # every worker imports what it needs
        before, begin = busy(), time.perf_counter()
        done = list(execute(specs, Path(folder), workers=workers))
        elapsed, taken = time.perf_counter() - begin, busy() - before
        assert len(done) == len(specs)
        own = sum(outcome.processor_seconds or 0.0 for outcome in done)
        return Timing(elapsed, own / len(specs), max(0.0, taken - own) / (elapsed * (os.cpu_count() or 1)))


def busy() -> float:
    """Return the processor seconds that the machine has worked since its start."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0))


def overhead(maker: Maker, jobs: int) -> float:
    """Return the seconds of an empty job beyond the first, whose worker has to begin."""
    with maker(1) as workers:
        answers = workers.run(EMPTY, [{}] * (jobs + 1))
        next(answers)
        begin = time.perf_counter()
        assert len(list(answers)) == jobs
        return (time.perf_counter() - begin) / jobs


def row(name: str, found: dict[str, Any]) -> str:
    """Return the line of a kind of workers."""
    one, two = (Timing(**found[count]) for count in ("1", "2"))
    return (
        f"| {name} | {one.elapsed:.1f} | {two.elapsed:.1f} | {2 * one.elapsed / two.elapsed:.2f} | {one.of_run:.1f}, "
        f"{two.of_run:.1f} | {one.others:.0%}, {two.others:.0%} | {1000 * found['overhead']:.1f} |"
    )


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of one run")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--workers", nargs="+", choices=MAKERS, default=list(MAKERS))
    parser.add_argument("--counts", nargs="+", choices=("1", "2"), default=["1", "2"])
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    written = arguments.write and arguments.write / "machines.json"
    data: dict[str, Any] = json.loads(written.read_text()) if written and written.exists() else {}
    iterations = data.setdefault("iterations", max(1, round(arguments.seconds / step_seconds())))
    for name in arguments.workers:
        found = data.setdefault(name, {})
        for count in arguments.counts:
            found[count] = asdict(timed(MAKERS[name], int(count), iterations))
        found.setdefault("overhead", overhead(MAKERS[name], arguments.jobs))
    whole = [name for name in MAKERS if {"1", "2"} <= set(data.get(name, ()))]
    lines = [
        f"{machine()}; runs of {iterations:,} steps. Of a run: its processor time with 1 and with 2 workers.",
        "",
        "| workers | 1 run by 1, s | 2 runs by 2, s | ratio | of a run, s | others took of cores | empty job, ms |",
        "|---|---|---|---|---|---|---|",
        *(row(name, data[name]) for name in whole),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        write("machines", text, data, arguments.write)


if __name__ == "__main__":
    main()
