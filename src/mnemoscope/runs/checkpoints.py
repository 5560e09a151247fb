"""Checkpoints: tensors as safetensors, the rest as JSON with the SHA-256 of both; no pickle.

The JSON is written last, so that it stands for the checkpoint: without it, tensors of the same step mean nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemoscope.core.errors import UserError, expected
from mnemoscope.core.files import make_folder, remove, write_atomic, write_failure
from mnemoscope.runs.documents import digest, read_document, write_document
from mnemoscope.runs.errors import Damaged, warn
from mnemoscope.runs.files import read_bytes
from mnemoscope.runs.metrics import Position

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Checkpoint",
    "CheckpointFolder",
    "Stored",
    "all_files",
    "checked_files",
    "checked_tensors",
    "document_path",
    "read_checkpoint",
    "steps",
    "tensor_paths",
    "write_checkpoint",
]

_KEPT = 2
"""Checkpoints of a run that was not told how many to keep."""

_NAME = re.compile(r"step-(0|[1-9][0-9]{0,17})(\.json|(-2)?\.safetensors)")


@dataclass(frozen=True)
class Checkpoint:
    """A moment of a run: the number of steps done, tensors by name, and everything else as JSON."""

    step: int
    tensors: dict[str, Tensor]
    state: Any


@dataclass(frozen=True)
class Stored:
    """A checkpoint as read from disk, with the place in the metrics that belongs to it."""

    checkpoint: Checkpoint
    position: Position
    best: bool


def document_path(folder: Path, step: int) -> Path:
    """Return the JSON of a checkpoint."""
    return folder / f"step-{step}.json"


def tensor_paths(folder: Path, step: int) -> tuple[Path, Path]:
    """Return where the tensors of a checkpoint may be: a step that is written again takes the other name."""
    return folder / f"step-{step}.safetensors", folder / f"step-{step}-2.safetensors"


def steps(folder: Path) -> list[int]:
    """Return the steps of which there is at least one file, ascending."""
    if not folder.is_dir() or folder.is_symlink():
        return []
    found = (_NAME.fullmatch(entry.name) for entry in folder.iterdir())
    return sorted({int(match[1]) for match in found if match})


def write_checkpoint(
    folder: Path, checkpoint: Checkpoint, *, key: str, position: Position, best: bool, keep: int = _KEPT
) -> None:
    """Write a checkpoint, whole or not at all.

    Parameters
    ----------
    folder
        The run's folder of checkpoints.
    checkpoint
        What to write.
    key
        The checksum of the run's configuration: a checkpoint of another run is not taken for this one's.
    position
        The place in the metrics.
    best
        Whether it is the best so far.
    keep
        How many of the newest the run keeps, for whoever goes on with it.
    """
    first, second = tensor_paths(folder, checkpoint.step)
    target, other = (second, first) if os.path.lexists(first) else (first, second)
    data, complex_names = _to_bytes(checkpoint.tensors)
    about = {"file": target.name, "sha256": digest(data), "bytes": len(data), "complex": complex_names}
    body = {
        "step": checkpoint.step,
        "run": key,
        "best": best,
        "keep": keep,
        "metrics": position.to_dict(),
        "tensors": about,
        "state": checkpoint.state,
    }
    write_atomic(target, data, named_durably=False)  # the next line makes both names durable
    write_document(document_path(folder, checkpoint.step), body)
    remove(other)


def read_checkpoint(folder: Path, step: int, key: str) -> Stored:
    """Read a checkpoint whose checksums hold and that belongs to the run, or raise `Damaged`."""
    body, path, data = checked_files(folder, step, key)
    loaded = _from_bytes(path, data, body["tensors"]["complex"])
    return Stored(Checkpoint(step, loaded, body["state"]), Position(**body["metrics"]), body["best"])


def checked_files(folder: Path, step: int, key: str) -> tuple[dict[str, Any], Path, bytes]:
    """Return the JSON of a checkpoint, the file of its tensors and what it holds, or raise `Damaged`."""
    document = document_path(folder, step)
    body, _ = read_document(document)
    if body["run"] != key:
        raise Damaged(f"{str(document)!r} belongs to another run")
    about = body["tensors"]
    by_name = {path.name: path for path in tensor_paths(folder, step)}
    if body["step"] != step or about["file"] not in by_name:
        raise Damaged(f"{str(document)!r} is that of another step, {body['step']}")
    path = by_name[about["file"]]
    data = read_bytes(path)
    if digest(data) != about["sha256"]:
        cut = len(data) != about["bytes"]
        what = f"it has {len(data)} of {about['bytes']} bytes" if cut else "it does not match its checksum"
        raise Damaged(f"{str(path)!r} is damaged: {what}")
    return body, path, data


def checked_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors by name, or raise the standard error when they are something else."""
    import torch

    for name, tensor in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise expected("the name of a tensor", "text other than '__metadata__'", name)
        if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
            raise expected(f"tensors[{name!r}]", "a dense tensor", type(tensor).__name__)
    return dict(tensors)


