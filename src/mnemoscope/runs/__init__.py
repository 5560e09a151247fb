"""The record of what was run: written as it happens, safe against a crash, queried in SQL. Nothing is ever pickled."""

from mnemoscope.runs.checkpoint import Checkpoint
from mnemoscope.runs.errors import Damaged, RecordWarning
from mnemoscope.runs.indexing import index, rebuild
from mnemoscope.runs.names import find, root, spec_hash
from mnemoscope.runs.opening import open  # noqa: A004 - runs.open is to a run what open is to a file
from mnemoscope.runs.record import Metrics, Record, load
from mnemoscope.runs.run import Run

__all__ = [
    "Checkpoint",
    "Damaged",
    "Metrics",
    "Record",
    "RecordWarning",
    "Run",
    "find",
    "index",
    "load",
    "open",
    "rebuild",
    "root",
    "spec_hash",
]
