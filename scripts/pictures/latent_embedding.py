"""Draw docs/measures/latent-embedding.svg: the wide layer that a deep linear network is, and one that is none."""

from __future__ import annotations

from pathlib import Path

import torch

import mnemoscope as ms
from mnemoscope.report.chart import beside, heat_map, save


def main() -> None:
    """Write the picture."""
    random = torch.Generator().manual_seed(0)
    deep = ms.measures.latent_embedding(ms.nn.LinearRNN(2, 4, 4, generator=random, dtype=torch.float64))
    free = ms.measures.latent_embedding(ms.nn.LinearRNN(2, 16, generator=random, dtype=torch.float64))
    print(deep)
    print(free)
    axes = {"x": "unit j", "y": "unit i", "value": "V_ij", "diverging": True}
    left = heat_map(deep.weight_hh, title="4 x 4 linear units as one layer of 16", **axes)
    right = heat_map(free.weight_hh, title="A layer of 16 that is no deep network", **axes)
    save(beside(left, right), Path(__file__).parents[2] / "docs/measures/latent-embedding.svg")


if __name__ == "__main__":
    main()
