"""Networks of a recorded training, before and after it, as a profile sets them side by side."""

from __future__ import annotations

import os
from pathlib import Path

from mnemoscope import runs
from mnemoscope.core.errors import UserError
from mnemoscope.core.plugins import is_location
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.registry import NETWORKS
from mnemoscope.training.snapshots import recorded_network, snapshots

__all__ = ["before_and_after", "names_run"]


def names_run(word: str, root: str | os.PathLike[str] | None = None) -> bool:
    """Say whether a word of a command line means a run: its id, the beginning of one, a folder, or a checkpoint."""
    if word in NETWORKS or is_location(word):
        return False
    if word.endswith(".safetensors"):
        return Path(word).absolute().parent.name == "checkpoints"
    try:
        return runs.is_run(runs.find(word, root))
    except UserError:
        return False


def before_and_after(
    run: str | os.PathLike[str], *, root: str | os.PathLike[str] | None = None, trust: bool = False
) -> tuple[list[NetworkSpec], int]:
    """Return the trained network of a run, the same network as it is drawn, and the seed that drew it for this run.

    What training changed is clear where the trained weights lie outside of what several seeds draw; the first of these
    seeds is the run's own.
    """
    last = snapshots(run, root=root, trust=trust)[-1]
    drawn, seed = recorded_network(run, root=root)
    after = NetworkSpec(last.model.layer, called=f"{drawn.name} after {last.step:,} steps")
    return [after, drawn.replace(called=f"{drawn.name} before training")], seed
