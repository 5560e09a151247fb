"""What comes in as NumPy, torch or lists goes on as float64 NumPy, checked once, with one form of error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from mnemoscope.core.errors import Description, UserError, expected

__all__ = ["matrix", "non_negative", "positive", "square", "vector"]


def matrix(name: str, value: Any) -> Float[np.ndarray, "rows columns"]:
    """Return `value` as a real float64 matrix without NaN or infinities, or raise the standard error."""
    found = _array(name, value)
    if found.ndim != 2 or 0 in found.shape:
        raise expected(name, "a matrix", Description(f"an array of shape {found.shape}"))
    return found


def square(name: str, value: Any, size: int | None = None) -> Float[np.ndarray, "n n"]:
    """Return `value` as a square float64 matrix (of the given size), or raise the standard error."""
    found = _array(name, value)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or found.size == 0:
        raise expected(name, "a square matrix", Description(f"an array of shape {found.shape}"))
    if size is not None and found.shape[0] != size:
        raise expected(name, f"of shape ({size}, {size})", found.shape)
    return found


def vector(name: str, value: Any, size: int | None = None) -> Float[np.ndarray, " n"]:
    """Return `value` as a float64 vector (of the given size); one row or one column counts as a vector."""
    found = _array(name, value)
    if found.ndim == 2 and 1 in found.shape:
        found = found.reshape(-1)
    if found.ndim != 1 or found.size == 0:
        raise expected(name, "a vector", Description(f"an array of shape {found.shape}"))
    if size is not None and found.shape[0] != size:
        raise expected(name, f"of length {size}", found.shape[0])
    return found


def positive(name: str, value: Any) -> float:
    """Return `value` as a float above zero, or raise the standard error."""
    found = _number(value)
    if found is None or not found > 0:
        raise expected(name, "a positive number", value)
    return found


def non_negative(name: str, value: Any) -> float:
    """Return `value` as a float of at least zero, or raise the standard error."""
    found = _number(value)
    if found is None or not found >= 0:
        raise expected(name, "a number of at least 0", value)
    return found


def _number(value: Any) -> float | None:
    if isinstance(value, bool | str):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _array(name: str, value: Any) -> np.ndarray:
    try:
        found = np.array(_from_torch(value) if hasattr(value, "detach") else value)
        if found.dtype.kind not in "biuf":
            raise TypeError
        found = found.astype(np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise expected(name, "an array of real numbers", value) from None
    if not np.isfinite(found).all():
        bad = int(np.size(found) - np.isfinite(found).sum())
        raise UserError(f"{name} must be finite, got {bad} NaN or infinite of {found.size} entries")
    return found


def _from_torch(tensor: Any) -> np.ndarray:
    """Return a tensor as an array: torch need not be imported for this. NumPy has no bfloat16."""
    plain = tensor.detach().to_dense().cpu().resolve_conj().resolve_neg()
    found: np.ndarray = (plain.double() if plain.is_floating_point() else plain).numpy()
    return found
