"""The numbers that a polynomial network can be evaluated in: floats, residues modulo a prime, symbols.

A network written once as additions and products runs in each of them. Residues are what makes a rank exact: floats
cannot hold the entries of a deep network's grid, residues modulo a prime near 2^61 do not have to.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from mnemoscope.core.prime import PRIMES, Prime
from mnemoscope.core.ring_base import Ring, Shape, checked

__all__ = ["PRIMES", "Prime", "Real", "Ring", "Symbolic"]


class Real(Ring):
    """Float64."""

    dtype = np.dtype(np.float64)

    def array(self, values: Any) -> np.ndarray:
        """Return the values as float64, fractions rounded."""
        return checked(values).astype(np.float64)

    def rank(self, matrix: np.ndarray, tolerance: float | None = None) -> int:
        """Return how many singular values exceed `tolerance`, by default the rounding of the largest one."""
        return int(np.linalg.matrix_rank(matrix, tol=tolerance))


class Symbolic(Ring):
    """SymPy expressions in arrays of objects; floats become the rational numbers that they are."""

    dtype = np.dtype(object)

    def array(self, values: Any) -> np.ndarray:
        """Return the values as exact SymPy numbers; symbols and expressions stay as they are."""
        found = checked(values)
        return np.asarray(_EXACT(found), dtype=object).reshape(found.shape)

    def zeros(self, shape: Shape) -> np.ndarray:
        """Return an array of the symbolic zero."""
        return self.array(np.zeros(shape, dtype=np.int64))

    def ones(self, shape: Shape) -> np.ndarray:
        """Return an array of the symbolic one."""
        return self.array(np.ones(shape, dtype=np.int64))


def _exact(value: Any) -> Any:
    import sympy

    if isinstance(value, float):
        value = Fraction(value)
    if isinstance(value, Fraction):
        return sympy.Rational(value.numerator, value.denominator)
    return sympy.sympify(value.item() if isinstance(value, np.generic) else value)


_EXACT = np.frompyfunc(_exact, 1, 1)
