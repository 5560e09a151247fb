"""State of a run: status.json."""

from __future__ import annotations

import datetime
import os
import socket
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mnemoscope.runs.documents import read_document, write_document
from mnemoscope.runs.folders import STATUS
from mnemoscope.runs.metrics import Position

__all__ = ["STATES", "Status", "now", "read_status", "write_status"]

STATES = ("running", "finished", "failed", "interrupted", "budget")
"""What a run can be; ``budget``: the time or the steps that it was given are used up.

A run that says ``running`` while no process holds its lock was interrupted."""

_ROOM = 4096  # a block: what every file takes anyway, and room to say "failed" on a full disk
_REASON = 1000


@dataclass(frozen=True)
class Status:
    """The state of a run, since when, how far it is, and why it failed or what came out."""

    state: str = "running"
    reason: str | None = None
    summary: Any = None
    checkpoint: int | None = None
    metrics: dict[str, int] | None = None
    updated: str = ""
    sessions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def position(self) -> Position | None:
        """The place in the metrics up to which they were written when the status was."""
        return None if self.metrics is None else Position(**self.metrics)

    def with_session(self, changes: list[str]) -> Status:
        """Return the status at the beginning of a process's work on the run."""
        session = {"started": now(), "process": os.getpid(), "host": socket.gethostname(), "changes": changes}
        return replace(self, state="running", reason=None, summary=None, sessions=[*self.sessions, session])


def now() -> str:
    """Return the time, UTC, to the millisecond: ``2026-01-31T12:00:00.000Z``."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_status(folder: Path) -> Status:
    """Return the status of a run, or raise `Damaged`."""
    body, _ = read_document(folder / STATUS)
    return Status(**body)


def write_status(folder: Path, status: Status, *, durable: bool = True, named_durably: bool = True) -> Status:
    """Write the status with the present time."""
    reason = None if status.reason is None else " ".join(status.reason.split())[:_REASON]
    status = replace(status, reason=reason, updated=now())
    write_document(folder / STATUS, vars(status), durable=durable, named_durably=named_durably, size=_ROOM)
    return status
