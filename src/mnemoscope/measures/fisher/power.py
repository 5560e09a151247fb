"""Powers of a linear network's step, and sums over them by doubling: what every Fisher memory is made of.

All arrays carry a leading axis of independent networks of equal size, so that a network that falls apart into many
small ones costs no Python loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.linalg
from jaxtyping import Inexact

__all__ = ["Dense", "Kronecker", "Power", "adjoint", "sum_of_products", "sum_of_squares", "triangle"]

Rows = Inexact[np.ndarray, "batch rows n"]
Columns = Inexact[np.ndarray, "batch n columns"]
P = TypeVar("P", bound="Power")

_DOUBLINGS = 64  # 2^64 steps: more than a stable float64 matrix can need
_BLOCKED = 48  # from this size on LAPACK's triangular-pentagonal QR beats the batched one


class Power(Protocol):
    """A power P of the step, known by what it does to columns and to rows."""

    def apply(self, columns: Columns) -> Columns:
        """Return P times the columns."""

    def right(self, rows: Rows) -> Rows:
        """Return the rows times P."""

    def times(self: P, other: P) -> P:
        """Return the product of two powers of one step."""

    def adjoint(self: P) -> P:
        """Return the conjugate transpose."""


@dataclass(frozen=True)
class Kronecker:
    """P = A kron B, never multiplied out: a product with n columns costs n^2 (u + v) multiply-adds, n = u v."""

    a: Inexact[np.ndarray, "batch v v"]
    b: Inexact[np.ndarray, "batch u u"]

    def apply(self, columns: Columns) -> Columns:
        """Return P times the columns."""
        count, v, u, m = len(columns), self.a.shape[1], self.b.shape[1], columns.shape[2]
        across = (self.a @ columns.reshape(count, v, u * m)).reshape(count, v, u, m)
        found: np.ndarray = np.matmul(self.b[:, None], across).reshape(count, v * u, m)
        return found

    def right(self, rows: Rows) -> Rows:
        """Return the rows times P."""
        count, m, v, u = len(rows), rows.shape[1], self.a.shape[1], self.b.shape[1]
        along = (rows.reshape(count, m * v, u) @ self.b).reshape(count, m, v, u)
        found: np.ndarray = np.matmul(self.a.transpose(0, 2, 1)[:, None], along).reshape(count, m, v * u)
        return found

    def times(self, other: Kronecker) -> Kronecker:
        """Return the product, its two factors brought to one size: else one overflows while the other vanishes."""
        a, b = self.a @ other.a, self.b @ other.b
        sizes = np.abs(a).max(axis=(1, 2)), np.abs(b).max(axis=(1, 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log2(sizes[1] / sizes[0]) / 2
        shift = np.where(np.isfinite(ratio), np.round(np.nan_to_num(ratio)), 0.0)
        scale = np.exp2(shift)[:, None, None]  # a power of two rounds nothing
        return Kronecker(a * scale, b / scale)

    def adjoint(self) -> Kronecker:
        """Return the conjugate transpose."""
        return Kronecker(adjoint(self.a), adjoint(self.b))


@dataclass(frozen=True)
class Dense:
    """P as a matrix."""

    matrix: Inexact[np.ndarray, "batch n n"]

    def apply(self, columns: Columns) -> Columns:
        """Return P times the columns."""
        found: np.ndarray = self.matrix @ columns
        return found

    def right(self, rows: Rows) -> Rows:
        """Return the rows times P."""
        found: np.ndarray = rows @ self.matrix
        return found

    def times(self, other: Dense) -> Dense:
        """Return the product."""
        return Dense(self.matrix @ other.matrix)

    def adjoint(self) -> Dense:
        """Return the conjugate transpose."""
        return Dense(adjoint(self.matrix))


def adjoint(values: Inexact[np.ndarray, "batch rows columns"]) -> Inexact[np.ndarray, "batch columns rows"]:
    """Return the conjugate transpose of every matrix."""
    return values.conj().transpose(0, 2, 1)


def triangle(rows: Rows) -> Inexact[np.ndarray, "batch n n"]:
    """Return an upper triangular R with R* R = rows* rows."""
    missing = rows.shape[2] - rows.shape[1]
    if missing > 0:
        rows = np.concatenate([rows, np.zeros((len(rows), missing, rows.shape[2]), rows.dtype)], axis=1)
    return np.asarray(np.linalg.qr(rows, mode="r"))


def sum_of_squares(start: Rows, step: Power, horizon: int | None) -> Inexact[np.ndarray, "batch n n"]:
    """Return a root R of sum_k P^k* S* S P^k, S the rows of `start`, by QR of [R; R P] with P squared each time.

    The sum itself is never formed: its root keeps twice the digits.
    """

    def grow(root: Rows, power: Power) -> Rows:
        return power.right(root)

    def negligible(block: Rows, root: Rows) -> bool:
        smallest = np.abs(np.diagonal(root, axis1=1, axis2=2)).min(axis=1)
        return bool((np.linalg.norm(block, axis=(1, 2)) <= 1e-10 * smallest).all())

    return _doubled(triangle(start), step, horizon, grow, _stacked, negligible)


def sum_of_products(
    start: Inexact[np.ndarray, "batch n n"], step: Power, horizon: int | None
) -> Inexact[np.ndarray, "batch n n"]:
    """Return sum_k P^k* M P^k, M Hermitian: the fast way where the digits of a square suffice."""

    def grow(total: Rows, power: Power) -> Rows:
        return power.right(adjoint(power.right(total)))

    def negligible(block: Rows, total: Rows) -> bool:
        return bool(np.linalg.norm(block) <= 1e-18 * np.linalg.norm(total))

    return _doubled(start, step, horizon, grow, lambda total, block: total + block, negligible)


def _doubled(
    start: Rows,
    step: Power,
    horizon: int | None,
    grow: Callable[[Rows, Any], Rows],
    join: Callable[[Rows, Rows], Rows],
    negligible: Callable[[Rows, Rows], bool],
) -> Rows:
    total, power = start, step
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is told by _finite
        if horizon is None:
            for _ in range(_DOUBLINGS):
                block = _finite(grow(total, power))
                if negligible(block, total):
                    break
                total, power = join(total, block), power.times(power)
            return total
        for bit in format(horizon, "b")[1:]:
            total, power = join(total, _finite(grow(total, power))), power.times(power)
            if bit == "1":
                total, power = join(start, _finite(grow(total, step))), power.times(step)
    return total


def _stacked(root: Rows, block: Rows) -> Rows:
    if len(root) > 1 or root.shape[2] < _BLOCKED:
        return triangle(np.concatenate([root, block], axis=1))
    name = "ztpqrt" if np.iscomplexobj(root) or np.iscomplexobj(block) else "dtpqrt"
    found = getattr(scipy.linalg.lapack, name)(0, min(64, root.shape[2]), root[0], block[0])
    return np.ascontiguousarray(np.triu(found[0]))[None]


def _finite(values: Rows) -> Rows:
    if not np.isfinite(values).all():
        raise OverflowError("a power of the step leaves float64")
    return values
