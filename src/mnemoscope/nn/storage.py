"""Networks on disk: safetensors, with name and options in the metadata. Nothing is ever unpickled."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as deserialised
from safetensors.torch import save as serialised
from torch import nn

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import read_regular, write_atomic
from mnemoscope.nn.network import Network, rebuild
from mnemoscope.nn.options import public_class
from mnemoscope.nn.registry import NETWORKS, card, get

__all__ = ["load", "load_weights", "safe_globals", "save", "weights_digest"]

FORMAT = "1"

_FEW = 8
"""Entries of an option that is a list, however few tensors there are."""


def save(layer: nn.Module, path: str | Path) -> None:
    """Write a registered network to `path` (safetensors): weights, name, options, type.

    Of a model that a training returns (``run.model``) its network is written, without embedding and readout.
    """
    layer = getattr(layer, "network_within", layer)
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
    memories = {tensor.untyped_storage().data_ptr() for tensor in tensors.values() if tensor.numel()}
    if len(memories) < sum(tensor.numel() > 0 for tensor in tensors.values()):
        raise UserError(f"weights of {own.name} share memory, which no file can tell; save its state_dict instead")
    try:
        content = serialised(tensors, metadata=metadata)
    except SafetensorError as error:
        raise UserError(f"{str(path)!r} cannot be written: {error}") from error
    write_atomic(path, content)


def load(path: str | Path, *, device: torch.device | str | None = None) -> Any:
    """Read a network that `save` wrote.

    The file may be a stranger's: nothing in it is run, and nothing is built that is larger than the tensors it holds.
    """
    try:
        content = read_regular(path)
        metadata, shapes = _header(content)
        tensors = deserialised(content)
    except FileNotFoundError:
        raise UserError(f"there is no file {str(path)!r}") from None
    except (OSError, SafetensorError, ValueError, RecursionError) as error:
        raise UserError(f"{str(path)!r} is not a whole safetensors file: {_brief(error)}") from error
    if metadata.get("mnemoscope_format") != FORMAT:
        came = metadata.get("mnemoscope_format", "none")
        raise UserError(f"{str(path)!r} must be a network saved by Mnemoscope (format {FORMAT}), got format {came}")
    try:
        options = _checked_options(metadata, len(shapes))
        # By its registered name only: a file from a stranger must not choose a Python file to run.
        build = partial(NETWORKS[metadata["network"]], **options, dtype=_number_type(metadata["dtype"]))
        _check_tensors(build(device="meta"), tensors)
        layer: Any = build(device=device, generator=torch.Generator())
        layer.remove_maps(tensors)
        layer.load_state_dict(tensors)
    except (KeyError, AttributeError, TypeError, ValueError, OverflowError, RecursionError, RuntimeError) as error:
        raise UserError(f"{str(path)!r} does not hold what its header says: {_brief(error)}") from error
    return layer


def load_weights(module: nn.Module, path: str | Path) -> None:
    """Fill a module with trained weights: safetensors, or a state_dict that torch.save wrote (weights_only=True).

    A state_dict within a checkpoint (under ``state_dict``, ``model`` or the like) is found, and what all names begin
    with (``model.``, ``module.``) may be missing in the module.
    """
    try:
        content = read_regular(path)
        if Path(path).suffix == ".safetensors":
            found: Any = deserialised(content)
        else:
            found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"there is no file {str(path)!r}") from None
    except pickle.UnpicklingError as error:  # torch's own words advise to run the file's code
        wanted = "a state_dict, which is read without running code; torch.save(module.state_dict(), ..) writes one"
        raise UserError(f"{str(path)!r} must hold {wanted}") from error
    except Exception as error:  # a broken archive makes torch.load raise errors of zip, pickle and torch alike
        what = "neither safetensors nor a state_dict that can be read"
        raise UserError(f"{str(path)!r} holds {what}: {_brief(error)}") from error
    for key in ("state_dict", "model_state_dict", "model", "net", "weights"):
        found = found[key] if isinstance(found, dict) and isinstance(found.get(key), dict) else found
    if not isinstance(found, dict) or not all(isinstance(value, torch.Tensor) for value in found.values()):
        raise UserError(f"{str(path)!r} must hold a state_dict, names and tensors, got a {type(found).__name__}")
    names = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    tensors = _renamed(found, names)
    for name, shape in names.items():
        if name not in tensors or tuple(tensors[name].shape) != shape:
            came = "none" if name not in tensors else str(tuple(tensors[name].shape))
            wanted = f"{str(path)!r} must have {name!r} of shape {shape}"
            raise UserError(f"{wanted}, got {came}: give the sizes that it was trained with")
    module.load_state_dict({name: tensors[name] for name in names})


def _renamed(found: dict[str, torch.Tensor], wanted: Collection[str]) -> dict[str, torch.Tensor]:
    """Return tensors without the words that stand before all wanted names, where that finds more of them."""
    dotted = [name.split(".") for name in found]
    starts = {".".join(parts[:count]) + "." for parts in dotted for count in range(1, len(parts))}
    options = [found, *({n.removeprefix(s): t for n, t in found.items() if n.startswith(s)} for s in sorted(starts))]
    return max(options, key=lambda each: sum(name in each for name in wanted))


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


def _header(content: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """Return metadata and descriptions of tensors: eight bytes with the length of a JSON document, and that."""
    length = int.from_bytes(content[:8], "little")
    if length > len(content) - 8:
        raise ValueError("it is cut off within its header")
    found = json.loads(content[8 : 8 + length])
    metadata = found.pop("__metadata__", None) if isinstance(found, dict) else None
    return metadata if isinstance(metadata, dict) else {}, found


def _checked_options(metadata: dict[str, str], tensors: int) -> dict[str, Any]:
    """Return the options, whose layers are no more than there are tensors: layers are built one by one."""
    options = json.loads(metadata["options"])
    if not isinstance(options, dict):
        raise TypeError("its options are no mapping")
    layers = options.get("num_layers", 1)
    listed = max((len(value) for value in options.values() if isinstance(value, list)), default=0)
    if not isinstance(layers, int) or max(layers, listed) > max(tensors, _FEW):
        raise ValueError(f"its options tell of more layers than its {tensors} tensors are for")
    return options


def _number_type(name: str) -> torch.dtype:
    found = getattr(torch, name)
    if not isinstance(found, torch.dtype):
        raise TypeError(f"{name} is no type of numbers")
    return found


def _check_tensors(empty: nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Raise unless the tensors are those of a network that was built without memory."""
    for name, own in empty.state_dict().items():
        if name in tensors and (tensors[name].dtype, tensors[name].shape) != (own.dtype, own.shape):
            there, here = ((tuple(one.shape), one.dtype) for one in (tensors[name], own))
            raise TypeError(f"{name} is {there[1]} of shape {there[0]}, not {here[1]} of shape {here[0]}")
    # A weight that a map makes may be there itself, in place of what the map makes it of.
    missing = [name for name in empty.state_dict() if name not in tensors and _mapped(name) not in tensors]
    if missing:
        raise KeyError(missing[0])


def _mapped(name: str) -> str | None:
    """Return the weight that a map makes of a parameter, ``parametrizations.NAME.original``."""
    head, _, rest = name.partition("parametrizations.")
    return head + rest.partition(".")[0] if rest else None


def _brief(error: Exception) -> str:
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(words.split())[:300] or type(error).__name__


def weights_digest(module: nn.Module) -> str:
    """Return 32 hexadecimal digits that stand for the weights of a module: names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        if isinstance(tensor, torch.Tensor):  # a module may keep other things there too
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
            digest.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:32]
