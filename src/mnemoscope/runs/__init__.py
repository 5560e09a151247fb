"""The record of what was run: written as it happens, safe against a crash, queried in SQL. Nothing is ever pickled."""

from mnemoscope.runs.checkpoints import Checkpoint
from mnemoscope.runs.errors import Damaged, InUse, OutOfBudget, RecordWarning
from mnemoscope.runs.folders import find, is_run, root, spec_hash
from mnemoscope.runs.indexing import index, rebuild
from mnemoscope.runs.metrics import Metrics
from mnemoscope.runs.opening import open  # noqa: A004 - runs.open is to a run what open is to a file
from mnemoscope.runs.record import Record, load
from mnemoscope.runs.recorder import Recorder

__all__ = [
    "Checkpoint",
    "Damaged",
    "InUse",
    "Metrics",
    "OutOfBudget",
    "Record",
    "RecordWarning",
    "Recorder",
    "find",
    "index",
    "is_run",
    "load",
    "open",
    "rebuild",
    "root",
    "spec_hash",
]
