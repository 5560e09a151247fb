"""Cost of the gradient paths through attention against the length T, with the exponent that fits it.

Three cases: one V and all numbers of states passed (stated O(T^3)), one V and up to 20 (O(T^2)), T Jacobians of 16
units and up to 20 (O(T^2)). The time is the least of several rounds. Enumerating the paths would cost 2^T. Run
``python benchmarks/attention_paths.py --write docs/benchmarks`` for the table.
"""

from __future__ import annotations

import argparse
import datetime
import math
from functools import partial
from pathlib import Path

import numpy as np
import torch
from harness import Step, interleave, machine, write

from mnemoscope.measures.gradient_paths import attention_paths
from mnemoscope.theory import uniform_attention

CASES = ("one V, all states", "one V, up to 20 states", "Jacobians of 16 units, up to 20 states")
SKIPS = 20


def steps(length: int) -> dict[str, Step]:
    """Return the cases at one length, ready to run; the threshold is low, so that depths cost next to nothing."""
    attention = uniform_attention(length)
    random = np.random.default_rng(0)
    jacobians = random.normal(size=(length - 1, 16, 16)) / 5
    run = partial(attention_paths, attention=attention, threshold=0.5 / length)
    cases = (partial(run, 0.5), partial(run, 0.5, skips=SKIPS), partial(run, jacobians, skips=SKIPS))
    return dict(zip(CASES, cases, strict=True))


def main() -> None:
    """Measure all lengths and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=[256, 512, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seconds: dict[str, list[float]] = {case: [] for case in CASES}
    for length in arguments.lengths:
        for case, found in interleave(steps(length), arguments.rounds, seconds=0.02).items():
            seconds[case].append(min(found))
    lines = [
        f"Seconds for one call under uniform attention; {machine()}; {datetime.date.today()}.",
        "",
        "| case | " + " | ".join(f"T = {t}" for t in arguments.lengths) + " | exponent of T | stated |",
        "|---|" + "---|" * (len(arguments.lengths) + 2),
    ]
    low, high = arguments.lengths[-2:]
    for case, stated in zip(CASES, (3, 2, 2), strict=True):
        exponent = math.log(seconds[case][-1] / seconds[case][-2]) / math.log(high / low)
        cells = " | ".join(f"{s:.3g}" for s in seconds[case])
        lines.append(f"| {case} | {cells} | {exponent:.2f} | {stated} |")
    lines += ["", f"The exponent is that from T = {low} to T = {high}."]
    print("\n".join(lines))
    if arguments.write:
        data = {"machine": machine(), "date": str(datetime.date.today()), "lengths": arguments.lengths}
        write("attention_paths", "\n".join(lines) + "\n", {**data, "seconds": seconds}, arguments.write)


if __name__ == "__main__":
    main()
