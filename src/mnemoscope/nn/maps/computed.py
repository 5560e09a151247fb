"""Matrices that maps compute: read as tensors, never written in place, kept while their parameters stay."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from mnemoscope.core.errors import UserError
from mnemoscope.nn.ops.scan import transforming

__all__ = ["ComputedMatrix", "KeptMatrices", "guard"]

_HARMLESS = {"requires_grad_", "share_memory_", "rename_"}
_WRITING = {"__setitem__", *(f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "pow", "and", "or", "matmul"))}


class ComputedMatrix(Tensor):
    """A matrix made by a map: ``nn.init.orthogonal_(layer.weight_hh_l0)`` would change a tensor that nobody reads."""

    weight: str = "weight_hh_l0"
    free: bool = False
    """Whether it was detached: then it is the caller's, and may be written."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Refuse to be written in place; do all else as a plain tensor."""
        name = getattr(func, "__name__", "")
        target = args[0] if args else None
        writes = name in _WRITING or (name.endswith("_") and not name.endswith("__") and name not in _HARMLESS)
        target = (kwargs or {}).get("out") if not (writes and isinstance(target, cls)) else target
        if isinstance(target, cls) and not target.free:
            raise UserError(
                f"{target.weight} is computed from its parameters, and writing into it ({name or 'out='}) would change "
                f"nothing; set it by layer.{target.weight} = matrix"
            )
        with torch._C.DisableTorchFunctionSubclass():
            found = func(*args, **(kwargs or {}))
            if (
                name == "detach"
            ):  # of the same type: torch.nn.Parameter(V) asks for it when parametrisations are removed
                found = found.as_subclass(cls)
                found.free = True
            return found


def guard(layer: nn.Module, name: str) -> None:
    """Let the attribute `name` of a parametrised layer, whose class is its own, give a `ComputedMatrix`."""
    plain: Any = vars(type(layer))[name]

    def read(self: Any) -> Tensor:
        matrix: ComputedMatrix = plain.fget(self).as_subclass(ComputedMatrix)
        matrix.weight = name
        return matrix

    setattr(type(layer), name, property(read, plain.fset))


class KeptMatrices:
    """Matrices by name, with the parameters that they were computed from.

    Nobody tells when ``p.data.copy_()`` changes a parameter: values are compared, which takes a hundredth of a map.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[nn.Module, list[tuple[Any, str]], list[Tensor], Tensor]] = {}

    def matrix(self, name: str, parametrisation: nn.Module) -> Tensor:
        """Return the matrix that a parametrisation makes, without autograd."""
        kept = self._kept.get(name)
        if kept is not None and kept[0] is parametrisation and all(map(_same, kept[2], _tensors(kept[1]))):
            return kept[3]
        # To walk through the modules takes longer than to compare the values: places are kept, too.
        places = [
            (table, key)
            for part in parametrisation.modules()
            for table in (part._parameters, part._buffers)
            for key, tensor in table.items()
            if tensor is not None and tensor.numel()
        ]
        made: Tensor = parametrisation()
        self._kept[name] = parametrisation, places, [tensor.clone() for tensor in _tensors(places)], made
        return made

    @staticmethod
    def usable() -> bool:
        """Say whether values can be kept and compared: no gradient, transform, trace or fake tensor is at work."""
        if torch.compiler.is_compiling() or torch.is_grad_enabled() or transforming():
            return False
        fake = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)
        return fake is None and torch._C._get_tracing_state() is None


def _tensors(places: list[tuple[Any, str]]) -> list[Tensor]:
    return [table[key] for table, key in places]


def _same(kept: Tensor, now: Tensor) -> bool:
    alike = kept.dtype == now.dtype and kept.device == now.device and kept.shape == now.shape
    return alike and not now.is_meta and torch.equal(kept, now)
