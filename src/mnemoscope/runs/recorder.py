"""Writing of a run: lines of metrics, checkpoints, its end."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mnemoscope.core.errors import UserError, expected
from mnemoscope.runs.checkpoints import Checkpoint, CheckpointFolder, checked_tensors
from mnemoscope.runs.documents import normal, returned
from mnemoscope.runs.errors import Damaged, OutOfBudget
from mnemoscope.runs.folders import CHECKPOINTS, METRICS
from mnemoscope.runs.indexing import note
from mnemoscope.runs.lock import Lock
from mnemoscope.runs.metrics import Log, Metrics, chain_start
from mnemoscope.runs.status import Status, write_status

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Recorder"]


class Recorder:
    """A run that this process writes; `mnemoscope.runs.open` makes it and holds its lock.

    As a context manager it is closed at the end: a run that was left by an error is failed, with its reason (by
    `OutOfBudget`: its budget is used up); one that was left by Ctrl-C, or without `finish`, is interrupted. All of them
    can be opened again and go on.

    Attributes
    ----------
    folder, id, kind, spec
        Where it is, what it is called, what it is, and its configuration.
    environment
        What it began on.
    resumed
        Whether it was there before.
    """

    def __init__(
        self,
        folder: Path,
        *,
        id: str,
        kind: str,
        spec: dict[str, Any],
        environment: dict[str, Any],
        key: str,
        status: Status,
        lock: Lock,
        home: Path | None,
        resumed: bool,
        keep: int | None,
        changes: list[str],
        first: Checkpoint | None = None,
    ) -> None:
        self.folder, self.id, self.kind, self.spec = folder, id, kind, spec
        self.environment, self.resumed, self.first = environment, resumed, first
        self._status, self._lock, self._home = status, lock, home
        self._log = Log(folder / METRICS, chain_start(key))
        self._store = CheckpointFolder(folder / CHECKPOINTS, key, keep)
        self._changes = changes
        self._writing = self._touched = self._ended = False
        self._open = True

    def __repr__(self) -> str:
        return f"<Recorder {self.id}: {self.state}>"

    @property
    def state(self) -> str:
        """One of `mnemoscope.runs.status.STATES`: as it was left, until it is written to."""
        return self._status.state

    @property
    def finished(self) -> bool:
        """Whether it is complete, so that there is nothing to do but to read it."""
        return self.state == "finished"

    @property
    def summary(self) -> Any:
        """What `finish` was given."""
        return self._status.summary

    @property
    def kept(self) -> Metrics:
        """The lines of metrics that were there when it was opened, and that `latest` has not cut off."""
        return Metrics(self._log.kept())

    def append(self, record: Mapping[str, Any], *, durable: bool = False) -> None:
        """Add a record of metrics: a mapping from names to numbers (Python's, NumPy's or torch's), text or lists.

        It is written with others, after a second, at a checkpoint, and at the end; at once where it is to be durable.
        """
        if not self._writing:
            self._begin()
        self._log.append(record)
        if durable:
            self._log.flush(durable=True)

    def checkpoint(self, step: int, tensors: Mapping[str, Tensor], state: Any = None, *, best: bool = False) -> None:
        """Write a checkpoint, atomically, after all metrics before it.

        The last two are kept (`keep` of `open`), and the newest that was the best so far.

        Parameters
        ----------
        step
            How many steps are done; not below that of the checkpoint before.
        tensors
            By name: parameters, the optimiser's, states of generators.
        state
            The rest, as JSON; floats of any value come back exactly, tuples as lists.
        best
            Whether it is the best so far.
        """
        if not isinstance(step, int) or isinstance(step, bool) or step < 0:
            raise expected("step", "a whole number that is not negative", step)
        made = Checkpoint(step, checked_tensors(tensors), normal(state, "state"))
        if not self._writing:
            self._begin()
        self._log.flush(durable=True)
        self._store.write(made, self._log.position, best=best)
        self._say(checkpoint=step, durable=False)

    def latest(self) -> Checkpoint | None:
        """Return the newest whole checkpoint, or None when the run has to start at its beginning.

        A damaged one is told of in a warning, and the one before it is taken; when no checkpoint is whole, `Damaged` is
        raised. Nothing is deleted. Unless something was written since `open`, the metrics go back to where they were at
        the checkpoint, so that going on from it gives every line once.
        """
        whole = None if self._touched else self._log.holds
        stored = self._store.newest(self._status.checkpoint, whole)
        if not self._touched and not self.finished:
            self._log.cut(self._log.start if stored is None else stored.position)
            self._store.set_aside_after(-1 if stored is None else stored.checkpoint.step, self._status.checkpoint)
        return None if stored is None else stored.checkpoint

    def best(self) -> Checkpoint | None:
        """Return the newest checkpoint that was the best so far, or None."""
        stored = self._store.newest_best()
        return None if stored is None else stored.checkpoint

    def finish(self, summary: Any = None) -> None:
        """Say that the run is complete, and what came out (JSON)."""
        self._end(state="finished", summary=returned(summary, "summary"))

    def fail(self, reason: str) -> None:
        """Say that the run has failed, and why. It can be opened again and goes on from its latest checkpoint."""
        self._end(state="failed", reason=reason)

    def pause(self, reason: str) -> None:
        """Say that what the run was given is used up, of what. It can be opened again and goes on."""
        self._end(state="budget", reason=reason)

    def close(self) -> None:
        """Write what is left and let others in. A run that is neither finished nor failed is interrupted."""
        if not self._open:
            return
        try:
            if not self._ended and (self._writing or not self.resumed):
                self._end(state="interrupted")
        finally:
            self._open = False
            self._log.close()
            self._lock.release()
            if self._home is not None:
                note(self._home, self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        unread = isinstance(error, Damaged) and not self._touched  # whoever repairs it needs the status as it was
        if isinstance(error, KeyboardInterrupt | OutOfBudget):
            # For whoever says how to go on; the last note is the whole run's. One that is elsewhere has no id there.
            error.add_note(self.id if self._home is not None else str(self.folder))
        if isinstance(error, Exception) and self._open and not (self._ended or self.finished or unread):
            words = str(error) if isinstance(error, UserError | OutOfBudget) else f"{type(error).__name__}: {error}"
            with contextlib.suppress(UserError):  # the error itself tells more than that it could not be noted
                (self.pause if isinstance(error, OutOfBudget) else self.fail)(words)
        if error is None:
            self.close()
            return
        with contextlib.suppress(UserError):
            self.close()

    def _begin(self) -> None:
        """Look whether the run may be written, before the first write; a session on a run that was there is noted."""
        if not self._open:
            raise UserError(f"run {self.id} is closed: open it again to go on")
        if self.finished:
            raise UserError(f"run {self.id} is finished: nothing is added to it")
        if self._ended:
            raise UserError(f"run {self.id} is {self.state}: open it again to go on")
        if self.resumed and not self._writing:
            self._status = write_status(self.folder, self._status.with_session(self._changes))
        self._writing = self._touched = True

    def _end(self, *, state: str, reason: str | None = None, summary: Any = None) -> None:
        self._begin()
        try:
            self._log.flush(durable=True)
        except UserError:
            # A finished run is never written again: it is one only when every line is on the disk.
            if state != "finished":
                self._note_end(state, reason, summary)
            raise
        self._note_end(state, reason, summary)

    def _note_end(self, state: str, reason: str | None, summary: Any) -> None:
        try:
            self._say(state=state, reason=reason, summary=summary)
        finally:
            self._ended, self._writing = True, False

    def _say(self, *, durable: bool = True, **changes: Any) -> None:
        position = self._log.written.to_dict()
        self._status = write_status(self.folder, replace(self._status, metrics=position, **changes), durable=durable)
