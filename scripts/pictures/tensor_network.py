"""Draw docs/measures/tensor-network.svg: the tensor network of Ziv's Figure 2.1, T = 6 steps and L = 3 layers."""

from __future__ import annotations

from pathlib import Path

from mnemoscope.measures.rac_graph.cut import tensor_network_figure
from mnemoscope.report.chart import save


def main() -> None:
    """Write the picture."""
    found = tensor_network_figure("ziv-2.1", input_size=4, hidden_size=3)
    save(found.plot(), Path(__file__).parents[2] / "docs/measures/tensor-network.svg")


if __name__ == "__main__":
    main()
