"""Engine of matrix and queue networks: independent blocks, each in the cheapest arithmetic that leaves ten digits.

From cheap to dear: a closed form for single units, the square root of the covariance in float64, above 1024 coupled
numbers the covariance itself, and ball arithmetic up to 256 coupled numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Inexact

from mnemoscope.core.arrays import matrix, positive, square
from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.core.memory import allowance, require
from mnemoscope.measures.fisher.blocks import BlockMemory, Group, Modes, TotalMemory, decoupled, total_memory
from mnemoscope.measures.fisher.extended import LARGEST, Extended
from mnemoscope.measures.fisher.roots import Dense, Kronecker, exact_roots

__all__ = [
    "MatrixNetwork",
    "Measured",
    "cut_off",
    "matrix_memory",
    "matrix_network",
    "sources",
    "unstable",
]

_ROUNDING = 1e-13  # nearer to 1 than this a spectral radius cannot be told from 1


class MatrixNetwork(NamedTuple):
    """The network X = U^T X V + W s + Z, its source brought to the size of 1, and what that took.

    `unit` is the information, per noise 1 and scaled source, that is handed out; `energy` that of the source itself.
    """

    U: Float[np.ndarray, "n n"]
    V: Float[np.ndarray, "m m"]
    W: Float[np.ndarray, "n m"]
    noise: tuple[float, float]
    horizon: int | None
    unit: float

    @property
    def energy(self) -> float:
        """Return tr(W^T W) of the scaled source."""
        return float((self.W**2).sum())


def matrix_network(U: Any, V: Any, W: Any, noise: Any, horizon: Any) -> MatrixNetwork:
    """Check and convert the arguments that the measures share."""
    U, V = square("U", U), square("V", V)
    W = matrix("W", W)
    if W.shape != (len(U), len(V)):
        raise expected("W", f"of shape ({len(U)}, {len(V)}) to fit U and V", W.shape)
    if not W.any():
        raise UserError("W must have an entry other than 0, got zeros alone: no signal enters")
    variances = _noise(noise)
    if horizon is not None:
        horizon = positive_int("horizon", horizon)
        require(f"a curve of {horizon} lags", 32 * horizon, f"horizon={allowance() // 32} would fit")
    scale = 2.0 ** math.frexp(float(np.abs(W).max()))[1]  # squares of very large or small weights stay in range
    unit = scale * scale / variances[0] / variances[1]
    if not (math.isfinite(unit) and unit > 0):
        raise expected("noise", "of a size at which the information is a float64 number", variances)
    return MatrixNetwork(U, V, W / scale, variances, horizon, unit)


def unstable(radius: float) -> bool:
    """Return whether a spectral radius is 1 or more, as far as float64 can tell."""
    return radius >= 1 - _ROUNDING


def _noise(value: Any) -> tuple[float, float]:
    pair = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        raise expected("noise", "two positive variances, of rows and of columns", value)
    return positive("noise[0]", pair[0]), positive("noise[1]", pair[1])


SQUARED = 1024
"""Above this many state numbers the covariance is first formed and factored: QR of its root takes minutes."""

ENOUGH = 1e-10
"""With a larger error the next better arithmetic is tried; a large network that was formed stays at ten times that."""


@dataclass(frozen=True)
class Measured:
    """Memory at noise 1, with the arithmetic that found it and how far it can be trusted."""

    found: TotalMemory
    groups: list[Group]
    parts: list[BlockMemory]
    error: float
    self_check: float
    method: str


def matrix_memory(
    U: Float[np.ndarray, "n n"],
    V: Float[np.ndarray, "m m"],
    W: Float[np.ndarray, "n m"],
    weights: Sequence[float],
    observed: Sequence[int],
    horizon: int | None,
) -> Measured:
    """Measure X = U^T X V + W s + queue in the cheapest arithmetic that leaves ten digits, else in the best there is.

    `observed` says, for each observation, how many successive states are seen.
    """
    groups = decoupled(U, V, W)
    states = 1 + len(weights)
    largest = states * max(group.size for group in groups)
    _require_memory(groups, states)
    best = _attempt(groups, weights, observed, horizon, squared=largest > SQUARED)
    if best is not None and best.enough(10 * ENOUGH if largest > SQUARED else ENOUGH):
        return best.measured(horizon)
    whole = decoupled(U, V, W, schur=False)
    if states * max(group.size for group in whole) <= LARGEST:
        return _extended(whole, weights, observed, horizon).measured(horizon)
    if largest > SQUARED:
        rooted = _attempt(groups, weights, observed, horizon, squared=False)
        best = min((one for one in (best, rooted) if one is not None), key=lambda one: one.error(), default=None)
    if best is None or best.error() >= 1:
        raise UserError(
            f"float64 leaves no digit of the covariance of {largest} state numbers of this network, and extended "
            f"precision takes at most {LARGEST}; a shorter horizon or a smaller network may do"
        )
    return best.measured(horizon)


def sources(group: Group, states: int = 1) -> Inexact[np.ndarray, "batch n"]:
    """Return where the signal enters each network's column-stacked state and queue."""
    stacked = group.w.transpose(0, 2, 1).reshape(len(group.w), -1)
    return np.concatenate([stacked, np.zeros((len(stacked), (states - 1) * group.size), stacked.dtype)], axis=1)


