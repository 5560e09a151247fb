"""Cost of the record: a line of metrics, a checkpoint of a small network, opening a run, and reading it again.

A line is appended as training appends it, buffered, with the writes once a second and the last one included; the
yardstick is ``json.dumps`` of the same record and ``write`` on an open file. A checkpoint is that of a tanh RNN with
128 units and its Adam state; the yardstick is ``torch.save`` of the same tensors to a file, which is neither atomic nor
checked nor forced to the disk. Run ``python benchmarks/record.py --write docs/benchmarks`` for the table.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from harness import machine, write

from mnemoscope import runs

LINES = 20_000
RECORD = {"step": 12345, "loss": 0.6931471805599453, "score": 0.5, "norm": 1.2345678901234567, "seconds": 0.0123}


def tensors() -> dict[str, torch.Tensor]:
    """Return the weights of a small network, twice more as Adam's state, and the generator's."""
    network = torch.nn.RNN(10, 128)
    weights = dict(network.named_parameters())
    copies = {f"{kind}.{name}": torch.randn_like(own) for kind in ("mean", "square") for name, own in weights.items()}
    return {**weights, **copies, "generator": torch.get_rng_state()}


def line_costs(base: Path) -> dict[str, float]:
    """Return seconds per line of the record and of the plain way."""
    with runs.open({"lines": time.time_ns()}, root=base) as run:
        begin = time.perf_counter()
        for _ in range(LINES):
            run.append(RECORD)
        run.finish()
        ours = time.perf_counter() - begin
    begin = time.perf_counter()
    with (base / "plain.jsonl").open("w") as stream:
        for _ in range(LINES):
            stream.write(json.dumps(RECORD) + "\n")
    plain = time.perf_counter() - begin
    begin = time.perf_counter()
    runs.load(run.folder)
    return {
        "append": ours / LINES,
        "json.dumps and write": plain / LINES,
        "read": (time.perf_counter() - begin) / LINES,
    }


def checkpoint_costs(base: Path) -> dict[str, float]:
    """Return seconds per checkpoint, reading one included, and of torch.save."""
    state = {"optimizer": {"step": 100}, "best": 0.5}
    held = tensors()
    with runs.open({"checkpoints": time.time_ns()}, root=base) as run:
        steps = itertools.count()
        ours = _each(lambda: run.checkpoint(next(steps), held, state))
        reading = _each(run.latest)
    plain = _each(lambda: torch.save(held, base / "plain.pt"))
    specs = itertools.count(time.time_ns())
    opening = _each(lambda: runs.open({"empty": next(specs)}, root=base).close())
    return {"checkpoint": ours, "torch.save": plain, "latest": reading, "open and close": opening}


def _each(do: Callable[[], object], count: int = 10) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        do()
    return (time.perf_counter() - begin) / count


def main() -> None:
    """Measure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    parser.add_argument("--on", type=Path, help="folder for the runs: another disk; else the system's temporary one")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir=arguments.on) as folder:
        for _ in range(arguments.rounds):
            for name, seconds in (line_costs(Path(folder)) | checkpoint_costs(Path(folder))).items():
                found.setdefault(name, []).append(seconds)
    size = sum(tensor.nbytes for tensor in tensors().values()) / 1000
    rows = [f"| {name} | {statistics.median(own) * 1e6:,.1f} | {min(own) * 1e6:,.1f} |" for name, own in found.items()]
    lines = [
        f"Microseconds, median and least of {arguments.rounds} rounds; {machine()}; {datetime.date.today()}.",
        f"A line has {len(RECORD)} entries ({LINES:,} per round); a checkpoint has {size:,.0f} kB.",
        "",
        "| | median | least |",
        "|---|---|---|",
        *rows,
    ]
    table = "\n".join(lines) + "\n"
    print(table)
    if arguments.write:
        write("record", table, found, arguments.write)


if __name__ == "__main__":
    main()
