"""Growth of a profile's time with the size of the state, part by part, and how near estimates come to it.

Every part runs once, at one seed and on one thread, for networks of several families and sizes. Times are of the
processor, so that others at work on the machine do not count; estimates are those of ``--dry-run``, by the pace of the
network's own steps, brought to a machine that is idle. What matters is the whole: its estimate is compared as well. The
exponent is the slope of ln time against ln S over the sizes at which a part takes at least a tenth of a second, beside
what theory says of its way at these sizes. Run ``python benchmarks/profile_scaling.py --write docs/benchmarks``;
``--networks all --hidden 64 256 1024`` takes every recurrent network.
"""

from __future__ import annotations

import argparse
import datetime
import math
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from harness import machine, write

FAMILIES = {
    "rnn": "first order",
    "nnrnn": "first order, holds on",
    "lstm": "gated",
    "2rnn": "multiplicative",
    "mamba": "diagonal state space",
}
HIDDEN = (16, 64, 256)
THEORY = {
    "card": "a step: 2",
    "fisher": "dense to 512: 3; by subspace: 2",
    "capacity": "samples grow with S: 3",
    "gradients": "a step back: 2",
    "spectrum": "LAPACK: 3",
    "separation": "a step: 2",
}
"""What the operations of each part grow with, as a power of S; small ones are hidden behind what does not grow."""

_SEEN = 0.1
_LONGEST = 120.0


def measured(name: str, hidden: int, quick: bool) -> list[dict[str, Any]]:
    """Return, of every part of one network: state size, estimate and seconds of the processor."""
    from mnemoscope.nn import NetworkSpec
    from mnemoscope.profiles.runner import Runner, Settings

    runner = Runner([NetworkSpec(name, hidden_size=hidden)], Settings(quick=quick, seeds=1, processes=2))
    (subject,) = runner.subjects
    found = []
    for piece in runner.plan():
        if piece.section.trains:
            continue
        pace = subject.pace[0] if subject.pace is not None else None
        said = piece.seconds / (
            pace.load if pace is not None and piece.section.calls(runner.bench.context(subject, 0)) else 1
        )
        entry = {"network": name, "hidden": hidden, "size": subject.facts.state_size, "part": piece.section.name}
        if said > _LONGEST:
            found.append({**entry, "said": said, "seconds": None, "status": "too long"})
            continue
        begin = time.process_time()
        result = runner.bench.measured(piece)
        found.append({**entry, "said": said, "seconds": time.process_time() - begin, "status": result["status"]})
    return found


def exponent(rows: list[dict[str, Any]]) -> float | None:
    """Return the slope of ln time against ln S, or None where fewer than two sizes take a time that is seen."""
    seen = [each for each in rows if each["seconds"] and each["seconds"] >= _SEEN and each["status"] == "done"]
    if len({each["size"] for each in seen}) < 2:
        return None
    x, y = [math.log(each["size"]) for each in seen], [math.log(each["seconds"]) for each in seen]
    return statistics.linear_regression(x, y).slope


def table(found: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the tables."""
    names = list(dict.fromkeys(each["network"] for each in found))
    parts = list(dict.fromkeys(each["part"] for each in found))
    lines = [f"| part | {' | '.join(names)} | theory |", f"|---{'|---' * (len(names) + 1)}|"]
    for part in parts:
        slopes = [
            exponent([each for each in found if (each["network"], each["part"]) == (name, part)]) for name in names
        ]
        if any(each is not None for each in slopes):
            cells = ["-" if each is None else f"{each:.1f}" for each in slopes]
            lines.append(f"| {part} | {' | '.join(cells)} | {THEORY.get(part, '')} |")
    large = [each for each in found if each["seconds"] and max(each["said"], each["seconds"]) >= 0.5]
    within = [each for each in large if 0.5 <= each["said"] / each["seconds"] <= 2]
    lines += ["", *wholes(found)]
    lines += ["", f"Estimates within a factor of two: {len(within)} of {len(large)} parts of half a second and more."]
    lines += ["", "| network | S | part | seconds | estimate | ratio |", "|---|---|---|---|---|---|"]
    for each in large:
        ratio = each["said"] / each["seconds"]
        cells = [each["network"], f"{each['size']:,}", each["part"], f"{each['seconds']:.1f}", f"{each['said']:.1f}"]
        lines.append(f"| {' | '.join(cells)} | {ratio:.1f} |")
    return lines


def wholes(found: list[dict[str, Any]]) -> list[str]:
    """Return the lines of whole profiles, and how many of them were estimated within a factor of two."""
    rows, good = [], 0
    for name, size in dict.fromkeys((each["network"], each["size"]) for each in found):
        own = [
            each for each in found if (each["network"], each["size"]) == (name, size) and each["seconds"] is not None
        ]
        said, took = sum(each["said"] for each in own), sum(each["seconds"] for each in own)
        left = ", ".join(
            f"{each['part']} ({each['said']:.0f} s)"
            for each in found
            if (each["network"], each["size"]) == (name, size) and each["seconds"] is None
        )
        good += 0.5 <= said / took <= 2
        rows.append(f"| {name} | {size or 0:,} | {took:.1f} | {said:.1f} | {said / took:.1f} | {left or '-'} |")
    title = f"Whole profiles estimated within a factor of two: {good} of {len(rows)}."
    return [
        title,
        "",
        "| network | S | seconds | estimate | ratio | left out as too long |",
        "|---|---|---|---|---|---|",
        *rows,
    ]


def main() -> None:
    """Measure all networks at all sizes and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", default=list(FAMILIES))
    parser.add_argument("--hidden", nargs="+", type=int, default=list(HIDDEN))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", type=Path, help="folder for the tables and the numbers")
    arguments = parser.parse_args()
    import mnemoscope as ms

    names = ms.nn.names("recurrent") if arguments.networks == ["all"] else arguments.networks
    found: list[dict[str, Any]] = []
    for name in names:
        for hidden in arguments.hidden:
            found += measured(name, hidden, arguments.quick)
            print(f"{name} {hidden}: {sum(each['seconds'] or 0 for each in found):.0f} s so far", file=sys.stderr)
    kind, sizes = "quick" if arguments.quick else "default", ", ".join(map(str, arguments.hidden))
    text = "\n".join(
        [
            f"Parts of a {kind} profile at one seed, processor time; {machine()}; {datetime.date.today()}.",
            "",
            f"Power of S, the numbers in the state, with which times grow, over hidden sizes {sizes}; '-' where all",
            "but one size take less than a tenth of a second.",
            "",
            *table(found),
            "",
        ]
    )
    print(text)
    if arguments.write:
        data = {"machine": machine(), "date": str(datetime.date.today()), "quick": arguments.quick, "parts": found}
        write("profile_scaling", text, data, arguments.write)


if __name__ == "__main__":
    main()
