"""Growth of a profile's time with the size of the state, part by part, and how near estimates come to it.

Every part runs once, at one seed and on one thread, for networks of several families and sizes. Times are of the
processor, so that others at work on the machine do not count; estimates are those of ``--dry-run``, by the pace of the
network's own steps, brought to a machine that is idle. What matters is the whole: its estimate is compared as well. The
exponent is the slope of ln time against ln S over the sizes at which a part takes at least a tenth of a second, beside
what theory says of its way at these sizes.

Run ``python benchmarks/profile_scaling.py --write docs/benchmarks``; ``--networks all --hidden 64 256 1024`` takes
every recurrent network. What the folder has already is kept, unless ``--again``; with ``--estimates`` its parts are
estimated anew, and measured only where they had been left out. ``--seconds N`` begins no further network after so many,
so that the table can be taken in pieces.
"""

from __future__ import annotations

import argparse
import datetime
import json
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

_SEEN, _LARGE = 0.1, 0.5
"""Seconds from which on a time tells of growth, and from which on the estimate of a part is judged."""

_LONGEST, _OVERDUE = 40.0, 300.0
"""Seconds: parts that are said to take longer are left out, and one that does on the clock is given up."""


def measured(name: str, hidden: int, quick: bool, known: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, of every part of one network: state size, estimate, seconds of the processor and the day of these.

    Parts that are `known` are not measured again, where they had been.
    """
    today = str(datetime.date.today())
    from mnemoscope.core.errors import UserError
    from mnemoscope.nn import NetworkSpec
    from mnemoscope.profiles.runner import Runner, Settings

    try:
        runner = Runner([NetworkSpec(name, hidden_size=hidden)], Settings(quick=quick, seeds=1, processes=2))
    except UserError as error:  # such as a memory that no machine holds
        refused = {"network": name, "hidden": hidden, "quick": quick, "size": None, "part": "", "said": 0.0}
        refused |= {"date": today}
        return [{**refused, "seconds": None, "status": " ".join(str(error).split())}]
    (subject,) = runner.subjects
    found = []
    for piece in runner.plan():
        if piece.section.trains:
            continue
        pace = subject.pace[0] if subject.pace is not None else None
        said = piece.seconds / (1.0 if pace is None else pace.load)
        entry = {"network": name, "hidden": hidden, "quick": quick, "size": subject.facts.state_size}
        entry |= {"part": piece.section.name, "said": said, "seconds": None, "status": "left out"}
        entry |= {"date": today}
        before = known.get(piece.section.name, {"seconds": None})
        if before["seconds"] is not None:
            entry |= {key: before[key] for key in ("seconds", "status", "date")}
        elif said <= _LONGEST:
            begin = time.process_time()
            entry["status"] = runner.bench.measured(piece, _OVERDUE)["status"]
            entry["seconds"] = time.process_time() - begin
        found.append(entry)
    return found


def exponent(rows: list[dict[str, Any]]) -> float | None:
    """Return the slope of ln time against ln S, or None where fewer than two sizes take a time that is seen."""
    seen = [each for each in rows if each["size"] and (each["seconds"] or 0) >= _SEEN and each["status"] == "done"]
    if len({each["size"] for each in seen}) < 2:
        return None
    x, y = [math.log(each["size"]) for each in seen], [math.log(each["seconds"]) for each in seen]
    return statistics.linear_regression(x, y).slope


def growth(found: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the exponents."""
    names = [name for name in FAMILIES if any(each["network"] == name for each in found)]
    lines = [f"| part | {' | '.join(names)} | theory |", f"|---{'|---' * (len(names) + 1)}|"]
    for part in dict.fromkeys(each["part"] for each in found):
        slopes = [
            exponent([each for each in found if (each["network"], each["part"]) == (name, part)]) for name in names
        ]
        if any(each is not None for each in slopes):
            cells = ["-" if each is None else f"{each:.1f}" for each in slopes]
            lines.append(f"| {part} | {' | '.join(cells)} | {THEORY.get(part, '')} |")
    return lines


def wholes(found: list[dict[str, Any]]) -> list[str]:
    """Return the lines of whole profiles, and how many of them were estimated within a factor of two."""
    rows, ratios = [], []
    for name, hidden in dict.fromkeys((each["network"], each["hidden"]) for each in found):
        own = [each for each in found if (each["network"], each["hidden"]) == (name, hidden)]
        ran = [each for each in own if each["seconds"] is not None]
        said, took = sum(each["said"] for each in ran), sum(each["seconds"] for each in ran)
        without = (each for each in own if each["seconds"] is None)
        left = ", ".join(
            f"{each['part']} ({each['said']:.0f} s)" if each["part"] else each["status"] for each in without
        )
        size = "grows" if own[0]["size"] is None else f"{own[0]['size']:,}"
        cells = [name, f"{hidden}", *("-" * 4)]
        if ran:
            ratios.append(said / max(took, 1e-9))
            cells[2:] = [size, f"{took:.1f}", f"{said:.1f}", f"{ratios[-1]:.2f}"]
        rows.append(f"| {' | '.join(cells)} | {left or '-'} |")
    good = sum(0.5 <= ratio <= 2 for ratio in ratios)
    return [
        f"Whole profiles estimated within a factor of two: {good} of {len(ratios)}.",
        "",
        "| network | n | S | seconds | estimate | ratio | left out, and why: too long, or refused |",
        "|---|---|---|---|---|---|---|",
        *rows,
    ]


def parts(found: list[dict[str, Any]]) -> list[str]:
    """Return the lines of parts whose estimates are further off, and how many are not."""
    large = [each for each in found if each["seconds"] and max(each["said"], each["seconds"]) >= _LARGE]
    wrong = [each for each in large if not 0.5 <= each["said"] / each["seconds"] <= 2]
    lines = [
        f"Parts of half a second and more estimated within a factor of two: {len(large) - len(wrong)} of {len(large)}.",
        "The others:",
        "",
        "| network | n | part | seconds | estimate | ratio | |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in sorted(wrong, key=lambda each: -abs(math.log(each["said"] / each["seconds"]))):
        numbers = each["seconds"], each["said"], each["said"] / each["seconds"]
        words = "" if each["status"] == "done" else each["status"]
        cells = [each["network"], f"{each['hidden']}", each["part"], *(f"{number:.2f}" for number in numbers), words]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def table(found: list[dict[str, Any]], quick: bool) -> str:
    """Return the text of the tables."""
    kind = "quick" if quick else "default"
    dates = ", ".join(sorted({each["date"] for each in found}))
    lines = [
        f"Parts of a {kind} profile at one seed, processor time; {machine()}; {dates}.",
        "",
        "Power of S, the numbers in the state, with which times grow; '-' where all sizes but one take less than a",
        "tenth of a second.",
        "",
        *growth(found),
        "",
        *wholes(found),
        "",
        *parts(found),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure all networks at all sizes and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", default=list(FAMILIES))
    parser.add_argument("--hidden", nargs="+", type=int, default=list(HIDDEN))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--again", action="store_true", help="measure again what the folder has")
    parser.add_argument("--estimates", action="store_true", help="estimate anew what the folder has")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which no further network is begun")
    parser.add_argument("--write", type=Path, help="folder for the tables and the numbers")
    arguments = parser.parse_args()
    import mnemoscope as ms

    begin, names = time.monotonic(), arguments.networks
    kept = arguments.write and arguments.write / "profile_scaling.json"
    found: list[dict[str, Any]] = json.loads(kept.read_text())["parts"] if kept and kept.exists() else []
    for hidden in arguments.hidden:
        for name in ms.nn.names("recurrent") if names == ["all"] else names:
            known = [each for each in found if (each["network"], each["hidden"]) == (name, hidden)]
            known = [each for each in known if each["quick"] is arguments.quick]
            if (known and not (arguments.again or arguments.estimates)) or time.monotonic() - begin > arguments.seconds:
                continue
            found = [each for each in found if each not in known]
            kept_parts = {} if arguments.again else {each["part"]: each for each in known}
            found += measured(name, hidden, arguments.quick, kept_parts)
            text = table([each for each in found if each["quick"] is arguments.quick], arguments.quick)
            if arguments.write:
                write("profile_scaling", text, {"machine": machine(), "parts": found}, arguments.write)
            print(f"{name} {hidden}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    print(table([each for each in found if each["quick"] is arguments.quick], arguments.quick))


if __name__ == "__main__":
    main()
