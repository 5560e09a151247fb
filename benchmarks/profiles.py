"""Time of ``mnemoscope profile NETWORK``: as a process of its own and in this one, and of the sizes that people use.

By default n = 64, quick and default: the bars are 15 seconds for ``--quick`` and 60 for the default, on two cores.
Beside the time on the clock stands the time that the processor spent, which a busy machine does not stretch. Between
the runs the yardstick runs, a process that imports torch and trains a torch.nn.LSTM of the same size. Run ``python
benchmarks/profiles.py --write docs/benchmarks`` for the table; ``--networks all`` takes every recurrent network.

``--goals`` runs the commands of the table in docs/benchmarks/profile_goals.md, one after the other: lstm of 64, 256 and
1024 units, a stranger's module with 4,096 numbers in its state, a first look at 1024 units. (The file is not called
profile.py: that would stand before Python's own module of this name.)
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from harness import machine, write
from quick import YARDSTICK, Run, timed

HIDDEN = 64
BARS = {"quick": 15.0, "default": 60.0}
NETWORKS = ("lstm", "nnrnn", "rac", "2rnn", "eurnn")

STRANGER = """import torch


class Leaky(torch.nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.kept, self.fed = torch.nn.Linear(hidden_size, hidden_size), torch.nn.Linear(input_size, hidden_size)

    def forward(self, x, h):
        return 0.1 * h + 0.9 * torch.tanh(self.kept(h) + self.fed(x))
"""
GOALS = {
    "lstm --hidden 64": 15.0,
    "lstm --hidden 256": 45.0,
    "lstm --hidden 1024": 90.0,
    "lstm --hidden 1024 --quick": 30.0,
    "stranger.py:Leaky --hidden 4096": 120.0,
}
"""Seconds that a profile should take on two cores, by the words of its command."""


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


@dataclass
class Whole:
    """One run of a command in an empty folder, with no reference measured before."""

    command: str
    wall: float
    processor: float
    gigabytes: float
    estimate: float
    cut: list[str]


def whole(words: str) -> Whole:
    """Run one of the commands of the table; memory is that of all its processes at once."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "stranger.py").write_text(STRANGER)
        command = [sys.executable, "-m", "mnemoscope", "profile", *words.split()]
        place = {"cwd": folder, "env": {**os.environ, "MNEMOSCOPE_CACHE": f"{folder}/cache"}}
        said = subprocess.run([*command, "--dry-run", "--json"], capture_output=True, check=True, **place).stdout
        estimate = json.loads(said)
        before, begin, most = os.times(), time.perf_counter(), 0
        with subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **place) as run:
            read = threading.Thread(target=lambda: printed.append(run.stdout.read()))
            printed: list[bytes] = []
            read.start()
            while run.poll() is None:
                most = max(most, _held(run.pid))
                time.sleep(0.2)
            read.join()
        wall, after = time.perf_counter() - begin, os.times()
        row = json.loads(printed[0])
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    cut = [name for name, part in row["parts"].items() if part["status"] == "stopped"]
    return Whole(words, wall, spent, most / 2**30, estimate["expected"], cut)


def _held(pid: int) -> int:
    """Return the bytes that a process and its children hold."""
    held = 0
    with contextlib.suppress(psutil.Error):  # it may end meanwhile
        for each in (own := psutil.Process(pid), *own.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                held += each.memory_info().rss
    return held


def training_step() -> float:
    """Return the seconds of a training step of torch.nn.LSTM: n = 64, T = 200, batch of 16; the least of several."""
    import torch

    layer, x = torch.nn.LSTM(1, HIDDEN), torch.randn(200, 16, 1)
    optimiser = torch.optim.RMSprop(layer.parameters())
    found = []
    for _ in range(20):
        begin = time.perf_counter()
        optimiser.zero_grad()
        layer(x)[0].square().mean().backward()
        optimiser.step()
        found.append(time.perf_counter() - begin)
    return min(found)


def goals(which: list[str], folder: Path | None) -> None:
    """Run the commands of the table, and add them to what there is of it."""
    held = (
        {}
        if folder is None or not (folder / "profile_goals.json").exists()
        else json.loads((folder / "profile_goals.json").read_text())["runs"]
    )
    for words in which:
        step, found = training_step(), whole(words)
        held[words] = {**asdict(found), "step": step, "machine": machine(), "date": str(datetime.date.today())}
        held[words]["load"] = os.getloadavg()[0]
        print({**held[words], "goal": GOALS[words]}, file=sys.stderr, flush=True)
    lines = [
        "| `mnemoscope profile` | seconds | goal | processor | estimate | memory, GB | steps | at work | cut |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for words, goal in GOALS.items():
        if words not in held:
            continue
        one = held[words]
        numbers = [one["wall"], goal, one["processor"], one["estimate"]]
        cells = [f"`{words}`", *(f"{each:.0f}" for each in numbers), f"{one['gigabytes']:.1f}"]
        cells += [f"{one['wall'] / one['step']:,.0f}", f"{one['load']:.0f}", ", ".join(one["cut"]) or "-"]
        lines.append(f"| {' | '.join(cells)} |")
    dates = ", ".join(sorted({f"{one['machine']}; {one['date']}" for one in held.values()}))
    text = "\n".join(
        [
            f"Whole profiles in an empty folder, with no reference measured before; {dates}.",
            "",
            "Seconds from the command to its end, which include starting Python, importing torch, building the",
            "network, the probe of its steps and the references that are measured; beside them what `--dry-run` says",
            "of measuring, all processes' memory at once, and the time in training steps of torch.nn.LSTM (n = 64,",
            "T = 200, batch of 16), and how many processes were at work on the machine meanwhile: what others take of",
            "two cores is part of the seconds, and not of those of the processor.",
            "",
            *lines,
            "",
        ]
    )
    print(text)
    if folder is not None:
        write("profile_goals", text, {"runs": held}, folder)


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
    parser.add_argument("--goals", nargs="*", choices=list(GOALS), help="these commands instead; none named: all")
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    if arguments.goals is not None:
        goals(arguments.goals or list(GOALS), arguments.write)
        return
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
