"""Maps around a base point that can be moved: V = B f(A)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Inexact
from torch import Tensor

from mnemoscope.core.errors import positive_int
from mnemoscope.nn.maps.functions import polar
from mnemoscope.nn.maps.skew import SkewTransition, random_orthogonal

__all__ = ["Rebased"]


class Rebased(SkewTransition):
    """V = B f(A) with f(0) = I: after every `every` steps of the optimiser B <- V and A <- 0.

    Parameters
    ----------
    size, field, init
        As `SkewTransition`.
    every
        Steps between two moves of the base; None keeps B = I.
    project
        Whether a moved base is projected onto the orthogonal matrices, so that rounding does not add up.
    """

    base: Tensor
    steps: Tensor

    def __init__(
        self, size: int, field: str = "real", init: str = "henaff", every: int | None = None, project: bool = True
    ) -> None:
        super().__init__(size, field, init)
        self.every = None if every is None else positive_int("rebase", every)
        self.project = project
        if every is not None:
            eye = torch.eye(size)
            # Complex numbers as pairs: a module that is cast to float64 must not lose their imaginary parts.
            self.register_buffer("base", eye if field == "real" else torch.stack([eye, torch.zeros_like(eye)], -1))
            self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def map(self, *parameters: Tensor) -> Inexact[Tensor, "n n"]:
        """Return B f(A)."""
        moved = self.curve(self.algebra(*parameters))
        return moved if self.every is None else self._base(moved.dtype) @ moved

    @torch.no_grad()
    def draw(self, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        """Draw A; with a moving base, the base becomes f(A) and A zero."""
        if self.every is None:
            return super().draw(generator)
        if self.init == "random":
            return self.move(random_orthogonal(self.size, generator, field=self.field))
        drawn = (p.to(self._like.device, torch.float64) for p in super().draw(generator))
        return self.move(self.curve(self.algebra(*drawn)))

    def solve(self, matrix: Inexact[Tensor, "n n"]) -> tuple[Tensor, ...]:
        """Return the A of V; with a moving base, the base becomes V and A zero."""
        return self.coordinates(self.inverse_curve(matrix)) if self.every is None else self.move(matrix)

    @torch.no_grad()
    def move(self, matrix: Inexact[Tensor, "n n"]) -> tuple[Tensor, ...]:
        """Move the base to `matrix`, and return the parameters that stay there: zeros."""
        self.base.copy_(matrix if self.field == "real" else torch.view_as_real(matrix.resolve_conj()))
        self.steps.zero_()
        return tuple(torch.zeros(shape, device=self.base.device) for shape in self.shapes)

    @torch.no_grad()
    def after_step(self, parameters: Sequence[Tensor]) -> None:
        """Count a step, and move the base when its time has come."""
        if self.every is None:
            return
        self.steps += 1
        if self.every > 1 and int(self.steps) < self.every:
            return
        matrix = self.forward(*parameters)
        for parameter, value in zip(parameters, self.move(polar(matrix) if self.project else matrix), strict=True):
            parameter.copy_(value)

    def _base(self, dtype: torch.dtype) -> Inexact[Tensor, "n n"]:
        base = self.base if self.field == "real" else torch.view_as_complex(self.base)
        return base.to(dtype)
