"""The checkpoints of one run: which are kept, which is the newest whole one, and what happens to damaged ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from mnemoscope.core.errors import UserError, expected
from mnemoscope.core.files import make_folder, remove, write_failure
from mnemoscope.runs.checkpoint import (
    Checkpoint,
    Stored,
    document_path,
    read_checkpoint,
    steps,
    tensor_paths,
    write_checkpoint,
)
from mnemoscope.runs.document import read_document
from mnemoscope.runs.errors import Damaged, warn
from mnemoscope.runs.metrics import Position

__all__ = ["Store", "all_files"]


class Store:
    """The checkpoints in a folder.

    Parameters
    ----------
    folder
        The run's folder of checkpoints; it need not exist.
    key
        The checksum of the run's configuration.
    keep
        How many of the newest are kept, beside the best.
    """

    def __init__(self, folder: Path, key: str, keep: int = 2) -> None:
        self.folder, self.key, self.keep = folder, key, keep

    def write(self, checkpoint: Checkpoint, position: Position, *, best: bool) -> None:
        """Write a checkpoint, then remove those that are not kept."""
        make_folder(self.folder)
        before = steps(self.folder)
        if before and before[-1] > checkpoint.step:
            raise expected(
                "step", f"at least {before[-1]}, that of the newest checkpoint (see latest)", checkpoint.step
            )
        write_checkpoint(self.folder, checkpoint, key=self.key, position=position, best=best)
        self._thin(checkpoint.step if best else None)

    def newest(self, recorded: int | None, whole: Callable[[Position], bool] | None = None) -> Stored | None:
        """Return the newest whole checkpoint, None when there never was one, or raise `Damaged` when all are damaged.

        Parameters
        ----------
        recorded
            The step of the last one that the status knows of: a missing one is noticed by it.
        whole
            Says whether the metrics before a place are there and whole.
        """
        problems = []
        for step in reversed(self._committed(recorded)):
            try:
                stored = read_checkpoint(self.folder, step, self.key)
                if whole is not None and not whole(stored.position):
                    raise Damaged(f"the metrics before the checkpoint of step {step} are damaged")
            except Damaged as problem:
                problems.append(str(problem))
                continue
            if recorded is not None and step < recorded and not problems:
                problems.append(f"the checkpoint of step {recorded} in {str(self.folder)!r} is missing")
            for line in problems:
                warn(f"{line}; the checkpoint of step {step} is taken")
            return stored
        if problems or recorded is not None:
            what = "; ".join(problems) or "all are missing"
            raise Damaged(
                f"no checkpoint in {str(self.folder)!r} is whole: {what}; nothing was deleted: "
                "put one back from a copy, or start a new run beside it"
            )
        return None

    def newest_best(self) -> Stored | None:
        """Return the newest whole checkpoint that was the best so far."""
        for step in reversed(self._best_steps()):
            try:
                return read_checkpoint(self.folder, step, self.key)
            except Damaged as problem:
                warn(f"{problem}; the best before it is taken, if there is one")
        return None

    def set_aside_after(self, step: int, recorded: int | None) -> None:
        """Rename what is later than `step`, so that it is neither taken for a checkpoint nor lost."""
        committed = self._committed(recorded)
        for later in steps(self.folder):
            if later <= step:
                continue
            for path in all_files(self.folder, later):
                if later in committed:
                    _rename_aside(path)
                else:
                    remove(path)  # a killed process's tensors, whose checkpoint never came to be

    def _committed(self, recorded: int | None) -> list[int]:
        """Return the steps that are or were a checkpoint.

        Tensors without JSON beyond the last step that was recorded are not one: the process was killed between the two.
        """
        return [
            step
            for step in steps(self.folder)
            if os.path.lexists(document_path(self.folder, step)) or (recorded is not None and step <= recorded)
        ]

    def _best_steps(self) -> list[int]:
        return [step for step in steps(self.folder) if _is_best(self.folder, step)]

    def _thin(self, best: int | None) -> None:
        there = steps(self.folder)
        old = there[: -self.keep]
        if not old:
            return
        if best is None:
            best = max(self._best_steps(), default=None)
        for step in old:
            if step != best:
                for path in all_files(self.folder, step):
                    remove(path)


def all_files(folder: Path, step: int) -> list[Path]:
    """Return the files of a checkpoint that are there, the JSON first: without it the rest means nothing."""
    return [path for path in (document_path(folder, step), *tensor_paths(folder, step)) if os.path.lexists(path)]


def _is_best(folder: Path, step: int) -> bool:
    try:
        return bool(read_document(document_path(folder, step))[0]["best"])
    except UserError:
        return False


def _rename_aside(path: Path) -> None:
    names = (path.with_name(f"damaged-{number}-{path.name}") for number in range(1, 10**6))
    free = next(name for name in names if not os.path.lexists(name))
    try:
        path.rename(free)
    except OSError as error:
        raise write_failure(free, error) from error
