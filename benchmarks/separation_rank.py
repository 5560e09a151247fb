"""Time and memory of exact separation ranks: a RAC of M = R = 4 over growing sequences, each in a process of its own.

The grid has 4^T entries and takes 4^T steps of the network; its rank takes 4^(3T/2) operations. Both exponents are
fitted from the two longest sequences. Run ``python benchmarks/separation_rank.py --write docs/benchmarks``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from harness import machine, write

from mnemoscope.core.ring import PRIMES, Prime
from mnemoscope.measures.separation.grid import RingWalk, evaluate_grid
from mnemoscope.measures.separation.rank import separation_rank
from mnemoscope.nn.networks.rac import RAC

CASES = [(2, 8), (2, 10), (2, 12), (3, 8), (3, 10), (3, 12)]
TARGETS = {(3, 8): "10 s", (2, 12): "120 s, 2 GB", (3, 12): "120 s, 2 GB"}


def used() -> tuple[float, float]:
    """Return the wall clock and the processor time of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), usage.ru_utime + usage.ru_stime


def measure(layers: int, horizon: int) -> dict[str, float]:
    """Measure a whole call, then its two parts for one prime."""
    generator = torch.Generator().manual_seed(0)
    network = RAC(4, 4, num_layers=layers, output_size=1, generator=generator, dtype=torch.float64)
    before = used()
    found = separation_rank(network, horizon)
    after = used()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    field = Prime(PRIMES[0])
    walk = RingWalk(network, field, network.exact_weights(field), field.array(np.eye(4)), 0)
    start = used()[1]
    grid = evaluate_grid(walk, horizon)
    middle = used()[1]
    field.rank(grid.reshape(4 ** (horizon // 2), -1))
    return {
        "layers": layers,
        "horizon": horizon,
        "rank": found.rank,
        "seconds": after[0] - before[0],
        "processor": after[1] - before[1],
        "gigabytes": peak,
        "grid": middle - start,
        "elimination": used()[1] - middle,
    }


def table(rows: list[dict[str, float]]) -> str:
    """Return the Markdown page."""
    lines = [
        "# Exact separation ranks",
        "",
        f"{machine()}; {datetime.date.today()}. RAC, M = R = 4, one-hot templates: rank of a",
        "4^(T/2) x 4^(T/2) grid with its bounds and its float64 spectrum, each in a process of its own.",
        "Processor seconds say more than the clock where the machine is shared.",
        "Grid and elimination: processor seconds modulo one prime.",
        "",
        "| L | T | rank | seconds | processor s | peak GB | grid s | elimination s | asked for |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        case = (int(row["layers"]), int(row["horizon"]))
        numbers = [f"{row[key]:.2f}" for key in ("seconds", "processor", "gigabytes", "grid", "elimination")]
        lines.append(f"| {case[0]} | {case[1]} | {row['rank']:.0f} | {' | '.join(numbers)} | {TARGETS.get(case, '')} |")
    return "\n".join([*lines, "", *fits(rows), ""])


def fits(rows: list[dict[str, float]]) -> list[str]:
    """Say which power of the number of templates the times grow by, per step."""
    by_case = {(row["layers"], row["horizon"]): row for row in rows}
    found = []
    for layers in sorted({row["layers"] for row in rows}):
        short, long = (by_case[layers, horizon] for horizon in (10, 12))
        grid = math.log(long["grid"] / short["grid"], 4) / 2
        rank = math.log(long["elimination"] / short["elimination"], 4) / 2
        found.append(
            f"At L = {layers:.0f}, from T = 10 to 12, the grid grows as 4^({grid:.2f} T) (stated: 4^T), "
            f"elimination as 4^({rank:.2f} T) (stated: at most 4^(1.5 T), at full rank)."
        )
    return found


def main() -> None:
    """Measure every case in a fresh process, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    parser.add_argument("--case", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(*options.case)))
        return
    rows = []
    for case in CASES:
        command = [sys.executable, __file__, "--case", *map(str, case)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(rows[-1], flush=True)
    text = table(rows)
    print(text)
    if options.write:
        write("separation_rank", text, rows, options.write)


if __name__ == "__main__":
    main()
