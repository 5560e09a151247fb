"""Draw docs/measures/polynomial-degree.svg: degrees of a deep BIRNN in two of its inputs, by step and layer."""

from __future__ import annotations

from pathlib import Path

import torch

from mnemoscope.measures.degree import polynomial_degree
from mnemoscope.nn.networks.birnn import BIRNN
from mnemoscope.report.chart import beside, save


def main() -> None:
    """Write the picture."""
    network = BIRNN(3, 4, num_layers=4, generator=torch.Generator().manual_seed(0))
    found = polynomial_degree(network, horizon=8)
    charts = beside(found.plot(step=1), found.plot(step=3))
    save(charts, Path(__file__).parents[2] / "docs/measures/polynomial-degree.svg")


if __name__ == "__main__":
    main()