def _to_bytes(tensors: Mapping[str, Tensor]) -> tuple[bytes, list[str]]:
    import torch
    from safetensors.torch import save

    flat, complex_names = {}, []
    for name, tensor in tensors.items():
        own = tensor.detach().resolve_conj().resolve_neg()
        if own.is_complex():
            complex_names.append(name)
            own = torch.view_as_real(own)
        # Copied, since parameters may be views of one memory, which the format does not express.
        flat[name] = own.to("cpu", copy=True, memory_format=torch.contiguous_format)
    return save(flat), complex_names


def _from_bytes(path: Path, data: bytes, complex_names: list[str]) -> dict[str, Tensor]:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors = load(data)
    except (SafetensorError, KeyError, ValueError) as error:
        raise Damaged(f"{str(path)!r} does not hold tensors: {error}") from error
    return {name: torch.view_as_complex(own) if name in complex_names else own for name, own in tensors.items()}


class CheckpointFolder:
    """The checkpoints in a folder.

    Parameters
    ----------
    folder
        The run's folder of checkpoints; it need not exist.
    key
        The checksum of the run's configuration.
    keep
        How many of the newest are kept, beside the best and that of step 0; None: as many as the run kept before, 2
        where it is new.
    """

    def __init__(self, folder: Path, key: str, keep: int | None = None) -> None:
        self.folder, self.key = folder, key
        self._keep = keep

    @property
    def keep(self) -> int:
        """How many of the newest are kept: the newest checkpoint says what the run was told."""
        if self._keep is None:
            self._keep = next((kept for step in reversed(steps(self.folder)) if (kept := self._told(step))), _KEPT)
        return self._keep

    def _told(self, step: int) -> int:
        try:
            return int(read_document(document_path(self.folder, step))[0].get("keep", _KEPT))
        except UserError:
            return 0

    def write(self, checkpoint: Checkpoint, position: Position, *, best: bool) -> None:
        """Write a checkpoint, then remove those that are not kept."""
        make_folder(self.folder)
        before = steps(self.folder)
        if before and before[-1] > checkpoint.step:
            raise expected(
                "step", f"at least {before[-1]}, that of the newest checkpoint (see latest)", checkpoint.step
            )
        write_checkpoint(self.folder, checkpoint, key=self.key, position=position, best=best, keep=self.keep)
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

    def whole(self) -> Iterator[Stored]:
        """Yield every whole checkpoint, the oldest first; a damaged one is told of in a warning."""
        for step in steps(self.folder):
            if os.path.lexists(document_path(self.folder, step)):
                try:
                    yield read_checkpoint(self.folder, step, self.key)
                except Damaged as problem:
                    warn(f"{problem}; it is left out")

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
        old = [step for step in there[: -self.keep] if step > 0]  # what a run began with stays in its record
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
