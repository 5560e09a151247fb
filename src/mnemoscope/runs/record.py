"""A run as it stands on disk, for reading: finished, or while another process writes it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemoscope.core.errors import UserError
from mnemoscope.runs import folders
from mnemoscope.runs.checkpoints import Checkpoint, CheckpointFolder
from mnemoscope.runs.documents import read_document
from mnemoscope.runs.errors import Damaged, warn
from mnemoscope.runs.folders import CHECKPOINTS, CONFIG, ENVIRONMENT, LOCK, METRICS, is_run
from mnemoscope.runs.lock import holder
from mnemoscope.runs.metrics import Metrics, chain_start, read
from mnemoscope.runs.status import Status, read_status

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Record", "load", "read_record"]


@dataclass(frozen=True)
class Record:
    """What is recorded of a run.

    Attributes
    ----------
    folder, id, kind, spec, created
        Where it is, what it is called, what it is, its configuration, and when it began.
    environment
        Versions, threads, machine, commit.
    status, reason, summary
        ``"running"``, ``"finished"``, ``"failed"``, ``"interrupted"`` or ``"budget"``; why it failed; what came out.
    owner
        Which process is writing it, or None.
    metrics
        The records, as far as they are whole.
    problems
        What is damaged, one line each.
    """

    folder: Path
    id: str
    kind: str
    spec: dict[str, Any]
    created: str
    environment: dict[str, Any]
    status: str
    owner: str | None
    metrics: Metrics
    details: Status
    key: str = field(repr=False)
    problems: tuple[str, ...] = ()

    @property
    def summary(self) -> Any:
        """What came out."""
        return self.details.summary

    @property
    def reason(self) -> str | None:
        """Why it failed."""
        return self.details.reason

    def column(self, name: str) -> np.ndarray:
        """Return one metric of all records, NaN where a record does not have it."""
        return self.metrics.column(name)

    def latest(self) -> Checkpoint | None:
        """Return the newest whole checkpoint; a damaged one is told of in a warning. Nothing is changed."""
        stored = CheckpointFolder(self.folder / CHECKPOINTS, self.key).newest(self.details.checkpoint)
        return None if stored is None else stored.checkpoint

    def checkpoints(self) -> list[Checkpoint]:
        """Return every whole checkpoint, the oldest first; a damaged one is told of in a warning."""
        return [each.checkpoint for each in CheckpointFolder(self.folder / CHECKPOINTS, self.key).whole()]

    def best(self) -> Checkpoint | None:
        """Return the newest checkpoint that was the best so far."""
        stored = CheckpointFolder(self.folder / CHECKPOINTS, self.key).newest_best()
        return None if stored is None else stored.checkpoint


def load(run: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> Record:
    """Return the record of a run: its folder, its id, or a beginning of its id.

    What is damaged is told of in warnings and listed in ``problems``; the numbers that are given are whole. Without a
    whole configuration there is no record, and `Damaged` is raised.
    """
    folder = Path(run).expanduser().absolute() if isinstance(run, Path) else folders.find(run, root)
    if not is_run(folder):
        raise UserError(f"{str(folder)!r} holds no run")
    record = read_record(folder, folders.identity(folder, folders.root(root)))
    for problem in record.problems:
        warn(problem)
    return record


def read_record(folder: Path, id: str) -> Record:
    """Return the record in a folder, with its problems."""
    config, key = read_document(folder / CONFIG)
    problems: list[str] = []
    environment: dict[str, Any] = {}
    try:
        environment, _ = read_document(folder / ENVIRONMENT)
    except Damaged as error:
        problems.append(str(error))
    owner = holder(folder / LOCK)
    try:
        details = read_status(folder)
    except Damaged as error:
        problems.append(str(error))
        details = Status(state="interrupted")
    metrics, trouble = _metrics(folder, key, details)
    return Record(
        folder=folder,
        id=id,
        kind=config["kind"],
        spec=config["spec"],
        created=config["created"],
        environment=environment,
        status=_state(details, owner),
        owner=owner,
        metrics=metrics,
        details=details,
        key=key,
        problems=(*problems, *trouble),
    )


def _state(details: Status, owner: str | None) -> str:
    if details.state == "finished":
        return "finished"
    if owner is not None:
        return "running"
    return "interrupted" if details.state == "running" else details.state


def _metrics(folder: Path, key: str, details: Status) -> tuple[Metrics, list[str]]:
    path = folder / METRICS
    try:
        found, how = read(path, chain_start(key))
    except Damaged as error:
        return Metrics(), [str(error)]
    lines = how.position.lines
    expected = details.position
    if how.altered:
        return Metrics(found), [f"{str(path)!r} is altered at line {lines + 1}: only the lines before it are read"]
    if expected is not None and lines < expected.lines:
        return Metrics(found), [f"{str(path)!r} is damaged: only {lines} of {expected.lines} lines are whole"]
    return Metrics(found), []
