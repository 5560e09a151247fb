"""The names in a run's folder."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["CHECKPOINTS", "CONFIG", "ENVIRONMENT", "LOCK", "METRICS", "STATUS", "is_run"]

CONFIG = "config.json"
ENVIRONMENT = "environment.json"
STATUS = "status.json"
METRICS = "metrics.jsonl"
CHECKPOINTS = "checkpoints"
LOCK = "lock"


def is_run(folder: Path) -> bool:
    """Say whether a folder holds a run: its configuration is written last, when all else is there."""
    return os.path.lexists(folder / CONFIG)
