"""Checkpoints: tensors as safetensors, the rest as JSON with the SHA-256 of both; no pickle.

The JSON is written last, so that it stands for the checkpoint: without it, tensors of the same step mean nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemoscope.core.errors import expected
from mnemoscope.core.files import remove, write_atomic
from mnemoscope.runs.canonical import digest
from mnemoscope.runs.document import read_document, write_document
from mnemoscope.runs.errors import Damaged
from mnemoscope.runs.files import read_bytes
from mnemoscope.runs.metrics import Position

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Checkpoint",
    "Stored",
    "checked_files",
    "checked_tensors",
    "document_path",
    "read_checkpoint",
    "steps",
    "tensor_paths",
    "write_checkpoint",
]

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


def write_checkpoint(folder: Path, checkpoint: Checkpoint, *, key: str, position: Position, best: bool) -> None:
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
    """
    first, second = tensor_paths(folder, checkpoint.step)
    target, other = (second, first) if os.path.lexists(first) else (first, second)
    data, complex_names = _to_bytes(checkpoint.tensors)
    about = {"file": target.name, "sha256": digest(data), "bytes": len(data), "complex": complex_names}
    body = {
        "step": checkpoint.step,
        "run": key,
        "best": best,
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
