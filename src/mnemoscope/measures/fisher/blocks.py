"""Independent blocks of a matrix network, and the sum of what they remember.

With unitary P and Q the network Y = P* X conj(Q) has the same noise, so nothing measured changes. Where U and V are
block diagonal in such a frame (every normal matrix is diagonal in its Schur frame), the pairs of blocks are networks
of their own, and what they remember adds up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg
from jaxtyping import Float, Inexact
from scipy.sparse.csgraph import connected_components

from mnemoscope.measures.fisher.conventions import TAIL

__all__ = ["BLOCK", "BlockMemory", "Group", "Modes", "TotalMemory", "decoupled", "total_memory"]


@dataclass(frozen=True)
class Group:
    """Independent networks of one size: column-stacked step a kron b, source w, and their places in the state.

    `exact` says that the blocks are those of the given matrices, untouched by rounding.
    """

    a: Inexact[np.ndarray, "batch v v"]
    b: Inexact[np.ndarray, "batch u u"]
    w: Inexact[np.ndarray, "batch u v"]
    rows: Inexact[np.ndarray, "batch n u"]
    columns: Inexact[np.ndarray, "batch m v"]
    exact: bool

    @property
    def size(self) -> int:
        """How many numbers the state of each network has."""
        return int(self.w.shape[1] * self.w.shape[2])

    @property
    def places(self) -> Inexact[np.ndarray, "batch nm uv"]:
        """The orthonormal columns that carry each network's column-stacked state into that of the whole."""
        pairs: np.ndarray = np.einsum("gmv,gnu->gmnvu", self.columns, self.rows)
        return pairs.reshape(len(pairs), -1, self.size)


@dataclass(frozen=True)
class _Block:
    basis: Inexact[np.ndarray, "n k"]
    matrix: Inexact[np.ndarray, "k k"]
    exact: bool


def decoupled(
    U: Float[np.ndarray, "n n"], V: Float[np.ndarray, "m m"], W: Float[np.ndarray, "n m"], *, schur: bool = True
) -> list[Group]:
    """Split X = U^T X V + W s into independent networks, equal sizes together.

    Without `schur` only by the zeros of U and V, which rounds nothing.
    """
    pairs = defaultdict(list)
    right = _blocks(V.T, schur)
    for left in _blocks(U.T, schur):
        for other in right:
            shape = (*left.matrix.shape, *other.matrix.shape, left.exact and other.exact)
            pairs[shape].append((left, other))
    return [_group(W, members) for _, members in sorted(pairs.items(), key=lambda item: item[0])]


def _group(W: Float[np.ndarray, "n m"], members: list[tuple[_Block, _Block]]) -> Group:
    rows = np.stack([left.basis for left, _ in members])
    columns = np.stack([right.basis for _, right in members])
    return Group(
        a=np.stack([right.matrix for _, right in members]),
        b=np.stack([left.matrix for left, _ in members]),
        w=rows.conj().transpose(0, 2, 1) @ W @ columns.conj(),
        rows=rows,
        columns=columns,
        exact=all(left.exact and right.exact for left, right in members),
    )


def _blocks(matrix: Float[np.ndarray, "n n"], schur: bool) -> list[_Block]:
    found = []
    for places in _components(matrix != 0):
        basis = np.eye(len(matrix))[:, places]
        inner = matrix[np.ix_(places, places)]
        found.extend(_schur_blocks(basis, inner) if schur else [_Block(basis, inner, True)])
    return found


def _schur_blocks(basis: Float[np.ndarray, "n k"], matrix: Float[np.ndarray, "k k"]) -> list[_Block]:
    whole = _Block(basis, matrix, True)
    if len(matrix) == 1:
        return [whole]
    form, vectors = scipy.linalg.schur(matrix, output="complex")
    # The Schur form is that of a matrix this near to the given one; smaller entries say nothing.
    noise = 8 * len(matrix) * np.finfo(float).eps * np.linalg.norm(matrix, 2)
    parts = _components(np.abs(form) > noise)
    if len(parts) == 1:
        return [whole]
    return [_Block(basis @ vectors[:, part], np.triu(form[np.ix_(part, part)]), False) for part in parts]


def _components(linked: np.ndarray) -> list[np.ndarray]:
    count, label = connected_components(linked, directed=True, connection="weak")
    return [np.flatnonzero(label == part) for part in range(count)]


BLOCK = 128
"""How many lags are computed at once."""

_WORK = 2e12  # multiply-adds that the lags of one curve may take, beyond the first 4096


class BlockMemory(Protocol):
    """Networks that do not talk to the rest. Where several things are observed, each has its row."""

    work: float
    """Multiply-adds that each lag takes."""

    def advance(self, count: int) -> Float[np.ndarray, "observed count"]:
        """Return the information, at noise 1, about the next `count` lags: `BLOCK`, or fewer the last time."""

    def tail(self) -> Float[np.ndarray, " observed"]:
        """Return the information about all lags not yet asked for; only stationary networks are asked."""

    def defect(self) -> float:
        """Return by how much, relatively, trace(J^s) misses the number of observed units at worst."""

    def error(self) -> float:
        """Return an estimate of the relative error of the information, from all that is known."""

    def spatial(self) -> Inexact[np.ndarray, "batch n n"]:
        """Return J^s of each network, for its first observation."""


