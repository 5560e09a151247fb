"""Draw docs/measures/state-tracking-witness.svg: two histories that 12 units confuse, and the 2RNN that does not."""

from __future__ import annotations

from pathlib import Path

import torch

import mnemoscope as ms
from mnemoscope.measures.tracking.witness import state_tracking_witness
from mnemoscope.report.chart import save


def main() -> None:
    """Write the picture."""
    draw = torch.Generator().manual_seed(0)
    layer = ms.nn.create("scornn", input_size=1, hidden_size=12, activation="depth", generator=draw)
    found = state_tracking_witness(layer)
    print(found)
    save(found.plot(), Path(__file__).parents[2] / "docs/measures/state-tracking-witness.svg")


if __name__ == "__main__":
    main()
