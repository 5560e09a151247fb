"""Draw docs/measures/relations.svg: the relation matrix of a CoRelNet trained on identity rules."""

from __future__ import annotations

from pathlib import Path

import torch

import mnemoscope as ms
from mnemoscope.report.chart import save


def main() -> None:
    """Train for a minute, and draw."""
    network = ms.nn.create("corelnet", panels=9, answers=4, generator=torch.Generator().manual_seed(0))
    task = ms.tasks.create("identity-rules", images="own", held_out=50)
    ms.training.fit(network, task, iterations=400, batch_size=96, lr=5e-4, optimizer="adam")
    found = ms.measures.relation_matrix(network, task, seed=1)
    save(found.plot(), Path(__file__).parents[2] / "docs/measures/relations.svg")
    print(found)


if __name__ == "__main__":
    main()
