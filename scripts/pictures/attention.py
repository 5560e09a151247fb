"""Draw docs/measures/attention.svg: to which states a relrnn with fresh weights attends."""

from __future__ import annotations

from pathlib import Path

import torch

import mnemoscope as ms
from mnemoscope.report.chart import save


def main() -> None:
    """Draw one trajectory, in which the screened states are seen as columns."""
    network = ms.nn.create(
        "relrnn", input_size=2, hidden_size=32, buffer=5, relevant=5, generator=torch.Generator().manual_seed(0)
    )
    found = ms.measures.attention(network, horizon=30, trajectories=1)
    save(found.plot(), Path(__file__).parents[2] / "docs/measures/attention.svg")
    print(found)


if __name__ == "__main__":
    main()
