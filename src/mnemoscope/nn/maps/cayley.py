"""V = (I + A)^-1 (I - A), A skew: the Cayley transform, scaled by signs or phases, or around a moving base."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from jaxtyping import Float, Inexact
from torch import Tensor

from mnemoscope.core.errors import UserError, expected
from mnemoscope.nn.maps.base import is_orthogonal
from mnemoscope.nn.maps.functions import cayley
from mnemoscope.nn.maps.rebase import Rebased
from mnemoscope.nn.maps.skew import SkewTransition

__all__ = ["ComplexScaledCayley", "RebasedCayley", "ScaledCayley", "inverse_cayley"]


def inverse_cayley(matrix: Inexact[Tensor, "n n"]) -> Inexact[Tensor, "n n"]:
    """Return the A with cayley(A) = V; there is none when V has the eigenvalue -1."""
    if _has_minus_one(matrix):
        raise UserError(
            "the matrix must not have the eigenvalue -1 (after the scaling), where the Cayley transform "
            "has no inverse; rotate it a little, or use exprnn, whose map reaches it"
        )
    return cayley(matrix)


def _has_minus_one(matrix: Inexact[Tensor, "n n"]) -> bool:
    identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype)
    return bool(torch.linalg.svdvals(identity + matrix)[-1] < 1e-7)


class ScaledCayley(SkewTransition):
    """V = (I + A)^-1 (I - A) D, D = diag(+1, .., +1, -1, .., -1) with `negative` entries -1 (scoRNN)."""

    set_name: ClassVar[str] = "orthogonal with the determinant of D, and V D without the eigenvalue -1"
    signs: Tensor

    def __init__(self, size: int, negative: int, init: str = "cayley") -> None:
        super().__init__(size, "real", init)
        if isinstance(negative, bool) or not isinstance(negative, int) or not 0 <= negative <= size:
            raise expected("negative", f"an integer from 0 to {size}", negative)
        self.negative = negative
        self.register_buffer("signs", torch.ones(size))
        self._set_signs()

    def _set_signs(self) -> None:
        self.signs.fill_(1.0)[self.size - self.negative :] = -1.0

    def draw(self, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        """Draw A as `init` says."""
        self._set_signs()
        return super().draw(generator)

    def map(self, *parameters: Tensor) -> Float[Tensor, "n n"]:
        """Return cayley(A) D."""
        return cayley(self.algebra(*parameters)) * self.signs

    def curve(self, skew: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
        """Return cayley(A)."""
        return cayley(skew)

    def inverse_curve(self, matrix: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
        """Return the A with cayley(A) = V."""
        return inverse_cayley(matrix)

    def solve(self, matrix: Float[Tensor, "n n"]) -> tuple[Tensor, ...]:
        """Return the A of V D."""
        return self.coordinates(inverse_cayley(matrix * self.signs.to(matrix)))

    def contains(self, matrix: Float[Tensor, "n n"]) -> bool:
        """Whether V is orthogonal with the determinant of D, and V D has not the eigenvalue -1."""
        if not is_orthogonal(matrix):
            return False
        turned = matrix.double() * self.signs.double().cpu()
        return bool(torch.linalg.det(turned) > 0) and not _has_minus_one(turned)


class ComplexScaledCayley(SkewTransition):
    """V = (I + A)^-1 (I - A) diag(e^{i theta}), A skew-Hermitian, theta learned (scuRNN): n^2 + n parameters."""

    set_name: ClassVar[str] = "unitary"

    def __init__(self, size: int, init: str = "cayley") -> None:
        super().__init__(size, "complex", init)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Those of A, and theta."""
        return (*super().shapes, (self.size,))

    def map(self, *parameters: Tensor) -> Inexact[Tensor, "n n"]:
        """Return cayley(A) diag(e^{i theta})."""
        phases = parameters[3]
        return cayley(self.algebra(*parameters[:3])) * torch.complex(phases.cos(), phases.sin())

    def curve(self, skew: Inexact[Tensor, "n n"]) -> Inexact[Tensor, "n n"]:
        """Return cayley(A)."""
        return cayley(skew)

    def inverse_curve(self, matrix: Inexact[Tensor, "n n"]) -> Inexact[Tensor, "n n"]:
        """Return the A with cayley(A) = V."""
        return inverse_cayley(matrix)

    def draw(self, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        """Draw A as `init` says, and theta ~ U(0, 2 pi)."""
        theta = 2 * math.pi * torch.rand(self.size, generator=generator, dtype=torch.float64)
        return (*super().draw(generator), theta)

    def solve(self, matrix: Inexact[Tensor, "n n"]) -> tuple[Tensor, ...]:
        """Return A and one common theta: pi away from the middle of the widest gap between V's eigenvalues.

        The transform has no value at the eigenvalue -1, so V e^{-i theta} must have none near it.
        """
        angles = torch.linalg.eigvals(matrix).angle().sort().values
        gaps = torch.cat([angles[1:], angles[:1] + 2 * math.pi]) - angles
        widest = int(gaps.argmax())
        theta = torch.full((self.size,), float(angles[widest] + gaps[widest] / 2 - math.pi), dtype=torch.float64)
        return (*self.coordinates(inverse_cayley(matrix * torch.exp(-1j * theta))), theta)

    def contains(self, matrix: Inexact[Tensor, "n n"]) -> bool:
        """Whether V is unitary."""
        return is_orthogonal(matrix)


class RebasedCayley(Rebased):
    """V = B cayley(A), B <- V and A <- 0 after every step of the optimiser (full-capacity unitary network).

    At A = 0 the gradient with respect to A is that of the Riemannian descent of Wisdom et al. (2016), with the sign
    and the side that make it one: A = G V* - V G* on the left of V, here V* G - G* V on its right.
    """

    set_name: ClassVar[str] = "orthogonal (unitary over the complex field)"

    def __init__(self, size: int, field: str = "real", init: str = "random", project: bool = True) -> None:
        super().__init__(size, field, init, every=1, project=project)

    def curve(self, skew: Inexact[Tensor, "n n"]) -> Inexact[Tensor, "n n"]:
        """Return cayley(A)."""
        return cayley(skew)

    def inverse_curve(self, matrix: Inexact[Tensor, "n n"]) -> Inexact[Tensor, "n n"]:
        """Return the A with cayley(A) = V."""
        return inverse_cayley(matrix)

    def contains(self, matrix: Inexact[Tensor, "n n"]) -> bool:
        """Whether V is orthogonal, or unitary."""
        return is_orthogonal(matrix)
