"""Draw docs/measures/copy-capacity.svg: what two networks copy, and what copying costs by depth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

import mnemoscope as ms
from mnemoscope.measures.copying import copy_capacity
from mnemoscope.report.chart import beside, lines, save
from mnemoscope.theory import copy_frontier, copy_weights


def copier() -> ms.nn.LinearRNN:
    """Return two layers of 5 units that copy lag 8 of one input."""
    layer = ms.nn.LinearRNN(1, 5, 2, dtype=torch.float64)
    weights = copy_weights(lag=8, hidden_size=5, num_layers=2).weights
    layer.load_state_dict({name: torch.as_tensor(value) for name, value in weights.items()})
    return layer


def main() -> None:
    """Write the picture."""
    drawn = ms.nn.LinearRNN(1, 5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = {"made to copy": copy_capacity(copier()), "random": copy_capacity(drawn)}
    for each in found.values():
        print(each)
    errors = lines(
        {name: (np.arange(len(each.errors)), each.errors) for name, each in found.items()},
        x="lag (steps)",
        y="mean squared error of the best readout",
        title="2 x 5 linear units",
        points=True,
    )
    costs = {}
    for lag in (8, 32, 128):
        sizes = sorted(copy_frontier(lag), key=lambda size: size[1])
        costs[f"lag {lag}"] = ([size[1] for size in sizes], [size[2] for size in sizes])
    frontier = lines(
        costs, x="layers", y="parameters", title="Fewest parameters that copy, one input", log_x=True, log_y=True
    )
    save(beside(errors, frontier), Path(__file__).parents[2] / "docs/measures/copy-capacity.svg")


if __name__ == "__main__":
    main()
