"""Draw docs/tasks/*.svg: one sequence of a task of each sort, in a size that fits on a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

import mnemoscope as ms
from mnemoscope.report import chart
from mnemoscope.tasks.drawing import draw_example

FOLDER = Path(__file__).parents[2] / "docs" / "tasks"
SETTINGS: dict[str, dict[str, Any]] = {
    "adding": {"length": 40},
    "copy": {"delay": 20},
    "denoise": {"delay": 30},
    "dyck": {"length": 40},
    "games-between": {},
    "group-composition": {},
    "identity-rules": {"images": "own"},
    "lag-copy": {},
    "listops": {"longest": 40, "shortest": 24},
    "matrix-recall": {"items": 5},
    "mqar": {"pairs": 4, "length": 32, "vocabulary": 16},
    "pathfinder": {},
    "start-end-similarity": {"length": 32, "symbols": 8, "alphabet": 8},
}


def main() -> None:
    """Draw all; another ending than .svg may be named."""
    ending = sys.argv[1] if len(sys.argv) > 1 else ".svg"
    FOLDER.mkdir(exist_ok=True)
    for name, settings in SETTINGS.items():
        task = ms.tasks.create(name, **settings)
        batch = task.sample(1, torch.Generator().manual_seed(1))
        chart.save(draw_example(task, batch), FOLDER / f"{name}{ending}")
        print(task)


if __name__ == "__main__":
    main()
