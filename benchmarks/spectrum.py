"""Cost of the spectrum against the number of units n, part by part, with the exponent that fits it.

Every part is timed in turn at every n, and divided by the time of one LAPACK eigenvalue problem of the same size in the
same round: a stated O(n^3) shows as a ratio that stays, and as an exponent near 3. The matrix is Gaussian with spectral
radius 0.95. Run ``python benchmarks/spectrum.py --write docs/benchmarks`` for the table.
"""

from __future__ import annotations

import argparse
import datetime
import math
from functools import partial
from pathlib import Path

import numpy as np
import torch
from harness import Step, interleave, machine, ratios, write

from mnemoscope.measures.spectral.kreiss import kreiss_constant
from mnemoscope.measures.spectral.powers import amplification, power_norms, stability
from mnemoscope.measures.spectral.schur import normality, schur_form

PARTS = (
    "eigenvalues (LAPACK)",
    "Schur form, departure",
    "Kreiss, gap 1e-2",
    "Kreiss, gap 1e-6",
    "amplification",
    "100 powers",
)


def steps(n: int) -> dict[str, Step]:
    """Return the parts of the measure at one size, ready to run."""
    W = np.random.default_rng(0).normal(size=(n, n))
    W *= 0.95 / np.abs(np.linalg.eigvals(W)).max()
    form = schur_form(W)
    kind = stability(W, form)
    parts = (
        partial(np.linalg.eigvals, W),
        lambda: normality(W, schur_form(W)),
        partial(kreiss_constant, W, form, kind, 1e-2),
        partial(kreiss_constant, W, form, kind, 1e-6),
        partial(amplification, W, kind),
        partial(power_norms, W, 100),
    )
    return dict(zip(PARTS, parts, strict=True))


def main() -> None:
    """Measure all sizes and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seconds: dict[str, list[float]] = {part: [] for part in PARTS}
    relative: dict[str, list[float]] = {part: [] for part in PARTS}
    for n in arguments.sizes:
        times = interleave(steps(n), arguments.rounds, seconds=0.02)
        for part, ratio in ratios(times, PARTS[0]).items():
            seconds[part].append(min(times[part]))
            relative[part].append(ratio)
    data = {"machine": machine(), "date": str(datetime.date.today()), "sizes": arguments.sizes, "seconds": seconds}
    lines = [
        f"Seconds (times LAPACK's eigenvalues of W in the same round); {machine()}; {datetime.date.today()}.",
        "Gaussian W of radius 0.95, the least of the rounds. Stated: O(n^3).",
        "",
        "| part | " + " | ".join(f"n = {n}" for n in arguments.sizes) + " | exponent of n |",
        "|---|" + "---|" * (len(arguments.sizes) + 1),
    ]
    low, high = arguments.sizes[-2:]
    for part in PARTS:
        exponent = math.log(seconds[part][-1] / seconds[part][-2]) / math.log(high / low)
        cells = [f"{s:.3g} ({r:.3g})" for s, r in zip(seconds[part], relative[part], strict=True)]
        lines.append(f"| {part} | " + " | ".join(cells) + f" | {exponent:.2f} |")
    lines.append("")
    lines.append(f"The exponent is that from n = {low} to n = {high}.")
    print("\n".join(lines))
    if arguments.write:
        write("spectrum", "\n".join(lines) + "\n", data, arguments.write)


if __name__ == "__main__":
    main()
