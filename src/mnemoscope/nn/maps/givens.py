"""V = D F_A F_B F_A ..: layers of Givens rotations of neighbouring pairs (EURNN)."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import expected
from mnemoscope.nn.maps.base import Transition, is_orthogonal
from mnemoscope.nn.maps.rotations import rotations

__all__ = ["Givens"]


class Givens(Transition):
    """V = D F_1 F_2 .. F_m: odd layers rotate the pairs (1,2), (3,4), .., even ones (2,3), (4,5), ..

    D holds signs, all +1 unless a matrix was assigned. With m = n layers every orthogonal matrix is reached (with
    its signs in D); with fewer, a subset of it that grows with m.
    """

    set_name: ClassVar[str] = "an orthogonal matrix that the chosen number of layers reaches"
    orthogonal_parameters = (0,)
    signs: Tensor

    def __init__(self, size: int, count: int) -> None:
        super().__init__(size)
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= size:
            raise expected("rotations", f"an integer from 1 to hidden_size = {size}", count)
        self.rotations = count
        self.register_buffer("signs", torch.ones(size))
        self._layers = tuple((k % 2, (size - k % 2) // 2) for k in range(count))  # first unit, pairs

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """One angle per pair: n(n-1)/2 for m = n."""
        return ((sum(pairs for _, pairs in self._layers),),)

    def draw(self, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        """Draw all angles from U(-pi, pi)."""
        self.signs.fill_(1.0)
        return (math.pi * (2 * torch.rand(self.shapes[0], generator=generator, dtype=torch.float64) - 1),)

    def map(self, *parameters: Tensor) -> Float[Tensor, "n n"]:
        """Return V, by applying the rotations to the identity."""
        return self.signs[:, None] * rotations(parameters[0], self._layers, self.size)

    def multiply(self, h: Float[Tensor, "*batch n"], *parameters: Tensor) -> Float[Tensor, "*batch n"]:
        """Return V h in O(m n)."""
        angles = torch.split(parameters[0], [pairs for _, pairs in self._layers])
        for (first, pairs), angle in reversed(list(zip(self._layers, angles, strict=True))):
            last = first + 2 * pairs
            x, y, cos, sin = h[..., first:last:2], h[..., first + 1 : last : 2], angle.cos(), angle.sin()
            turned = torch.stack([cos * x - sin * y, sin * x + cos * y], dim=-1).flatten(-2)
            h = torch.cat([h[..., :first], turned, h[..., last:]], dim=-1)
        return h * self.signs

    def contains(self, matrix: Float[Tensor, "n n"]) -> bool:
        """Whether V is orthogonal and, with fewer than n layers, whether layers that make it were found.

        With more than about eight layers, but fewer than n, rounding can hide them.
        """
        if not is_orthogonal(matrix):
            return False
        if self.rotations == self.size:
            return True
        _, rest = self._peel(matrix.double())
        return float(np.abs(np.abs(rest) - np.eye(self.size)).max()) <= math.sqrt(torch.finfo(matrix.dtype).eps)

    def solve(self, matrix: Float[Tensor, "n n"]) -> tuple[Tensor, ...]:
        """Return the angles of V."""
        if self.rotations < self.size:
            ordered, rest = self._peel(matrix)
            signs = np.sign(np.diag(rest))  # V = G_1 .. G_k D, and D moves to the front
            ordered = [(i, signs[i] * signs[i + 1] * angle) for i, angle in ordered]
            self.signs.copy_(torch.from_numpy(signs))
            return (torch.from_numpy(np.array([angle for _, angle in ordered])),)
        # For even n the decomposition begins with a layer of the second kind; that of V^T, read backwards, does not.
        turned = self.size % 2 == 0
        ordered, signs = _decompose(matrix.numpy().T if turned else matrix.numpy())
        if turned:  # V^T = D G_1 .. G_k, so V = G_k^T .. G_1^T D, and D moves to the front again
            ordered = [(i, -signs[i] * signs[i + 1] * angle) for i, angle in reversed(ordered)]
        self.signs.copy_(torch.from_numpy(signs))
        return (torch.from_numpy(self._lay_out(ordered)),)

    def _peel(self, matrix: Float[Tensor, "n n"]) -> tuple[list[tuple[int, float]], Float[np.ndarray, "n n"]]:
        """Take the layers off, front first; return the rotations and what is left: signs, if all is well.

        What the later layers can do shows in ranks: where, with random later layers, row i of what they make lies in
        the span of the rows before it (from some column on), the rotation of the pair (i, i+1) that is taken off must
        leave it there. Or else row i+1 in the span of the rows after it, up to some column.
        """
        rest = matrix.numpy().copy()
        ordered: list[tuple[int, float]] = []
        generator = torch.Generator().manual_seed(0)
        for layer, (first, pairs) in enumerate(self._layers):
            later = np.eye(self.size)
            for k in reversed(range(layer + 1, self.rotations)):
                later = self._layer(k, generator) @ later
            for i in range(first, first + 2 * pairs, 2):
                angle = _angle_into_span(later[: i + 1], rest[i : i + 2], rest[:i])
                if angle is None:  # the same from the other end, where the second row is the one to fit
                    turned = _angle_into_span(
                        later[:i:-1, ::-1], rest[i + 1 : i - 1 if i else None : -1, ::-1], rest[: i + 1 : -1, ::-1]
                    )
                    angle = 0.0 if turned is None else -turned
                rest[i : i + 2] = _rotation(angle).T @ rest[i : i + 2]
                ordered.append((i, angle))
        return ordered, rest

    def _layer(self, k: int, generator: torch.Generator) -> Float[np.ndarray, "n n"]:
        """Return layer k with random angles."""
        first, pairs = self._layers[k]
        draws = (2 * math.pi * torch.rand(pairs, generator=generator, dtype=torch.float64)).tolist()
        layer = np.eye(self.size)
        for i, angle in zip(range(first, first + 2 * pairs, 2), draws, strict=True):
            layer[i : i + 2, i : i + 2] = _rotation(angle)
        return layer

    def _lay_out(self, ordered: list[tuple[int, float]]) -> Float[np.ndarray, " angles"]:
        """Sort a product of rotations of neighbours into layers: each goes as far to the front as it can."""
        starts = np.cumsum([0, *(pairs for _, pairs in self._layers)])
        angles, front = np.zeros(starts[-1]), np.zeros(self.size, dtype=int)
        for i, angle in ordered:
            layer = max(front[i], front[i + 1])
            layer += (layer - i) % 2
            angles[starts[layer] + (i - layer % 2) // 2] = angle
            front[i] = front[i + 1] = layer + 1
        return angles


def _decompose(matrix: Float[np.ndarray, "n n"]) -> tuple[list[tuple[int, float]], Float[np.ndarray, " n"]]:
    """Return rotations (first unit, angle) and signs with V = D G_1 .. G_k.

    Entries are rotated away along anti-diagonals, from the right and from the left in turn (Clements et al., 2016).
    """
    rest, n = matrix.copy(), len(matrix)
    left: list[tuple[int, float]] = []
    right: list[tuple[int, float]] = []
    for diagonal in range(n - 1):
        for step in range(diagonal + 1):
            if diagonal % 2 == 0:  # columns (c, c+1) make entry (row, c) zero
                row, column = n - 1 - step, diagonal - step
                angle = math.atan2(rest[row, column], rest[row, column + 1])
                rest[:, column : column + 2] = rest[:, column : column + 2] @ _rotation(angle).T
                right.append((column, angle))
            else:  # rows (r-1, r) make entry (r, column) zero
                row, column = n - 1 - diagonal + step, step
                angle = math.atan2(rest[row, column], rest[row - 1, column])
                rest[row - 1 : row + 1] = _rotation(angle).T @ rest[row - 1 : row + 1]
                left.append((row - 1, angle))
    signs = np.sign(np.diag(rest))
    # V = L_1 .. L_j D R_k .. R_1, and D moves to the front: G(a) D = D G(s_i s_{i+1} a).
    return [(i, signs[i] * signs[i + 1] * angle) for i, angle in left] + right[::-1], signs


def _angle_into_span(
    generic: Float[np.ndarray, "rows n"], pair: Float[np.ndarray, "2 n"], before: Float[np.ndarray, "rows-1 n"]
) -> float | None:
    """Return t with cos t pair_1 + sin t pair_2 in the span of `before`, from the column on from which it must be.

    `generic` says so: its last row, from that column on, lies in the span of those before it. None: nowhere.
    """
    size, last = generic.shape[1], len(generic) - 1
    for column in range(last + 1, size):
        if _rank(generic[:, column:]) == _rank(generic[:-1, column:]) and np.abs(pair[:, column:]).max() > 1e-9:
            _, sizes, right = np.linalg.svd(before[:, column:], full_matrices=False)
            span = right[: int((sizes > 1e-9).sum())]
            outside = pair[:, column:] - pair[:, column:] @ span.T @ span
            if np.abs(outside).max() > 1e-9:
                left, _, _ = np.linalg.svd(outside)
                return math.atan2(left[1, 1], left[0, 1])
    return None


def _rank(matrix: Float[np.ndarray, "a b"]) -> int:
    return int(np.linalg.matrix_rank(matrix, tol=1e-9)) if matrix.size else 0


def _rotation(angle: float) -> Float[np.ndarray, "2 2"]:
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([[cos, -sin], [sin, cos]])