def cut_off(tail: float) -> tuple[str, ...]:
    """Return a sentence where the curve of a slow network ends before its tail is negligible."""
    if tail <= 2e-12:
        return ()
    return (f"the curve is cut off where later lags still hold {tail:.2g} of the total; the total has them",)


def _require_memory(groups: list[Group], states: int) -> None:
    """Raise where the roots, their inverses, the information and what lies between would not fit."""
    cells = max(len(group.w) * (states * group.size) ** 2 * group.w.itemsize for group in groups)
    fits = math.isqrt(math.isqrt(allowance() // (8 * 8 * states**2)))
    largest = states * max(group.size for group in groups)
    require(f"the covariance of {largest} state numbers", 8 * cells, f"states of {fits} x {fits} would fit")


@dataclass(frozen=True)
class _Attempt:
    groups: list[Group]
    parts: list[BlockMemory]
    method: str

    def error(self) -> float:
        return max(part.error() for part in self.parts)

    def enough(self, error: float) -> bool:
        """Whether more bits would not help: those of a closed form come from the eigenvalues."""
        return all(isinstance(part, Modes) or part.error() <= error for part in self.parts)

    def measured(self, horizon: int | None) -> Measured:
        first = self.groups[0]
        return Measured(
            found=total_memory(self.parts, horizon, max(first.rows.shape[1], first.columns.shape[1])),
            groups=self.groups,
            parts=self.parts,
            error=self.error(),
            self_check=max(part.defect() for part in self.parts),
            method=self.method,
        )


def _attempt(
    groups: list[Group], weights: Sequence[float], observed: Sequence[int], horizon: int | None, *, squared: bool
) -> _Attempt | None:
    try:
        parts = [_part(group, weights, observed, horizon, squared=squared) for group in groups]
    except ArithmeticError:
        return None
    if all(group.size == 1 for group in groups):
        method = "closed form" if not weights else "modes"
    else:
        method = "covariance in float64" if squared else "square root in float64"
    return _Attempt(groups, parts, method)


def _part(
    group: Group, weights: Sequence[float], observed: Sequence[int], horizon: int | None, *, squared: bool
) -> BlockMemory:
    if group.size == 1 and not weights:
        return Modes(np.abs(group.a * group.b)[:, 0, 0], np.abs(group.w[:, 0, 0]) ** 2, horizon)
    step = _companion(group, weights) if weights else Kronecker(group.a, group.b)
    seen = [group.size * states for states in observed]
    return exact_roots(step, sources(group, 1 + len(weights)), group.size, seen, horizon, squared=squared)


def _companion(group: Group, weights: Sequence[float]) -> Dense:
    """Return the step of (X(n), X(n-1), .., X(n-p)): A kron B and the weights on top, the queue's shift below."""
    n, count = group.size, len(group.w)
    step = np.zeros((count, n * (1 + len(weights)), n * (1 + len(weights))), np.result_type(group.a, group.b))
    step[:, :n, :n] = np.einsum("gij,gkl->gikjl", group.a, group.b).reshape(count, n, n)
    for slot, weight in enumerate(weights, start=1):
        step[:, :n, slot * n : (slot + 1) * n] = weight * np.eye(n)
        step[:, slot * n : (slot + 1) * n, (slot - 1) * n : slot * n] = np.eye(n)
    return Dense(step)


def _extended(groups: list[Group], weights: Sequence[float], observed: Sequence[int], horizon: int | None) -> _Attempt:
    single = [one for group in groups for one in _single(group)]
    parts: list[BlockMemory] = [
        _part(one, weights, observed, horizon, squared=False)
        if one.size == 1 and not weights
        else Extended(one.a[0], one.b[0], one.w[0], weights, observed, horizon)
        for one in single
    ]
    return _Attempt(single, parts, "extended precision")


def _single(group: Group) -> list[Group]:
    """Return groups of one network each."""
    fields = ("a", "b", "w", "rows", "columns")
    return [replace(group, **{name: getattr(group, name)[i : i + 1] for name in fields}) for i in range(len(group.w))]
