"""Time of ``mnemoscope profile NETWORK`` with n = 64, quick and default: in this process, and as a process of its own.

The bars are 15 seconds for ``--quick`` and 60 for the default, on two cores. Beside the time on the clock stands the
time that the processor spent, which a busy machine does not stretch. Between the runs the yardstick runs, a process
that imports torch and trains a torch.nn.LSTM of the same size. Run ``python benchmarks/profiles.py --write
docs/benchmarks`` for the table; ``--networks all`` takes every recurrent network. (The file is not called profile.py:
that would stand before Python's own module of this name.)
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import machine, write
from quick import YARDSTICK, Run, timed

HIDDEN = 64
BARS = {"quick": 15.0, "default": 60.0}
NETWORKS = ("lstm", "nnrnn", "rac", "2rnn", "eurnn")


def as_process(name: str, mode: str, threads: int) -> Run:
    """Run the command in an empty folder, where nothing can be taken up."""
    with tempfile.TemporaryDirectory() as folder:
        page = str(Path(folder, "page.html"))
        command = ["-m", "mnemoscope", "profile", name, "--hidden", str(HIDDEN), "--html", page]
        return timed([*command, *(["--quick"] if mode == "quick" else [])], threads)


def in_process(name: str, mode: str) -> tuple[float, float, dict[str, float]]:
    """Return seconds on the clock and of the processor, and the seconds of every part."""
    from mnemoscope.profiles import profile

    wall, processor = time.perf_counter(), time.process_time()
    found = profile(name, hidden_size=HIDDEN, quick=mode == "quick")
    spent = time.perf_counter() - wall, time.process_time() - processor
    return *spent, {part: entry["seconds"] for part, entry in found.rows[0]["parts"].items()}


def measured(name: str, mode: str, rounds: int, threads: int) -> dict[str, Any]:
    """Return the times of one network, each round after the yardstick."""
    yardstick, whole, inner = [], [], []
    for _ in range(rounds):
        yardstick.append(timed(["-c", YARDSTICK], threads).wall)
        whole.append(as_process(name, mode, threads))
        inner.append(in_process(name, mode))
    return {
        "network": name,
        "mode": mode,
        "process": [run.wall for run in whole],
        "process_cpu": [run.processor for run in whole],
        "inner": [one[0] for one in inner],
        "inner_cpu": [one[1] for one in inner],
        "parts": [one[2] for one in inner],
        "yardstick": yardstick,
    }


def line(found: dict[str, Any]) -> str:
    """Return one line of the table."""
    middle = {key: statistics.median(found[key]) for key in ("process", "process_cpu", "inner", "inner_cpu")}
    slowest = max(found["parts"][0], key=lambda part: found["parts"][0][part])
    longest = statistics.median(one[slowest] for one in found["parts"])
    ratio = statistics.median(a / b for a, b in zip(found["process"], found["yardstick"], strict=True))
    bar = BARS[found["mode"]]
    kept = "yes" if max(found["process"]) < bar else "no"
    cells = [found["network"], found["mode"]]
    cells += [f"{middle[key]:.1f} ({middle[f'{key}_cpu']:.1f})" for key in ("process", "inner")]
    cells += [f"{slowest} {longest:.1f}", f"{ratio:.1f}", f"{bar:.0f}: {kept}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure all networks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--modes", nargs="+", choices=list(BARS), default=list(BARS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    import torch

    import mnemoscope as ms

    torch.set_num_threads(arguments.threads)
    names = ms.nn.names("recurrent") if arguments.networks == ["all"] else arguments.networks
    found = []
    for mode in arguments.modes:
        for name in names:
            found.append(measured(name, mode, arguments.rounds, arguments.threads))
            print(line(found[-1]), file=sys.stderr, flush=True)
    busy = f"{os.getloadavg()[1]:.1f} processes at work"
    setting = f"OMP_NUM_THREADS={arguments.threads}, median of {arguments.rounds} rounds, {busy}"
    text = "\n".join(
        [
            f"Profiles with n = {HIDDEN} and one input, {setting}; {machine()}; {datetime.date.today()}.",
            "",
            "Seconds on the clock, in brackets of the processor. The command as a process includes starting Python,",
            "importing torch, reading the references and writing the page; the bar is kept when every round keeps it.",
            "",
            "| network | mode | as a process | in a process | slowest part | ratio to the yardstick | bar |",
            "|---|---|---|---|---|---|---|",
            *map(line, found),
            "",
            "The yardstick: a process that imports torch and trains torch.nn.LSTM for 50 steps, T = 200, batch of 16.",
            "",
        ]
    )
    print(text)
    data = {"machine": machine(), "date": str(datetime.date.today()), "threads": arguments.threads, "runs": found}
    if arguments.write:
        write("profile", text, data, arguments.write)
    else:
        print(json.dumps(data)[:200], file=sys.stderr)


if __name__ == "__main__":
    main()
