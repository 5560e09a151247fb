"""Time of networks of today: a training step against torch.nn.LSTM and against their own loop, and one streaming step.

One training step is forward, backward and Adam on the sum of squared outputs; float32, one thread, as many inputs as
units. Everything is a ratio of processor times in one run, but for the streaming step. Run ``python
benchmarks/todays_networks.py --write docs/benchmarks`` for the table; ``--quick`` measures fewer rounds.
"""

from __future__ import annotations

import argparse
import datetime
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from harness import Step, machine, write
from torch import nn

import mnemoscope as ms

STEPS, BATCH, UNITS = 1024, 16, 128
SCANS = {"lru": 0.7, "s4d": 0.7, "mingru": 0.7, "minlstm": None, "rglru": None, "mamba": None}
CHUNKED = {"gla": 2.0, "deltanet": 2.0, "mlstm": 2.0, "retnet": 2.0}
CHUNKED |= dict.fromkeys(("gated-deltanet", "hgrn2", "mamba2", "rwkv7"))
LENGTHS = (1024, 4096, 16384)
YARDSTICK = "torch.nn.LSTM"


def build(name: str, units: int = UNITS, **options: Any) -> nn.Module:
    """Return a layer by its row's name."""
    torch.manual_seed(0)
    if name == YARDSTICK:
        return nn.LSTM(units, units)
    heads = {"heads": 4} if name in CHUNKED else {}
    return ms.nn.create(name, input_size=units, hidden_size=units, **heads, **options)


def training_step(layer: nn.Module, steps: int = STEPS, batch: int = BATCH) -> Step:
    """Return a function that makes one training step."""
    x = torch.randn(steps, batch, layer.input_size, generator=torch.Generator().manual_seed(0))
    optimiser = torch.optim.Adam(layer.parameters(), lr=1e-5)

    def step() -> None:
        optimiser.zero_grad()
        layer(x)[0].square().mean().backward()
        optimiser.step()

    return step


def ratio(step: Step, yardstick: Step, rounds: int) -> float:
    """Return how many times as long as the yardstick a step takes: least processor times of interleaved rounds.

    With one thread that is what a machine without other work would take, and here others may be at work.
    """
    least = [math.inf, math.inf]
    for turn in range(rounds + 1):
        for which, call in enumerate((step, yardstick)):
            start = time.process_time()
            call()
            if turn:  # the first warms up
                least[which] = min(least[which], time.process_time() - start)
    return least[0] / least[1]


def growth(name: str, rounds: int) -> float:
    """Return the exponent of T from the first of the lengths to the last, at a width that fits the memory."""
    first, last = LENGTHS[0], LENGTHS[-1]
    found = ratio(training_step(build(name, 32), last, 2), training_step(build(name, 32), first, 2), rounds)
    return math.log(found) / math.log(last / first)


def equal_parameters(rounds: int) -> tuple[int, float]:
    """Return units of an LSTM with as many parameters as s4 in its block, and s4's time over its time at T = 4096."""
    layer = build("s4", block=True)
    budget = sum(p.numel() for p in layer.parameters())
    units = next(n for n in range(UNITS, 0, -1) if 8 * n * n + 8 * n <= budget)
    return units, ratio(training_step(layer, 4096), training_step(build(YARDSTICK, units), 4096), rounds)


def streaming(name: str, calls: int = 200) -> float:
    """Return the median time of one step of one sequence, in microseconds."""
    layer = build(name, **({"capacity": 1024} if name == "transformer" else {}))
    step: Callable[..., Any] = layer.stepper()
    x, state, found = torch.randn(1, UNITS), layer.init_state(1), []
    with torch.no_grad():
        for _ in range(calls):
            start = time.perf_counter()
            _, state = step(x, state)
            found.append(time.perf_counter() - start)
    return 1e6 * statistics.median(found)


def table(rounds: int) -> tuple[list[str], dict[str, Any]]:
    """Measure everything."""
    lstm = training_step(build(YARDSTICK))
    rows: dict[str, dict[str, Any]] = {}
    for name, bar in (SCANS | CHUNKED).items():
        own = training_step(build(name))
        rows[name] = {"lstm": ratio(own, lstm, rounds), "bar": bar}
        if name in CHUNKED:
            rows[name]["loop"] = ratio(training_step(build(name, mode="recurrent")), own, max(1, rounds // 3))
        if name in ("lru", "s4d", "mingru", "retnet", "deltanet"):
            rows[name]["exponent"] = growth(name, max(1, rounds // 3))
    for name in (*rows, "s4", "slstm", "transformer"):
        rows.setdefault(name, {})["step"] = streaming(name)
    units, s4 = equal_parameters(max(1, rounds // 3))
    lines = [
        f"| network | training step / {YARDSTICK} | bar | own loop / it | exponent of T | streaming step, us |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        cells = [f"{row[key]:.2f}" if row.get(key) is not None else "" for key in ("lstm", "bar", "loop", "exponent")]
        lines.append(f"| {name} | {' | '.join(cells)} | {row['step']:.0f} |")
    own = f"s4 in its block ({UNITS} features, N = 64)"
    lines += [
        "",
        f"{own} at T = 4096: {s4:.2f} of {YARDSTICK} of as many parameters, {units} units.",
    ]
    return lines, {"rows": rows, "s4": s4, "units": units}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rounds = 1 if arguments.quick else arguments.rounds
    lines, data = table(rounds)
    sizes = f"Training steps at T = {STEPS}, B = {BATCH}, n = {UNITS}, 4 heads, one thread"
    lengths = f"exponents from T = {LENGTHS[0]} to {LENGTHS[-1]}"
    head = [f"{sizes}; {lengths}; {rounds} rounds; {machine()}; {datetime.date.today()}.", ""]
    text = "\n".join([*head, *lines]) + "\n"
    print(text)
    if arguments.write:
        write("todays_networks", text, data | {"machine": machine(), "rounds": rounds}, arguments.write)


if __name__ == "__main__":
    main()
