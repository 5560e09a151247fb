"""Networks on disk: safetensors, with name and options in the metadata. Nothing is ever unpickled."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialised
from torch import nn

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import write_atomic
from mnemoscope.nn.network import Network, rebuild
from mnemoscope.nn.options import public_class
from mnemoscope.nn.registry import NETWORKS, card, get

__all__ = ["load", "safe_globals", "save", "weights_digest"]

FORMAT = "1"


def save(layer: nn.Module, path: str | Path) -> None:
    """Write a registered network to `path` (safetensors): weights, name, options, type."""
    own = card(type(layer))
    if not isinstance(layer, Network) or own is None or get(own.name) is not public_class(type(layer)):
        raise UserError(
            f"only a registered network can be saved, got {type(layer).__name__}; save its state_dict instead"
        )
    try:
        options = json.dumps(layer.options)
    except TypeError:
        raise UserError(f"{own.name} has a part that no file can name; save its state_dict instead") from None
    metadata = {
        "mnemoscope_format": FORMAT,
        "network": own.name,
        "options": options,
        "dtype": str(next(layer.parameters()).dtype).removeprefix("torch."),
    }
    tensors = {name: tensor.detach().contiguous() for name, tensor in layer.state_dict().items()}
    try:
        content = serialised(tensors, metadata=metadata)
    except SafetensorError as error:
        raise UserError(f"{str(path)!r} cannot be written: {error}") from error
    write_atomic(path, content)


def load(path: str | Path, *, device: torch.device | str | None = None) -> Any:
    """Read a network that `save` wrote."""
    if not Path(path).is_file():
        raise UserError(f"there is no file {str(path)!r}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (OSError, SafetensorError) as error:
        raise UserError(f"{str(path)!r} is not a whole safetensors file: {error}") from error
    if metadata.get("mnemoscope_format") != FORMAT:
        came = metadata.get("mnemoscope_format", "none")
        raise UserError(f"{str(path)!r} must be a network saved by Mnemoscope (format {FORMAT}), got format {came}")
    try:
        dtype = getattr(torch, metadata["dtype"])
        options = json.loads(metadata["options"])
        # By its registered name only: a file from a stranger must not choose a Python file to run.
        layer: Any = NETWORKS[metadata["network"]](**options, dtype=dtype, device=device, generator=torch.Generator())
        layer.remove_maps(tensors)
        for name, own in layer.state_dict().items():
            if name in tensors and tensors[name].dtype != own.dtype:
                raise TypeError(f"{name} is {tensors[name].dtype}, not {own.dtype}")
        layer.load_state_dict(tensors)
    except (KeyError, AttributeError, TypeError, json.JSONDecodeError, RuntimeError) as error:
        raise UserError(f"{str(path)!r} does not hold what its header says: {' '.join(str(error).split())}") from error
    return layer


def safe_globals() -> list[Any]:
    """Return what `torch.load` needs to be allowed to read whole models that have our layers in them.

    Examples
    --------
    >>> import io, torch, mnemoscope as ms
    >>> file = io.BytesIO()
    >>> torch.save(ms.nn.ExpRNN(3, 4), file)
    >>> _ = file.seek(0)
    >>> with torch.serialization.safe_globals(ms.nn.safe_globals()):
    ...     layer = torch.load(file)
    """
    return [rebuild, *(NETWORKS[name] for name in NETWORKS)]


def weights_digest(module: nn.Module) -> str:
    """Return 32 hexadecimal digits that stand for the weights of a module: names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        if isinstance(tensor, torch.Tensor):  # a module may keep other things there too
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
            digest.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:32]
