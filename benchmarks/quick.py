"""Time of ``mnemoscope measure all lstm --quick`` with n = 64: every measure, the sum, and the whole command.

The command runs as a process of its own, as a user starts it; between two runs of it the yardstick runs, a process
that imports torch and trains a torch.nn.LSTM of the same size. Beside the time on the clock stands the time that the
processor spent, which a busy machine does not stretch. Run ``python benchmarks/quick.py`` for the table in
docs/benchmarks.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import machine, write

HIDDEN, BAR = 64, 15.0
COMMAND = ["-m", "mnemoscope", "measure", "all", "lstm", "--hidden", str(HIDDEN), "--quick", "--json"]
YARDSTICK = f"""
import torch
layer = torch.nn.LSTM(1, {HIDDEN})
x = torch.randn(200, 16, 1)
optimiser = torch.optim.RMSprop(layer.parameters())
for _ in range(50):
    optimiser.zero_grad()
    layer(x)[0].square().mean().backward()
    optimiser.step()
"""


@dataclass
class Run:
    """What one process took, in seconds on the clock and of the processor, and what it printed."""

    wall: float
    processor: float
    printed: str


def timed(arguments: list[str], threads: int) -> Run:
    """Run a Python process."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    before, begin = os.times(), time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, env=environment)
    wall, after = time.perf_counter() - begin, os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(wall, spent, done.stdout)


def table(measures: list[dict[str, float]], whole: list[Run], yardstick: list[Run]) -> list[str]:
    """Return the lines of the table."""

    def both(runs: list[Run]) -> str:
        wall, processor = (statistics.median(getattr(run, name) for run in runs) for name in ("wall", "processor"))
        return f"{wall:.2f} | {processor:.2f}"

    total = statistics.median(sum(one.values()) for one in measures)
    return [
        "| what | seconds | of the processor |",
        "|---|---|---|",
        *(f"| {name} | {statistics.median(one[name] for one in measures):.2f} | |" for name in measures[0]),
        f"| all of them (bar: {BAR:.0f}) | {total:.2f} | |",
        f"| the command as a process | {both(whole)} |",
        f"| the yardstick: torch.nn.LSTM, 50 training steps, T = 200, batch of 16 | {both(yardstick)} |",
    ]


def main() -> None:
    """Run both in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    whole: list[Run] = []
    yardstick: list[Run] = []
    measures: list[dict[str, float]] = []
    for _ in range(arguments.rounds):
        yardstick.append(timed(["-c", YARDSTICK], arguments.threads))
        whole.append(timed(COMMAND, arguments.threads))
        measures.append(json.loads(whole[-1].printed)["seconds"])
        print({name: round(value, 2) for name, value in {**measures[-1], "all": whole[-1].wall}.items()}, flush=True)
    ratios = {
        name: statistics.median(getattr(a, name) / getattr(b, name) for a, b in zip(whole, yardstick, strict=True))
        for name in ("wall", "processor")
    }
    busy = f"{os.getloadavg()[1]:.1f} processes at work"
    setting = f"OMP_NUM_THREADS={arguments.threads}, median of {arguments.rounds} rounds, {busy}"
    lines = [
        f"The quick set on an LSTM with n = {HIDDEN} and one input, {setting}; {machine()}; {datetime.date.today()}.",
        "",
        *table(measures, whole, yardstick),
        "",
        f"Ratio of the command to the yardstick: {ratios['wall']:.2f} (of the processor {ratios['processor']:.2f}).",
        "",
    ]
    text = "\n".join(lines)
    print(text)
    data: dict[str, Any] = {"machine": machine(), "date": str(datetime.date.today()), "threads": arguments.threads}
    data |= {"measures": measures, "ratios": ratios}
    data |= {"whole": [run.wall for run in whole], "yardstick": [run.wall for run in yardstick]}
    if arguments.write:
        write("quick", text, data, arguments.write)


if __name__ == "__main__":
    main()
