"""Draw docs/measures/memory-use.svg: what a matntm that has learned to copy does with its memory."""

from __future__ import annotations

from pathlib import Path

import torch

import mnemoscope as ms
from mnemoscope.report.chart import save

LONGEST = 5


def main() -> None:
    """Train on copies of up to 5 matrices, and draw one sequence of 5."""
    task = ms.tasks.create("matrix-copy", longest=LONGEST)
    machine = ms.nn.create(
        "matntm",
        input_size=(5, 5),
        hidden_size=(15, 15),
        num_layers=3,
        memory=(20, 6, 6),
        output_nonlinearity="identity",
        generator=torch.Generator().manual_seed(0),
    )
    run = ms.training.fit(
        machine, task, iterations=1500, batch_size=16, lr=1e-3, optimizer="adam", clip_value=10.0, readout="none"
    )
    print(run)
    batch = ms.tasks.create("matrix-copy", longest=LONGEST, shortest=LONGEST).sample(
        1, torch.Generator().manual_seed(1)
    )
    found = ms.measures.memory_use(machine, inputs=batch.inputs)
    save(found.plot(), Path(__file__).parents[2] / "docs/measures/memory-use.svg")
    print(found)


if __name__ == "__main__":
    main()
