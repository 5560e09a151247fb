"""Draw docs/measures/network-fisher.svg: Fisher memory of four networks of 32 units."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

import mnemoscope as ms
from mnemoscope.measures.fisher.network import network_fisher_memory
from mnemoscope.report import chart

FOLDER = Path(__file__).parents[2] / "docs" / "measures"


def main() -> None:
    """Measure and draw; another ending than .svg may be named."""
    networks = {
        "orth-rnn": ms.nn.create("orth-rnn", input_size=1, hidden_size=32, generator=torch.Generator().manual_seed(0)),
        "rnn": ms.nn.create("rnn", input_size=1, hidden_size=32, generator=torch.Generator().manual_seed(0)),
        "gru": ms.nn.create("gru", input_size=1, hidden_size=32, generator=torch.Generator().manual_seed(0)),
        "lstm": ms.nn.create("lstm", input_size=1, hidden_size=32, generator=torch.Generator().manual_seed(0)),
    }
    series = {}
    for name, network in networks.items():
        found = network_fisher_memory(network, [1.0], trajectories=16)
        print(name, found)
        lags = np.arange(min(found.horizon, 21))
        series[name] = (lags, found.curve[lags])
    drawn = chart.lines(
        series,
        x="lag k (steps)",
        y="Fisher information J(k)",
        title="What 32 units at initialisation tell of an input k steps ago",
        log_y=True,
    )
    chart.save(drawn, FOLDER / f"network-fisher{sys.argv[1] if len(sys.argv) > 1 else '.svg'}")


if __name__ == "__main__":
    main()
