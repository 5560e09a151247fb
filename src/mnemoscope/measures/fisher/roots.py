"""Coupled blocks in float64, from a square root of the covariance of what is seen of them.

All arrays carry a leading axis of independent networks of equal size, so that a network that falls apart into many
small ones costs no Python loop. Sums over powers of the step are built by doubling, on the root rather than on the sum:
the root keeps twice the digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.linalg
from jaxtyping import Float, Inexact

from mnemoscope.measures.fisher.blocks import BLOCK
from mnemoscope.measures.fisher.conventions import doublings

__all__ = [
    "Dense",
    "Kronecker",
    "Power",
    "Roots",
    "adjoint",
    "exact_roots",
    "published_roots",
    "sum_of_products",
    "sum_of_squares",
    "triangle",
]

Rows = Inexact[np.ndarray, "batch rows n"]
Columns = Inexact[np.ndarray, "batch n columns"]
P = TypeVar("P", bound="Power")

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
        for odd in doublings(horizon):
            block = _finite(grow(total, power))
            if horizon is None and negligible(block, total):
                break
            total, power = join(total, block), power.times(power)
            if odd:
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


_EPS = float(np.finfo(float).eps)


class Roots:
    """Networks of many units, as `BlockMemory`.

    Parameters
    ----------
    step
        One step of the state.
    sources
        Where the signal enters, one row per network.
    inputs
        On how many leading numbers of the state the noise acts.
    whiten
        For each observation a matrix L with L* L the inverse covariance of the leading numbers that are seen.
    information
        For each observation sum_k P^k* L* L P^k, on the whole state.
    rounding
        The relative error that rounding may have brought into `whiten`.
    lawful
        Whether the covariance is that of the network, so that trace(J^s) is the number of observed units.
    """

    def __init__(
        self,
        step: Power,
        sources: Inexact[np.ndarray, "batch n"],
        inputs: int,
        whiten: Sequence[Inexact[np.ndarray, "batch seen seen"]],
        information: Sequence[Inexact[np.ndarray, "batch n n"]],
        rounding: float,
        *,
        lawful: bool = True,
    ) -> None:
        self.work = float(len(sources) * sources.shape[1] ** 2)
        self._inputs, self._whiten, self._information = inputs, whiten, information
        self._rounding, self._lawful = rounding, lawful
        self._lags, self._ahead = sources[:, :, None], step

    def advance(self, count: int) -> Float[np.ndarray, "observed count"]:
        """Return the information about the next lags."""
        while self._lags.shape[2] < BLOCK:
            self._lags = np.concatenate([self._lags, self._ahead.apply(self._lags)], axis=2)
            self._ahead = self._ahead.times(self._ahead)
        now = self._lags[:, :, :count]
        found = [(np.abs(white @ now[:, : white.shape[1]]) ** 2).sum(axis=(0, 1)) for white in self._whiten]
        self._lags = self._ahead.apply(self._lags)
        return np.stack(found)

    def tail(self) -> Float[np.ndarray, " observed"]:
        """Return what the lags to come hold."""
        next_lag = self._lags[:, :, :1]
        return np.array([(next_lag.conj() * (held @ next_lag)).real.sum() for held in self._information])

    def defect(self) -> float:
        """Return how far trace(J^s) is from the number of observed units."""
        if not self._lawful:
            return 0.0
        pairs = zip(self._information, self._whiten, strict=True)
        return max(float(np.abs(self._trace(held) / white.shape[1] - 1).max()) for held, white in pairs)

    def error(self) -> float:
        """Return the larger of what the condition of the root lets one fear and what the trace shows.

        The factors were found on networks whose truth is known from ball arithmetic: the trace alone is up to four
        digits too hopeful, since errors of both signs cancel in it.
        """
        return max(10 * self._rounding, 30 * self.defect(), 16 * _EPS)

    def _trace(self, held: Inexact[np.ndarray, "batch n n"]) -> Float[np.ndarray, " batch"]:
        found: np.ndarray = np.diagonal(held, axis1=1, axis2=2)[:, : self._inputs].real.sum(axis=1)
        return found

    def spatial(self) -> Inexact[np.ndarray, "batch n n"]:
        """Return J^s on the units that the noise reaches."""
        return self._information[0][:, : self._inputs, : self._inputs]


def exact_roots(
    step: Kronecker | Dense,
    sources: Inexact[np.ndarray, "batch n"],
    inputs: int,
    observed: Sequence[int],
    horizon: int | None,
    *,
    squared: bool,
) -> Roots:
    """Return networks with noise on their first `inputs` numbers, of which the first `observed` are seen.

    `squared` forms the covariance instead of its root: faster, with half the digits.
    """
    size = sources.shape[1]
    start = np.broadcast_to(np.eye(inputs, size, dtype=sources.dtype), (len(sources), inputs, size))
    if squared:
        root = _cholesky(sum_of_products(adjoint(start) @ start, step.adjoint(), horizon))
    else:
        root = sum_of_squares(start, step.adjoint(), horizon)
    roots = [root if seen == size else triangle(root[:, :, :seen]) for seen in observed]
    whiten = [_inverse_adjoint(one) for one in roots]
    condition = max(_scaled_condition(*pair) for pair in zip(roots, whiten, strict=True))
    information = [_information(white, step, size, horizon, squared) for white in whiten]
    # What a covariance loses is the square of what its root loses.
    return Roots(step, sources, inputs, whiten, information, _EPS * (condition**2 if squared else condition))


def published_roots(
    a: Inexact[np.ndarray, "batch v v"],
    b: Inexact[np.ndarray, "batch u u"],
    sources: Inexact[np.ndarray, "batch n"],
    horizon: int | None,
) -> Roots:
    """Return networks whose covariance is taken for (sum_k A^k A^k*) kron (sum_k B^k B^k*), as Eq. 9 has it."""
    across, along = (
        sum_of_squares(np.broadcast_to(np.eye(one.shape[1]), one.shape), Dense(adjoint(one)), horizon) for one in (a, b)
    )
    whiten = _kronecker(_inverse_adjoint(across), _inverse_adjoint(along))
    condition = max(_scaled_condition(root, _inverse_adjoint(root)) for root in (across, along))
    size, step = sources.shape[1], Kronecker(a, b)
    information = _information(whiten, step, size, horizon, squared=True)
    return Roots(step, sources, size, [whiten], [information], 2 * _EPS * condition, lawful=False)


def _information(
    white: Inexact[np.ndarray, "batch seen seen"],
    step: Kronecker | Dense,
    size: int,
    horizon: int | None,
    squared: bool,
) -> Inexact[np.ndarray, "batch n n"]:
    """Return sum_k P^k* C^-1 P^k: what all lags together say about a source, C the covariance of what is seen."""
    rows = np.concatenate([white, np.zeros((*white.shape[:2], size - white.shape[2]), white.dtype)], axis=2)
    if squared:
        return sum_of_products(adjoint(rows) @ rows, step, horizon)
    root = sum_of_squares(rows, step, horizon)
    found: np.ndarray = adjoint(root) @ root
    return found


def _cholesky(covariance: Inexact[np.ndarray, "batch n n"]) -> Inexact[np.ndarray, "batch n n"]:
    try:
        return adjoint(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError as error:
        raise ArithmeticError("the covariance is not positive in float64") from error


def _inverse_adjoint(root: Inexact[np.ndarray, "batch n n"]) -> Inexact[np.ndarray, "batch n n"]:
    (invert,) = scipy.linalg.get_lapack_funcs(("trtri",), (root,))
    inverses, codes = zip(*(invert(one) for one in root), strict=True)
    if any(codes):
        raise ArithmeticError("the covariance is singular in float64")
    return adjoint(np.stack(inverses))


def _scaled_condition(root: Inexact[np.ndarray, "batch n n"], white: Inexact[np.ndarray, "batch n n"]) -> float:
    """Return the largest condition number of the roots with their columns brought to length 1."""
    lengths = np.linalg.norm(root, axis=1)
    scaled = np.linalg.norm(root / lengths[:, None, :], axis=(1, 2))
    inverse = np.linalg.norm(white * lengths[:, None, :], axis=(1, 2))
    return float((scaled * inverse / np.sqrt(root.shape[2])).max())


def _kronecker(
    a: Inexact[np.ndarray, "batch v v"], b: Inexact[np.ndarray, "batch u u"]
) -> Inexact[np.ndarray, "batch n n"]:
    size = a.shape[1] * b.shape[1]
    found: np.ndarray = np.einsum("gij,gkl->gikjl", a, b).reshape(len(a), size, size)
    return found
