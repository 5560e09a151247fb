"""What every ring of numbers can do with NumPy arrays, and what it takes in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.core.errors import Description, UserError, expected

__all__ = ["Ring", "Shape", "checked"]

Shape = int | Sequence[int]


class Ring(ABC):
    """Arithmetic on NumPy arrays of one kind of number, which come from the same ring's `array`, `zeros` and `ones`."""

    dtype: np.dtype[Any]

    @abstractmethod
    def array(self, values: Any) -> np.ndarray:
        """Return NumPy, torch or nested lists of integers, floats and fractions as numbers of this ring."""

    def zeros(self, shape: Shape) -> np.ndarray:
        """Return an array of zeros."""
        return np.zeros(shape, dtype=self.dtype)

    def ones(self, shape: Shape) -> np.ndarray:
        """Return an array of ones."""
        return np.ones(shape, dtype=self.dtype)

    def add(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return a + b, with broadcasting."""
        return np.asarray(a + b, dtype=self.dtype)

    def mul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return a * b entry by entry, with broadcasting."""
        return np.asarray(a * b, dtype=self.dtype)

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the matrix product, with `numpy.matmul`'s rules for stacks of matrices and for vectors."""
        return np.asarray(np.matmul(a, b), dtype=self.dtype)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def checked(values: Any) -> np.ndarray:
    """Return anything as an array of integers, floats or objects; NaN and infinities are refused."""
    if hasattr(values, "detach"):  # a torch tensor, recognised without importing torch
        values = values.detach().cpu()
        values = (values.double() if values.is_floating_point() else values).numpy()
    found = np.asarray(values)
    if found.dtype.kind not in "biufO":
        raise expected("values", "an array of real numbers", Description(f"an array of {found.dtype}"))
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        bad = int(found.size - np.isfinite(found).sum())
        raise UserError(f"values must be finite, got {bad} NaN or infinite of {found.size} entries")
    return found
