"""Time of the measures that follow Jacobians along trajectories, and how it grows with units and steps.

Elman's network with tanh and 4 inputs, 4 trajectories, float64, one thread. Beside them the same Jacobians computed one
row at a time in Python, as they must not be. Run ``python benchmarks/jacobians.py`` for the table in docs/benchmarks.
"""

from __future__ import annotations

import argparse
import datetime
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import Step, interleave, machine, ratios, write

import mnemoscope as ms
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.fisher.network import network_fisher_memory
from mnemoscope.measures.gradients import gradient_norms
from mnemoscope.measures.lyapunov import lyapunov_exponents

STEPS, TRAJECTORIES = (32, 64, 128), 4
SMALL, LARGE = (64, 128, 256, 512), (512, 1024, 2048, 4096)
FIXED = {"units": 128, "steps": 32}


def fisher(network: Any, steps: int) -> Step:
    """Return Fisher memory over a number of steps."""
    return lambda: network_fisher_memory(network, horizon=steps, trajectories=TRAJECTORIES, washout=0)


def gradients(network: Any, steps: int) -> Step:
    """Return gradients over a number of steps."""
    return lambda: gradient_norms(network, horizon=steps, trajectories=TRAJECTORIES)


def lyapunov(network: Any, steps: int) -> Step:
    """Return Lyapunov exponents over a number of steps."""
    return lambda: lyapunov_exponents(network, horizon=steps, trajectories=TRAJECTORIES, washout=0, transient=0)


STATED: dict[str, tuple[Callable[[Any, int], Step], str, tuple[int, ...]]] = {
    "network-fisher": (fisher, "T S^3", SMALL),
    "gradients": (gradients, "T S^2", LARGE),  # with fewer units the time is that of its calls
    "lyapunov": (lyapunov, "T S^3", SMALL),
}


def build(units: int) -> Any:
    """Return the network."""
    return ms.nn.RNN(4, units, generator=torch.Generator().manual_seed(0))


def exponent(times: dict[int, float], last: int | None = None) -> float:
    """Return the slope of ln time over ln size, by least squares over all sizes or over the `last` ones."""
    sizes = sorted(times)[-last:] if last else sorted(times)
    return float(np.polyfit([math.log(size) for size in sizes], [math.log(times[size]) for size in sizes], 1)[0])


def growth(
    make: Callable[[Any, int], Step], sizes: tuple[int, ...], rounds: int
) -> tuple[dict[int, float], dict[int, float]]:
    """Return the seconds by number of units, and by number of steps."""
    by_units = {str(n): make(build(n), FIXED["steps"]) for n in sizes}
    by_steps = {str(t): make(build(FIXED["units"]), t) for t in STEPS}
    found = []
    for steps in (by_units, by_steps):
        times = interleave(steps, rounds, seconds=0.2)
        found.append({int(name): statistics.median(own) for name, own in times.items()})
    return found[0], found[1]


def rows_against_batches(rounds: int) -> float:
    """Return how many times as long Jacobians take one row at a time."""
    flow = Dynamics.of(ms.nn.LSTM(8, 64))
    x, state = torch.randn(16, 8, dtype=torch.float64), flow.start(16)

    def by_rows() -> None:
        flat = flow.flatten(state).requires_grad_()
        after = flow.advance(x, flat, state)
        for unit in range(flow.size):
            torch.autograd.grad(after[:, unit].sum(), flat, retain_graph=True)

    times = interleave({"batched": lambda: flow.jacobians(x, state), "by rows": by_rows}, rounds)
    return ratios(times, "batched")["by rows"]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    steps = ", ".join(map(str, STEPS))
    lines = [
        f"Milliseconds of each measure (rnn tanh, {TRAJECTORIES} trajectories, one thread)",
        f"by state size S at T = {FIXED['steps']} and by steps T at S = {FIXED['units']},",
        "and the exponents of S (over all sizes, and over the two largest, where small costs no longer hide it) and T;",
        f"median of {arguments.rounds} interleaved rounds; {machine()}; {datetime.date.today()}.",
        "",
        f"| measure | stated | S | ms by S | exponent of S (all; largest) | T = {steps} | exponent of T |",
        "|---|---|---|---|---|---|---|",
    ]
    data: dict[str, Any] = {"machine": machine(), "date": str(datetime.date.today())}
    for name, (make, stated, sizes) in STATED.items():
        by_units, by_steps = growth(make, sizes, arguments.rounds)
        units = ", ".join(map(str, sizes))
        powers = exponent(by_units), exponent(by_units, 2), exponent(by_steps)
        shown = [", ".join(f"{1000 * seconds:.0f}" for seconds in times.values()) for times in (by_units, by_steps)]
        lines.append(
            f"| {name} | {stated} | {units} | {shown[0]} "
            f"| {powers[0]:.2f}; {powers[1]:.2f} | {shown[1]} | {powers[2]:.2f} |"
        )
        data[name] = {"stated": stated, "units": by_units, "steps": by_steps, "exponents": powers}
        print(lines[-1], flush=True)
    gain = rows_against_batches(arguments.rounds)
    lines += ["", f"Jacobians of an LSTM with n = 64, one row at a time in Python: {gain:.1f} times the time of ours."]
    data["rows over batches"] = gain
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        write("jacobians", text, data, arguments.write)


if __name__ == "__main__":
    main()
