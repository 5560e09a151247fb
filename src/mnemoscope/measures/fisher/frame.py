"""The frame in which a matrix network falls apart: blocks of U and V that do not talk to each other.

With unitary P and Q the network Y = P* X conj(Q) has the same noise, so nothing measured changes. Where U and V are
block diagonal in such a frame (every normal matrix is diagonal in its Schur frame), the pairs of blocks are networks
of their own, and what they remember adds up.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Float, Inexact
from scipy.sparse.csgraph import connected_components

__all__ = ["Group", "decoupled"]


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
