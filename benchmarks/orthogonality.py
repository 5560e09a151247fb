"""Drift from orthogonality: the largest entry of |V* V - I| after training steps, for every orthogonal map at n = 128.

Each step is Adam with rate 1e-3 on the loss <G, V>, G a new Gaussian matrix every time: a walk that never settles.
``full-urnn`` is shown with and without its projection. Run ``python benchmarks/orthogonality.py`` for the table in
docs/benchmarks.
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path
from typing import Any

import torch
from harness import machine, write

import mnemoscope as ms
from mnemoscope.nn.maps import gram_error

HIDDEN = 128
MAPS: dict[str, tuple[str, dict[str, Any]]] = {
    "full-urnn": ("full-urnn", {}),
    "full-urnn, not projected": ("full-urnn", {"reorthogonalise": False}),
    "full-urnn, complex": ("full-urnn", {"field": "complex"}),
    "full-urnn, complex, not projected": ("full-urnn", {"field": "complex", "reorthogonalise": False}),
    "scornn": ("scornn", {}),
    "scurnn": ("scurnn", {}),
    "exprnn": ("exprnn", {}),
    "exprnn, rebase=100": ("exprnn", {"rebase": 100}),
    "exprnn, complex": ("exprnn", {"field": "complex"}),
    "ornn": ("ornn", {}),
    "eurnn": ("eurnn", {}),
    "urnn": ("urnn", {}),
}


def drift(name: str, options: dict[str, Any], dtype: torch.dtype, marks: list[int]) -> list[float]:
    """Return the distance from orthogonality after each number of steps in `marks`."""
    generator = torch.Generator().manual_seed(0)
    layer = ms.nn.create(name, input_size=1, hidden_size=HIDDEN, dtype=dtype, generator=generator, **options)
    optimiser = torch.optim.Adam(layer.parameters(), lr=1e-3)
    found = []
    for step in range(1, max(marks) + 1):
        optimiser.zero_grad()
        v = layer.weight_hh_l0
        (v * torch.randn(v.shape, generator=generator, dtype=v.dtype)).sum().abs().backward()
        optimiser.step()
        layer.after_step()
        if step in marks:
            wide = torch.complex128 if v.is_complex() else torch.float64
            found.append(gram_error(layer.weight_hh_l0.detach().to(wide)))
    return found


def main() -> None:
    """Measure all maps and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    heads = [f"{kind}, {steps} steps" for kind in ("float32", "float64") for steps in arguments.steps]
    lines = [
        f"Largest entry of |V* V - I| at n = {HIDDEN}, Adam 1e-3, seed 0; {machine()}; {datetime.date.today()}.",
        "",
        "| map | " + " | ".join(heads) + " |",
        "|---|" + "---|" * len(heads),
    ]
    data: dict[str, Any] = {"machine": machine(), "date": str(datetime.date.today()), "steps": arguments.steps}
    for row, (name, options) in MAPS.items():
        found = [x for dtype in (torch.float32, torch.float64) for x in drift(name, options, dtype, arguments.steps)]
        lines.append(f"| {row} | " + " | ".join(f"{x:.1e}" for x in found) + " |")
        data[row] = found
        print(lines[-1], flush=True)
    if arguments.write:
        write("orthogonality", "\n".join(lines) + "\n", data, arguments.write)


if __name__ == "__main__":
    main()
