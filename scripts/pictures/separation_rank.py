"""Draw docs/measures/separation-rank.svg: exact ranks by depth and length, and what float64 sees of one of them."""

from __future__ import annotations

from pathlib import Path

import torch

from mnemoscope.measures.separation.rank import separation_rank
from mnemoscope.nn.networks.rac import RAC
from mnemoscope.report.chart import Chart, beside, lines, save


def network(channels: int, hidden: int, layers: int) -> RAC:
    """Return a RAC with one output."""
    generator = torch.Generator().manual_seed(1)
    return RAC(channels, hidden, num_layers=layers, output_size=1, generator=generator, dtype=torch.float64)


def by_depth() -> Chart:
    """Exact ranks on one-hot templates for M = 3 channels and R = 3 units."""
    lengths = [2, 4, 6, 8, 10]
    series = {
        f"{layers} layer{'s' * (layers > 1)}": (
            lengths,
            [separation_rank(network(3, 3, layers), T).rank for T in lengths],
        )
        for layers in (1, 2, 3)
    }
    return lines(
        series,
        x="sequence length T (steps)",
        y="separation rank",
        title="Exact rank, M = R = 3",
        log_y=True,
        points=True,
    )


def main() -> None:
    """Write the picture."""
    spectrum = separation_rank(network(4, 4, 3), 8).plot()
    save(beside(by_depth(), spectrum), Path(__file__).parents[2] / "docs/measures/separation-rank.svg")


if __name__ == "__main__":
    main()
