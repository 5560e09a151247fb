"""V = H_1 H_2 .. H_m D: a product of m Householder reflections (oRNN)."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import expected
from mnemoscope.nn.maps.base import Transition, is_orthogonal

__all__ = ["Householder"]


class Householder(Transition):
    """V = H_1 .. H_m D, H_k = I - 2 u_k u_k^T / |u_k|^2, u_k zero in its first k-1 entries, D diagonal signs.

    With m = n every orthogonal matrix is reached; with fewer, those whose QR decomposition needs only m reflections.
    The product is never formed one by one: with unit vectors u_k as the rows of U, and T the upper triangle of U U^T
    with its diagonal halved, H_1 .. H_m = I - U^T T^-1 U.
    """

    set_name: ClassVar[str] = "an orthogonal matrix that the chosen number of reflections reaches"
    orthogonal_parameters = (0,)
    signs: Tensor

    def __init__(self, size: int, reflections: int) -> None:
        super().__init__(size)
        if isinstance(reflections, bool) or not isinstance(reflections, int) or not 1 <= reflections <= size:
            raise expected("reflections", f"an integer from 1 to hidden_size = {size}", reflections)
        self.reflections = reflections
        self._upper = tuple(torch.triu_indices(reflections, size, device="cpu"))
        self.register_buffer("signs", torch.ones(size))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """All entries of the vectors that may differ from zero: m n - m (m-1) / 2."""
        return ((len(self._upper[0]),),)

    def draw(self, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        """Draw reflections that turn each axis into a uniform direction: for m = n, V is uniform.

        D is the identity then, and the determinant of V is that of m reflections, (-1)^m.
        """
        vectors = torch.randn(self.reflections, self.size, generator=generator, dtype=torch.float64).triu()
        vectors = vectors / vectors.norm(dim=1, keepdim=True)
        vectors.diagonal().sub_(1.0)
        if self.reflections == self.size:
            vectors[-1, -1] = 1.0  # on one axis there is but one reflection
        self.signs.fill_(1.0)
        return self._pack(vectors)

    def map(self, *parameters: Tensor) -> Float[Tensor, "n n"]:
        """Return V, by applying the reflections to the identity."""
        return self._reflect(torch.diag(self.signs).to(parameters[0].dtype), *self._compact(parameters[0]))

    def multiply(self, h: Float[Tensor, "*batch n"], *parameters: Tensor) -> Float[Tensor, "*batch n"]:
        """Return V h in O(m n)."""
        return self._reflect((h * self.signs).mT, *self._compact(parameters[0])).mT

    def solve(self, matrix: Float[Tensor, "n n"]) -> tuple[Tensor, ...]:
        """Return the reflections that make V triangular, which leaves the signs."""
        vectors, rest = self._decompose(matrix)
        self.signs.copy_(rest.diagonal().sign())
        return self._pack(vectors)

    def contains(self, matrix: Float[Tensor, "n n"]) -> bool:
        """Whether V is orthogonal and nothing but signs is left after m reflections."""
        if not is_orthogonal(matrix):
            return False
        _, rest = self._decompose(matrix.double())
        return _distance_from_signs(rest) <= math.sqrt(torch.finfo(matrix.dtype).eps)

    def _decompose(self, matrix: Float[Tensor, "n n"]) -> tuple[Float[Tensor, "m n"], Float[Tensor, "n n"]]:
        """Return the reflections and what they leave.

        Each may leave either sign. The one away from cancellation is the more exact, but with few reflections only the
        present signs may lead back to the present matrix; the choice that leaves less is taken.
        """
        free = self._reduce(matrix, None)
        if _distance_from_signs(free[1]) < 1e-12:
            return free
        kept = self._reduce(matrix, self.signs.to(matrix))
        return min(free, kept, key=lambda found: _distance_from_signs(found[1]))

    def _reduce(
        self, matrix: Float[Tensor, "n n"], signs: Float[Tensor, " n"] | None
    ) -> tuple[Float[Tensor, "m n"], Float[Tensor, "n n"]]:
        rest, vectors = matrix.clone(), torch.zeros(self.reflections, self.size, dtype=matrix.dtype)
        for k in range(self.reflections):
            column = rest[:, k].clone()
            column[:k] = 0
            left = -1.0 if column[k] >= 0 else 1.0
            column[k] -= column.norm() * (left if signs is None else float(signs[k]))
            vectors[k] = column
            unit = column / column.norm()
            rest = rest - 2 * torch.outer(unit, unit @ rest)
        return vectors, rest

    def _pack(self, vectors: Float[Tensor, "m n"]) -> tuple[Tensor, ...]:
        return (vectors[self._upper],)

    def _compact(self, packed: Tensor) -> tuple[Float[Tensor, "m n"], Float[Tensor, "m m"]]:
        zero = packed.new_zeros(self.reflections, self.size)
        vectors = zero.index_put(self._upper, packed)
        vectors = vectors / torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
        gram = vectors @ vectors.mT
        return vectors, gram.triu(1) + 0.5 * torch.eye(self.reflections, dtype=packed.dtype, device=packed.device)

    def _reflect(
        self, columns: Float[Tensor, "n any"], vectors: Float[Tensor, "m n"], triangle: Float[Tensor, "m m"]
    ) -> Float[Tensor, "n any"]:
        inner: Tensor = torch.linalg.solve_triangular(triangle, vectors @ columns, upper=True)
        return columns - vectors.mT @ inner


def _distance_from_signs(matrix: Float[Tensor, "n n"]) -> float:
    distance = float((matrix - torch.diag(matrix.diagonal().sign())).abs().max())
    return math.inf if math.isnan(distance) else distance
