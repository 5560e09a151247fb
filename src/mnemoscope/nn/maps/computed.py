"""Matrices that maps compute: read as tensors, never written in place, kept while their parameters stay."""

from __future__ import annotations

import ctypes
import sys
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemoscope.core.errors import UserError
from mnemoscope.nn.ops.scan import transforming

__all__ = ["ComputedMatrix", "KeptMatrices", "guard"]

_HARMLESS = {"requires_grad_", "share_memory_", "rename_"}
_WRITING = {"__setitem__", *(f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "pow", "and", "or", "matmul"))}
_DATA: Any = Tensor.data
_OWN_MEMORY = (Tensor, nn.Parameter)
_MEMCMP = (ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)).memcmp
_MEMCMP.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class ComputedMatrix(Tensor):
    """A matrix made by a map: ``nn.init.orthogonal_(layer.weight_hh_l0)`` would change a tensor that nobody reads."""

    weight: str = "weight_hh_l0"
    free: bool = False
    """Whether it was detached: then it is the caller's, and may be written."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Refuse to be written in place, itself or a view of it; do all else as a plain tensor."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        for target in _written(func, name, args, kwargs):
            if isinstance(target, cls) and not target.free:
                how = {"__set__": "data =", "__setitem__": "[..] ="}.get(name, name)
                raise UserError(
                    f"{target.weight} is computed from its parameters, and writing into it ({how}) would change "
                    f"nothing; set it by layer.{target.weight} = matrix"
                )
        with torch._C.DisableTorchFunctionSubclass():
            found = func(*args, **kwargs)
            source = args[0] if args else None
            if not isinstance(source, cls):
                return found
            if name == "detach":  # torch.nn.Parameter(V) asks for the same type, when parametrisations are removed
                return source._mark(found, free=True)
            if source.free:
                return found
            if getattr(func, "__self__", None) is _DATA:
                return source._mark(found)
            if isinstance(found, tuple | list):
                return type(found)(source._mark(part) if _is_view_of(part, source) else part for part in found)
            return source._mark(found) if _is_view_of(found, source) else found

    def _mark(self, found: Tensor, free: bool = False) -> ComputedMatrix:
        marked = found.as_subclass(type(self))
        marked.weight, marked.free = self.weight, free
        return marked

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Be saved as the plain tensor that it is to everybody else."""
        with torch._C.DisableTorchFunctionSubclass():
            return self.as_subclass(Tensor).__reduce_ex__(protocol)  # type: ignore[no-untyped-call]

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """Be copied as that, too."""
        with torch._C.DisableTorchFunctionSubclass():
            return deepcopy(self.as_subclass(Tensor), memo)


def _written(func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """Return what a function of torch writes into, by its name: ``mul_``, ``__setitem__``, ``out=``, ``data =``."""
    found = [kwargs.get("out")]
    in_place = name.endswith("_") and not name.endswith("__") and name not in _HARMLESS
    if in_place or name in _WRITING or (name == "__set__" and func.__self__ is _DATA):
        found.append(args[0] if args else kwargs.get("tensor"))  # nn.init gives its tensor by name
    return [part for each in found for part in (each if isinstance(each, tuple | list) else [each])]


def _is_view_of(found: Any, source: Tensor) -> bool:
    """Say whether two tensors are views of one base."""
    if not isinstance(found, Tensor) or found._base is None:
        return False
    return found._base is (source if source._base is None else source._base)


def guard(layer: nn.Module, name: str) -> None:
    """Let the attribute `name` of a parametrised layer, whose class is its own, give a `ComputedMatrix`."""
    plain: Any = vars(type(layer))[name]

    def read(self: Any) -> Tensor:
        if torch.compiler.is_compiling():  # a graph has no room for this class, and is no place to write into V
            return plain.fget(self)  # type: ignore[no-any-return]
        matrix: ComputedMatrix = plain.fget(self).as_subclass(ComputedMatrix)
        matrix.weight = name
        return matrix

    setattr(type(layer), name, property(read, plain.fset))


class KeptMatrices:
    """Matrices by name, with the parameters that they were computed from.

    Nobody tells when ``p.data.copy_()`` changes a parameter: values are compared, which takes a hundredth of a map.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[nn.Module, list[_Kept], Tensor]] = {}

    def matrix(self, name: str, parametrisation: nn.Module) -> Tensor:
        """Return the matrix that a parametrisation makes, without autograd."""
        kept = self._kept.get(name)
        if kept is not None and kept[0] is parametrisation and all(map(_is_as_kept, kept[1])):
            return kept[2]
        # To walk through the modules takes longer than to compare the values: places are kept, too.
        copies = [
            _keep(table, key)
            for part in parametrisation.modules()
            for table in (part._parameters, part._buffers)
            for key, tensor in table.items()
            if tensor is not None and tensor.numel()
        ]
        made: Tensor = parametrisation()
        self._kept[name] = parametrisation, copies, made
        return made

    @staticmethod
    def usable() -> bool:
        """Say whether values can be kept and compared: no gradient, transform, trace or fake tensor is at work."""
        if torch.compiler.is_compiling() or torch.is_grad_enabled() or transforming():
            return False
        fake = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)
        return fake is None and torch._C._get_tracing_state() is None


class _Kept(NamedTuple):
    """A copy of a tensor, where the tensor stands, and where in memory the copy lies: nowhere if not in one piece."""

    table: Any
    key: str
    copy: Tensor
    dtype: torch.dtype
    shape: torch.Size
    address: int


def _keep(table: Any, key: str) -> _Kept:
    copy = table[key].clone()
    in_memory = copy.is_cpu and copy.is_contiguous() and type(copy) is Tensor
    return _Kept(table, key, copy, copy.dtype, copy.shape, copy.data_ptr() if in_memory else 0)


def _is_as_kept(kept: _Kept) -> bool:
    """Compare values; in memory byte by byte, which takes a fifth of the time of `torch.equal`."""
    table, key, copy, dtype, shape, address = kept
    now = table[key]
    if now.dtype != dtype or now.shape != shape:
        return False
    if address and now.is_cpu and type(now) in _OWN_MEMORY and now.is_contiguous():
        return bool(_MEMCMP(address, now.data_ptr(), now.nbytes) == 0)
    return now.device == copy.device and not now.is_meta and torch.equal(copy, now)
