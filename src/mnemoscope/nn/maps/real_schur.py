"""Real Schur forms whose diagonal blocks are of a wanted kind: V = P S P^T, S block lower triangular."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import scipy.linalg
from jaxtyping import Float

__all__ = ["paired_schur"]

Matrix = Float[np.ndarray, "n n"]
Accepts = Callable[[Matrix], bool]


def paired_schur(matrix: Matrix, accepts: Accepts) -> tuple[Matrix, Matrix]:
    """Return P, a rotation, and S = P^T V P with 2 x 2 blocks that `accepts` accepts, where there are such.

    The blocks of a Schur form depend on the order of the eigenvalues. LAPACK's order is tried first, then others. For
    odd n the last block is 1 x 1. When no order will do, the form in LAPACK's order is returned.
    """

    def fits(block: Matrix) -> bool:
        return accepts(block[::-1, ::-1])  # an upper form read from its end is a lower one

    basis = _lapack_order(matrix, fits)
    if not all(fits(block) for block in _blocks(basis.T @ matrix @ basis)):
        found = _deflate(matrix, fits)
        basis = basis if found is None else found
    basis = basis[:, ::-1].copy()
    if np.linalg.det(basis) < 0:
        basis[:, 0] *= -1
    return basis, basis.T @ matrix @ basis


def _blocks(upper: Matrix) -> list[Matrix]:
    first = len(upper) % 2
    return [upper[i : i + 2, i : i + 2] for i in range(first, len(upper), 2)]


def _lapack_order(matrix: Matrix, accepts: Accepts) -> Matrix:
    """Return the basis of SciPy's form with real eigenvalues in front, each two of them made one block."""
    upper, basis, _ = scipy.linalg.schur(matrix, output="real", sort=lambda re, im: im == 0)
    quarter = np.array([[0.0, -1.0], [1.0, 0.0]])  # keeps the diagonal equal and swaps the other two entries
    for i in range(len(matrix) % 2, len(matrix), 2):
        block = upper[i : i + 2, i : i + 2]
        turn = _equal_diagonal(block)
        if not accepts(turn.T @ block @ turn):
            turn = turn @ quarter
        basis[:, i : i + 2] = basis[:, i : i + 2] @ turn
    ordered: Matrix = basis
    return ordered


def _equal_diagonal(block: Matrix) -> Matrix:
    """Return the rotation R that makes the diagonal entries of R^T B R equal."""
    difference, coupling = (block[0, 0] - block[1, 1]) / 2, (block[0, 1] + block[1, 0]) / 2
    if difference == 0:
        return np.eye(2)
    angle = math.atan2(-difference, coupling) / 2
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def _deflate(matrix: Matrix, accepts: Accepts) -> Matrix | None:
    """Return a basis of an upper form with accepted blocks, one invariant subspace after the other; None: no luck."""
    size = len(matrix)
    if size == 0:
        return np.zeros((0, 0))
    width = size % 2 or 2
    for front in _lines(matrix) if width == 1 else _planes(matrix, accepts):
        basis, _ = np.linalg.qr(front, mode="complete")
        basis[:, :width] = front
        rest = _deflate((basis.T @ matrix @ basis)[width:, width:], accepts)
        if rest is not None:
            basis[:, width:] = basis[:, width:] @ rest
            return basis
    return None


def _lines(matrix: Matrix) -> Iterator[Float[np.ndarray, "n 1"]]:
    values, vectors = np.linalg.eig(matrix)
    for i in np.flatnonzero(values.imag == 0):
        line = vectors[:, i : i + 1].real
        yield line / np.linalg.norm(line)


def _planes(matrix: Matrix, accepts: Accepts) -> Iterator[Float[np.ndarray, "n 2"]]:
    """Yield orthonormal bases of invariant planes on which the matrix acts as an accepted block."""
    values, vectors = np.linalg.eig(matrix)
    spans = [np.stack([vectors[:, i].real, vectors[:, i].imag], 1) for i in np.flatnonzero(values.imag > 0)]
    tolerance = 1e-8 * max(1.0, float(np.abs(matrix).max()))
    for value in values[values.imag == 0].real:  # an eigenvalue that is there twice has a plane of its own
        _, sizes, right = np.linalg.svd(matrix - value * np.eye(len(matrix)))
        if (sizes < tolerance).sum() >= 2:
            spans.append(right[-2:].T)
    for span in spans:
        plane, _ = np.linalg.qr(span)
        plane = plane @ _equal_diagonal(plane.T @ matrix @ plane)
        if accepts(plane.T @ matrix @ plane):
            yield plane
