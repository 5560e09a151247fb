"""V = W_1 S W_2^T: orthogonal factors, singular values within a margin of 1 (Vorontsov et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import expected
from mnemoscope.nn.maps.base import Transition
from mnemoscope.nn.maps.cayley import RebasedCayley

__all__ = ["Factorised"]


class Factorised(Transition):
    """V = W_1 diag(s) W_2^T, W_1 and W_2 orthogonal, s_i = 1 + 2 m (sigmoid(p_i) - 1/2) in [1 - m, 1 + m].

    The factors move by the Cayley transform around a base that follows them (`after_step`).
    """

    set_name: ClassVar[str] = "a matrix with singular values strictly within 1 - margin and 1 + margin"
    orthogonal_parameters = (0, 1)

    def __init__(self, size: int, margin: float, init: str = "random") -> None:
        super().__init__(size)
        if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 <= margin <= 1:
            raise expected("margin", "a number between 0 and 1", margin)
        self.margin = float(margin)
        self.left = RebasedCayley(size, init=init)
        self.right = RebasedCayley(size, init="identity")

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The skew coordinates of both factors, and p: n^2 in all."""
        return (*self.left.shapes, *self.right.shapes, (self.size,))

    def draw(self, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        """Start orthogonal: W_1 as `init` says, W_2 = I, s = 1."""
        left, right = self.left.draw(generator), self.right.draw(generator)
        return (*left, *right, torch.zeros(self.size))

    def map(self, *parameters: Tensor) -> Float[Tensor, "n n"]:
        """Return W_1 diag(s) W_2^T."""
        singular = 1 + 2 * self.margin * (torch.sigmoid(parameters[2]) - 0.5)
        return (self.left.map(parameters[0]) * singular) @ self.right.map(parameters[1]).mT

    def solve(self, matrix: Float[Tensor, "n n"]) -> tuple[Tensor, ...]:
        """Return the factors of the singular value decomposition."""
        left, singular, right = torch.linalg.svd(matrix)
        share = (singular - 1) / (2 * self.margin) + 0.5 if self.margin else torch.full_like(singular, 0.5)
        return (*self.left.solve(left), *self.right.solve(right.mT), torch.logit(share))

    def contains(self, matrix: Float[Tensor, "n n"]) -> bool:
        """Whether all singular values are strictly within the margin (equal to 1 when it is zero)."""
        distance = float((torch.linalg.svdvals(matrix.double()) - 1).abs().max())
        return distance < self.margin or distance <= torch.finfo(matrix.dtype).eps ** 0.5 * (self.margin == 0)

    def after_step(self, parameters: Sequence[Tensor]) -> None:
        """Move the bases of both factors."""
        self.left.after_step(parameters[:1])
        self.right.after_step(parameters[1:2])
