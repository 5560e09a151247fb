"""V = D F_A F_B F_A ..: layers of Givens rotations of neighbouring pairs (EURNN)."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import expected
from mnemoscope.nn.transition.base import Transition, is_orthogonal

__all__ = ["Givens"]


class Givens(Transition):
    """V = D F_1 F_2 .. F_m: odd layers rotate the pairs (1,2), (3,4), .., even ones (2,3), (4,5), ..

    D holds signs, all +1 unless a matrix was assigned. With m = n layers every orthogonal matrix is reached (with
    its signs in D); with fewer, a subset of it that grows with m.
    """

    set_name: ClassVar[str] = "orthogonal, and the layers as many as hidden_size"
    orthogonal_parameters = (0,)
    signs: Tensor

    def __init__(self, size: int, rotations: int) -> None:
        super().__init__(size)
        if isinstance(rotations, bool) or not isinstance(rotations, int) or not 1 <= rotations <= size:
            raise expected("rotations", f"an integer from 1 to hidden_size = {size}", rotations)
        self.rotations = rotations
        self.register_buffer("signs", torch.ones(size))
        self._layers = [(k % 2, (size - k % 2) // 2) for k in range(rotations)]  # first unit, pairs

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """One angle per pair: n(n-1)/2 for m = n."""
        return ((sum(pairs for _, pairs in self._layers),),)

    def sample(self, generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
        """Draw all angles from U(-pi, pi)."""
        self.signs.fill_(1.0)
        return (math.pi * (2 * torch.rand(self.shapes[0], generator=generator, dtype=torch.float64) - 1),)

    def map(self, *parameters: Tensor) -> Float[Tensor, "n n"]:
        """Return V, by applying the rotations to the identity."""
        identity = torch.eye(self.size, dtype=parameters[0].dtype, device=parameters[0].device)
        return self.multiply(identity, *parameters).mT

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
        """Whether V is orthogonal; only the full number of layers has a known inverse."""
        return self.rotations == self.size and is_orthogonal(matrix)

    def solve(self, matrix: Float[Tensor, "n n"]) -> tuple[Tensor, ...]:
        """Return the angles of V: entries are rotated away along anti-diagonals, from both sides in turn."""
        rest, n = matrix.numpy().copy(), self.size
        left: list[tuple[int, float]] = []
        right: list[tuple[int, float]] = []
        for diagonal in range(n - 1):
            for step in range(diagonal + 1):
                if diagonal % 2 == 0:  # from the right: columns (c, c+1) make entry (row, c) zero
                    row, column = n - 1 - step, diagonal - step
                    angle = math.atan2(rest[row, column], rest[row, column + 1])
                    rest[:, column : column + 2] = rest[:, column : column + 2] @ _rotation(angle).T
                    right.append((column, angle))
                else:  # from the left: rows (r-1, r) make entry (r, column) zero
                    row, column = n - 1 - diagonal + step, step
                    angle = math.atan2(rest[row, column], rest[row - 1, column])
                    rest[row - 1 : row + 1] = _rotation(angle).T @ rest[row - 1 : row + 1]
                    left.append((row - 1, angle))
        signs = np.sign(np.diag(rest))
        # V = L_1 .. L_j D R_k .. R_1, and D moves to the front: G(a) D = D G(s_i s_{i+1} a).
        ordered = [(i, signs[i] * signs[i + 1] * angle) for i, angle in left] + right[::-1]
        self.signs.copy_(torch.from_numpy(signs))
        return (torch.from_numpy(self._lay_out(ordered)),)

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


def _rotation(angle: float) -> Float[np.ndarray, "2 2"]:
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([[cos, -sin], [sin, cos]])