class Modes:
    """Single units x = mu x + b s + z, in closed form: J(k) = |b|^2 |mu|^2k / sum_m |mu|^2m."""

    def __init__(self, moduli: Float[np.ndarray, " m"], energy: Float[np.ndarray, " m"], horizon: int | None) -> None:
        self.work = float(len(moduli))
        self._lag = 0
        self._horizon = horizon
        self._count = len(moduli)
        with np.errstate(divide="ignore"):
            rate = 2 * np.log(moduli)
        self._all = rate
        keep = energy > 0
        self._rate, self._energy = rate[keep], energy[keep]

    def advance(self, count: int) -> Float[np.ndarray, "1 count"]:
        """Return the information about the next lags."""
        lags = np.arange(self._lag, self._lag + count)
        self._lag += count
        if self._horizon is None:
            found: np.ndarray = np.exp(_times(lags, self._rate)) @ (self._energy * -np.expm1(self._rate))
            self._forget()
        else:
            found = _share(lags, self._rate, self._horizon) @ self._energy
        return found[None]

    def _forget(self) -> None:
        """Drop modes of which nothing is left: few are slow, and they decide how long the curve is."""
        left = self._energy * np.exp(_times(np.array([self._lag]), self._rate))[0]
        keep = left > 1e-20 * self._energy.sum()
        self._rate, self._energy = self._rate[keep], self._energy[keep]

    def tail(self) -> Float[np.ndarray, " 1"]:
        """Return what the lags to come hold."""
        return np.array([np.exp(_times(np.array([self._lag]), self._rate))[0] @ self._energy])

    def defect(self) -> float:
        """The closed form misses nothing."""
        return 0.0

    def error(self) -> float:
        """Rounding of an eigenvalue counts as much as it is near to the unit circle."""
        nearest = np.abs(np.expm1(np.maximum(self._all, -1.0))).min(initial=1.0)
        steps = 1 / nearest if self._horizon is None else min(1 / max(nearest, 1e-300), self._horizon)
        return float(16 * np.finfo(float).eps * steps)

    def spatial(self) -> Float[np.ndarray, "m 1 1"]:
        """J^s = 1 for every single unit."""
        return np.ones((self._count, 1, 1))


@dataclass(frozen=True)
class TotalMemory:
    """Curves, totals and the shares of the totals beyond the curves, one row or entry per observation, at noise 1."""

    curves: Float[np.ndarray, "observed lags"]
    totals: Float[np.ndarray, " observed"]
    tails: Float[np.ndarray, " observed"]


def total_memory(parts: Sequence[BlockMemory], horizon: int | None, least: int) -> TotalMemory:
    """Add up the parts: all lags of a finite horizon, else `least` lags and on until the tail is below `TAIL`."""
    most = horizon if horizon is not None else _most_lags(parts)
    blocks: list[np.ndarray] = []
    done, so_far = 0, np.zeros(1)
    while done < most:
        count = min(BLOCK, most - done)
        blocks.append(np.sum([part.advance(count) for part in parts], axis=0))
        done, so_far = done + count, so_far + blocks[-1].sum(axis=1)
        if horizon is None and done >= least:
            tails = np.sum([part.tail() for part in parts], axis=0)
            if (tails <= TAIL / 2 * (so_far + tails)).all():
                break
    curves = np.concatenate(blocks, axis=1)
    if horizon is not None:
        return TotalMemory(curves, curves.sum(axis=1), np.zeros(len(curves)))
    tails = np.sum([part.tail() for part in parts], axis=0)
    return _trimmed(curves, tails, least)


def _trimmed(
    curves: Float[np.ndarray, "observed lags"], tails: Float[np.ndarray, " observed"], least: int
) -> TotalMemory:
    totals = curves.sum(axis=1) + tails
    after = np.cumsum(curves[:, ::-1], axis=1)[:, ::-1] + tails[:, None]  # what lag k and all later ones hold
    enough = np.flatnonzero((after <= TAIL * totals[:, None]).all(axis=0))
    length = max(least, int(enough[0])) if len(enough) else curves.shape[1]
    beyond = after[:, length] if length < curves.shape[1] else tails
    return TotalMemory(curves[:, :length], totals, np.maximum(beyond, 0) / totals)


def _most_lags(parts: Sequence[BlockMemory]) -> int:
    most = min(2**21, max(2**12, _WORK / sum(part.work for part in parts)))
    return BLOCK * int(most / BLOCK)


def _times(lags: np.ndarray, rate: Float[np.ndarray, " m"]) -> Float[np.ndarray, "lags m"]:
    """Return lag x rate, zero at lag zero also where the rate is -inf (a unit that forgets at once)."""
    with np.errstate(invalid="ignore"):
        return np.where(lags[:, None] == 0, 0.0, lags[:, None] * rate)


def _share(lags: np.ndarray, rate: Float[np.ndarray, " m"], horizon: int) -> Float[np.ndarray, "lags m"]:
    """Return q^k / sum_{m < n} q^m, q = exp(rate), without overflow where q > 1: there counted from the oldest lag."""
    grows = rate > 0
    decay = -np.abs(rate)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.where(decay == 0, horizon, np.expm1(_times(np.array([horizon]), decay)[0]) / np.expm1(decay))
    old = np.where(grows, horizon - 1 - lags[:, None], lags[:, None])
    with np.errstate(invalid="ignore"):
        exponent = np.where(old == 0, 0.0, old * decay)
    return np.exp(exponent) / total
