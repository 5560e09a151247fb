"""Time of ``mnemoscope measure all lstm --quick`` with n = 64: every measure, the sum, and the whole command.

The command runs as a process of its own, as a user starts it, with two threads; between two runs of it the yardstick
runs, a process that imports torch and trains a torch.nn.LSTM of the same size. Run ``python benchmarks/quick.py`` for the
table in docs/benchmarks.
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


def timed(arguments: list[str]) -> tuple[float, str]:
    """Return the seconds of a Python process and what it printed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, env=environment)
    return time.perf_counter() - begin, done.stdout


def main() -> None:
    """Run both in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    whole, yardstick, measures = [], [], []
    for _ in range(arguments.rounds):
        yardstick.append(timed(["-c", YARDSTICK])[0])
        seconds, printed = timed(COMMAND)
        whole.append(seconds)
        measures.append(json.loads(printed)["seconds"])
        print({name: round(value, 2) for name, value in {**measures[-1], "all": seconds}.items()}, flush=True)
    medians = {name: statistics.median(one[name] for one in measures) for name in measures[0]}
    total = statistics.median(sum(one.values()) for one in measures)
    ratio = statistics.median(a / b for a, b in zip(whole, yardstick, strict=True))
    text = "\n".join(
        [
            f"The quick set on an LSTM with n = {HIDDEN} and one input, 2 threads, median of {arguments.rounds} "
            f"rounds; {machine()}; {datetime.date.today()}.",
            "",
            "| measure | seconds |",
            "|---|---|",
            *(f"| {name} | {seconds:.2f} |" for name, seconds in medians.items()),
            f"| all of them (bar: {BAR:.0f}) | {total:.2f} |",
            f"| the command as a process | {statistics.median(whole):.2f} |",
            f"| the yardstick: torch.nn.LSTM, 50 training steps, T = 200, batch of 16 | "
            f"{statistics.median(yardstick):.2f} |",
            "",
            f"The command takes {ratio:.1f} times the yardstick.",
            "",
        ]
    )
    print(text)
    data: dict[str, Any] = {"machine": machine(), "date": str(datetime.date.today())}
    data |= {"measures": measures, "whole": whole, "yardstick": yardstick, "ratio": ratio}
    if arguments.write:
        write("quick", text, data, arguments.write)


if __name__ == "__main__":
    main()
