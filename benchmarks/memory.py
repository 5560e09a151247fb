"""Memory of a training pass at (T, B, n) = (1000, 128, 256), against the naive loop under autograd.

Two readings: the bytes that the graph saves for the backward pass, as `saved_tensors_hooks` hands them out, and the
peak of the process above what it held before the pass (each variant in a process of its own). Run
``python benchmarks/memory.py`` for the table in docs/benchmarks.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from harness import machine, write

import mnemoscope as ms
from mnemoscope.nn import first_order

STEPS, BATCH, HIDDEN = 1000, 128, 256
VARIANTS: dict[str, dict[str, Any]] = {
    "naive loop": {},
    "fused": {},
    "fused, checkpoint_every=32": {"checkpoint_every": 32},
}


def measure(variant: str, nonlinearity: str) -> dict[str, float]:
    """Return both readings of one variant, in MB, from this process."""
    torch.set_num_threads(1)
    # An orthogonal V: vanishing gradients would be denormal numbers, and the naive loop would take minutes.
    layer = ms.nn.RNN(10, HIDDEN, nonlinearity=nonlinearity, init="random", **VARIANTS[variant])
    if variant == "naive loop":
        first_order.can_fuse = lambda w: False
    x = torch.randn(STEPS, BATCH, 10)
    layer(x[:2])[0].sum().backward()
    saved = 0

    def count(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal saved
        saved += tensor.numel() * tensor.element_size()
        return tensor

    before = _resident("VmRSS")
    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        output, _ = layer(x)
    output.sum().backward()
    return {"saved": saved / 1e6, "peak": (_resident("VmHWM") - before) / 1e3}


def _resident(key: str) -> int:
    """Return what the kernel says of this process's memory, in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))


def main() -> None:
    """Measure all variants and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    parser.add_argument("--one", nargs=2, metavar=("VARIANT", "PHI"), help="measure one variant in this process")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*arguments.one)))
        return
    lines = [
        f"Memory at T={STEPS}, B={BATCH}, n={HIDDEN}, float32; {machine()}; {datetime.date.today()}.",
        "",
        "| phi | variant | saved, MB | ratio | peak of the process, MB | ratio |",
        "|---|---|---|---|---|---|",
    ]
    data: dict[str, Any] = {"machine": machine(), "date": str(datetime.date.today())}
    for phi in ("tanh", "modrelu"):
        base = None
        for variant in VARIANTS:
            command = [sys.executable, __file__, "--one", variant, phi]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            base = base or found
            cells = [f"{found[key]:.0f} | {found[key] / base[key]:.2f}" for key in ("saved", "peak")]
            lines.append(f"| {phi} | {variant} | " + " | ".join(cells) + " |")
            data[f"{phi}, {variant}"] = found
            print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    if arguments.write:
        write("memory", text, data, arguments.write)


if __name__ == "__main__":
    main()
