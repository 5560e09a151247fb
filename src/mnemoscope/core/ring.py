"""Numbers that a polynomial network can be evaluated in: floats, residues modulo a prime, symbols.

A network written once as additions and products runs in each of them. Residues are what makes a rank exact: floats
cannot hold the entries of a deep network's grid, residues modulo a prime near 2^61 do not have to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from mnemoscope.core.errors import Description, UserError, expected, positive_int

__all__ = ["PRIMES", "Prime", "Real", "Ring", "Shape", "Symbolic", "checked"]

PRIMES = ((1 << 61) - 1, (1 << 61) - 31, (1 << 61) - 45, (1 << 61) - 229)
"""The largest primes below 2^61, in the order in which exact measures use them."""

_LIMIT = 1 << 61
_BLOCK = 1 << 13  # entries worked on at a time: all temporaries stay in the processor's cache
_LIMB = 21  # bits of a third of a residue
_DEPTH = 512  # terms of a product that float64 adds exactly: 3 x 512 x 2^42 < 2^53

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


class Prime(Ring):
    """Residues modulo a prime of at most 61 bits, in uint64 arrays.

    Products of two residues have 122 bits; they are reduced in three steps of 31 bits, each with a quotient that
    float64 gets right to one unit and a remainder in wrapping uint64 arithmetic. Matrix products split residues into
    thirds of 21 bits, whose float64 products are exact, so that BLAS does the work.

    Parameters
    ----------
    p
        The prime.

    Examples
    --------
    >>> field = Prime(PRIMES[0])
    >>> third = field.array(Fraction(1, 3))
    >>> int(field.mul(third, field.array(3)))
    1
    >>> field.rank(field.array([[1, 2], [2, 4.0]]))
    1
    """

    dtype = np.dtype(np.uint64)

    def __init__(self, p: int) -> None:
        self.p = positive_int("p", p)
        if not (self.p < _LIMIT and _is_prime(self.p)):
            raise expected("p", "a prime below 2^61", p)
        self._p = np.uint64(self.p)
        self._inverse = 1.0 / self.p

    def __repr__(self) -> str:
        return f"Prime({self.p})"

    def array(self, values: Any) -> np.ndarray:
        """Return the values modulo p: integers, floats as the exact rational numbers that they are, fractions."""
        found = checked(values)
        if found.dtype.kind in "bu":
            return np.asarray(found.astype(np.uint64) % self._p)
        if found.dtype.kind == "i":
            return np.asarray(np.mod(found.astype(np.int64), np.int64(self.p)).astype(np.uint64))
        if found.dtype.kind == "f":
            return self._of_floats(found.astype(np.float64))
        return np.asarray(np.frompyfunc(self._of_object, 1, 1)(found)).astype(np.uint64)

    def add(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return a + b modulo p, with broadcasting."""
        total = np.add(a, b)
        return np.asarray(np.minimum(total, total - self._p))

    def sub(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return a - b modulo p, with broadcasting."""
        difference = np.subtract(a, b)
        return np.asarray(np.minimum(difference, difference + self._p))

    def mul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return a * b modulo p entry by entry, with broadcasting."""
        blocks = np.nditer(
            [np.asarray(a, dtype=np.uint64), np.asarray(b, dtype=np.uint64), None],
            flags=["external_loop", "buffered", "zerosize_ok", "growinner"],
            op_flags=[["readonly"], ["readonly"], ["writeonly", "allocate"]],
            op_dtypes=[np.uint64] * 3,
            order="C",
            buffersize=_BLOCK,
        )
        with blocks:
            for x, y, out in blocks:
                for start in range(0, len(out), _BLOCK):
                    part = slice(start, start + _BLOCK)
                    out[part] = self._product(x[part], y[part])
            return np.asarray(blocks.operands[2])

    def power(self, base: np.ndarray, exponent: int) -> np.ndarray:
        """Return base ** exponent modulo p; negative exponents need base != 0."""
        exponent %= self.p - 1
        found, square = self.ones(np.shape(base)), np.asarray(base, dtype=np.uint64)
        while exponent:
            if exponent & 1:
                found = self.mul(found, square)
            square = self.mul(square, square)
            exponent >>= 1
        return found

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the matrix product modulo p, with `numpy.matmul`'s rules for stacks of matrices and for vectors."""
        a, b = np.asarray(a, dtype=np.uint64), np.asarray(b, dtype=np.uint64)
        if a.ndim == 1:
            return np.asarray(self.matmul(a[None], b)[..., 0, :])
        if b.ndim == 1:
            return np.asarray(self.matmul(a, b[:, None])[..., 0])
        if a.shape[-1] != b.shape[-2]:
            raise expected("the inner sizes of a matrix product", "equal", (a.shape, b.shape))
        if a.ndim > 2 and b.ndim == 2:
            return self.matmul(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[-1])
        parts = [
            self._matmul(a[..., start : start + _DEPTH], b[..., start : start + _DEPTH, :])
            for start in range(0, a.shape[-1], _DEPTH)
        ]
        found = parts[0] if parts else self.zeros((*a.shape[:-1], b.shape[-1]))
        for part in parts[1:]:
            found = self.add(found, part)
        return found

    def rank(self, matrix: np.ndarray) -> int:
        """Return the rank modulo p; the rank over the rational numbers is never smaller."""
        return int(self._flint(matrix).rank())

    def inverse(self, matrix: np.ndarray) -> np.ndarray:
        """Return the inverse of a square matrix modulo p."""
        try:
            found = self._flint(matrix).inv()
        except ZeroDivisionError:
            raise UserError(f"a matrix of shape {np.shape(matrix)} must be invertible modulo {self.p}") from None
        entries = np.frompyfunc(int, 1, 1)(np.array(found.entries(), dtype=object))
        return np.asarray(entries.astype(np.uint64).reshape(matrix.shape))

    def _flint(self, matrix: np.ndarray) -> Any:
        import flint

        rows, columns = matrix.shape
        return flint.nmod_mat(rows, columns, matrix.ravel().tolist(), self.p)

    def _of_floats(self, values: np.ndarray) -> np.ndarray:
        mantissa, exponent = np.frexp(values)
        whole = np.mod((mantissa * 2.0**53).astype(np.int64), np.int64(self.p)).astype(np.uint64)
        distinct, which = np.unique(exponent, return_inverse=True)
        powers = np.array([pow(2, int(e) - 53, self.p) for e in distinct], dtype=np.uint64)
        return self.mul(whole, powers[which].reshape(whole.shape))

    def _of_object(self, value: Any) -> int:
        exact = Fraction(value)
        if exact.denominator % self.p == 0:
            raise UserError(f"{value} has no residue modulo {self.p}, which divides its denominator")
        return exact.numerator * pow(exact.denominator, -1, self.p) % self.p

    def _product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return a * b mod p, of 61 x 61 bits: b's upper 30 bits first, moved up by 31, then its lower 31."""
        high = self._reduced(self._small(a, b >> np.uint64(31)))
        high = self._reduced(self._small(high, np.uint64(1 << 31)))
        low = self._reduced(self._small(a, b & np.uint64((1 << 31) - 1)))
        low += high
        return np.asarray(np.minimum(low, low - self._p))

    def _small(self, a: np.ndarray, b: Any) -> np.ndarray:
        """Return a * b minus a multiple of p, within one p of [0, p), negative numbers wrapped; b has up to 31 bits."""
        quotient = a.astype(np.float64)
        quotient *= b * self._inverse
        whole = quotient.astype(np.uint64)
        whole *= self._p
        return np.asarray(a * b - whole)

    def _reduced(self, wrapped: np.ndarray) -> np.ndarray:
        """Bring numbers of [-p, 2p), the negative ones wrapped around 2^64, into [0, p)."""
        wrapped = np.minimum(wrapped, wrapped + self._p)
        return np.asarray(np.minimum(wrapped, wrapped - self._p))

    def _matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the product of matrices with at most `_DEPTH` inner terms, in blocks of rows."""
        right = _convolution(_thirds(np.swapaxes(b, -1, -2)))
        if a.ndim > 2 or b.ndim > 2:
            return np.ascontiguousarray(np.swapaxes(self._combined(right, a), -1, -2))
        out = np.empty((a.shape[0], b.shape[1]), dtype=np.uint64)
        width = max(1, *b.shape)
        step = max(1, _BLOCK // width, width // 8)  # a large matrix is read once for each block of rows
        for start in range(0, a.shape[0], step):
            out[start : start + step] = self._combined(right, a[start : start + step]).T
        return out

    def _combined(self, right: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return (a b)^T = sum_s 2^(21 s) (sum_{i+j=s} a_i b_j)^T modulo p, by Horner's rule from the top."""
        left = np.concatenate(_thirds(np.swapaxes(a, -1, -2)), axis=-2)
        terms = np.split(np.matmul(right, left).astype(np.uint64), 5, axis=-2)
        found = terms[4]
        for term in terms[3::-1]:
            found = self._small(found, np.uint64(1 << _LIMB))
            found += term
            found += self._p  # not below zero, not above 4p: what the next quotient can start from
        return self._reduced(self._small(found, np.uint64(1)))


def _convolution(thirds: list[np.ndarray]) -> np.ndarray:
    """Return the blocks (s, i) = b_{s-i}, so that one product gives sum_{i+j=s} a_i b_j for every s."""
    nothing = np.zeros_like(thirds[0])
    rows = [[thirds[s - i] if 0 <= s - i < 3 else nothing for i in range(3)] for s in range(5)]
    return np.concatenate([np.concatenate(row, axis=-1) for row in rows], axis=-2)


def _thirds(residues: np.ndarray) -> list[np.ndarray]:
    mask = np.uint64((1 << _LIMB) - 1)
    shifts = (np.uint64(0), np.uint64(_LIMB), np.uint64(2 * _LIMB))
    return [np.asarray(((residues >> shift) & mask).astype(np.float64)) for shift in shifts]


def _is_prime(number: int) -> bool:
    """Decide by Miller and Rabin's test, which these bases make certain below 2^64."""
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if number in bases:
        return True
    if number < 2 or any(number % base == 0 for base in bases):
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(pow(base, odd, number), number, twos) for base in bases)


def _passes(x: int, number: int, twos: int) -> bool:
    """Tell whether x = base^odd squares to -1 within `twos` steps, or is 1 at once."""
    if x == 1:
        return True
    for _ in range(twos):
        if x == number - 1:
            return True
        x = x * x % number
    return False
