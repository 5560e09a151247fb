"""Draw docs/measures/drift.svg: an nnRNN along a short training on the copy task."""

from __future__ import annotations

import tempfile
from pathlib import Path

import mnemoscope as ms
from mnemoscope.report.chart import save
from mnemoscope.training.snapshots import snapshots


def main() -> None:
    """Write the picture."""
    task = ms.tasks.create("copy", delay=5)
    layer = ms.nn.NetworkSpec("nnrnn", input_size=task.input_size, hidden_size=24).build()
    with tempfile.TemporaryDirectory() as folder:
        kept = {"checkpoint_every": 10, "checkpoints": 100}
        run = ms.training.fit(
            layer, task, iterations=120, lr=0.01, lr_orthogonal=0.003, folder=Path(folder) / "run", **kept
        )
        assert run.folder is not None
        found = snapshots(run.folder)
    drift = ms.measures.drift([each.model.layer for each in found], positions=[each.step for each in found])
    print(drift)
    save(drift.plot(), Path(__file__).parents[2] / "docs/measures/drift.svg")


if __name__ == "__main__":
    main()
