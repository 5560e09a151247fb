"""Base of the maps from unconstrained parameters to the matrix between two hidden states."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Inexact
from torch import Tensor, nn
from torch.nn.utils import parametrize

from mnemoscope.core.errors import Description, expected
from mnemoscope.nn.maps.computed import guard

__all__ = ["Transition", "gram_error", "is_orthogonal"]


class Transition(nn.Module, ABC):
    """A parametrisation of a set of n x n matrices.

    `shapes` are those of its unconstrained parameters, `sample` draws them, `map` makes the matrix from them,
    `solve` finds those of a given matrix, `contains` says whether there are any. It is attached to a weight of a
    layer with `torch.nn.utils.parametrize`, so that reading the weight computes the map and assigning to it
    inverts it.
    """

    set_name: ClassVar[str] = "a matrix"
    """What `contains` asks for, in words: used in the error of an assignment."""

    orthogonal_parameters: tuple[int, ...] = ()
    """Which of the parameters move an orthogonal matrix and so take the smaller learning rate."""

    field: str = "real"
    _like: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        # Remembers type and device, as the parameters themselves live in the layer.
        self.register_buffer("_like", torch.empty(0), persistent=False)

    @property
    @abstractmethod
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the unconstrained parameters."""

    @abstractmethod
    def draw(self, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        """Draw the parameters of a random member of the set, as the literature starts training, on the CPU."""

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
        """Draw the parameters of a random member of the set, in this transition's own type.

        Where the map has a base, signs or an order beside them, these are drawn with them and set.
        """
        return tuple(p.to(device=self._like.device, dtype=self._like.dtype) for p in self.draw(generator))

    @abstractmethod
    def map(self, *parameters: Tensor) -> Inexact[Tensor, "n n"]:
        """Return the matrix V."""

    @abstractmethod
    def solve(self, matrix: Inexact[Tensor, "n n"]) -> tuple[Tensor, ...]:
        """Return parameters whose map is `matrix` (double precision, on the CPU)."""

    @abstractmethod
    def contains(self, matrix: Inexact[Tensor, "n n"]) -> bool:
        """Say whether `matrix` is in the set, to half the digits of its type."""

    def forward(self, *parameters: Tensor) -> Inexact[Tensor, "n n"]:
        """Return V; from 16-bit parameters it is computed in float32 and rounded once, where it is real."""
        dtype = parameters[0].dtype
        if dtype.itemsize >= 4:
            return self.map(*parameters)
        made = self.map(*(p.float() for p in parameters))
        return made if made.is_complex() else made.to(dtype)

    def multiply(self, h: Inexact[Tensor, "*batch n"], *parameters: Tensor) -> Inexact[Tensor, "*batch n"]:
        """Return V h for every row of `h`, without building V where that is cheaper."""
        return h @ self.forward(*parameters).mT

    def right_inverse(self, matrix: Any) -> tuple[Tensor, ...]:
        """Return the parameters of `matrix`, or raise one line that says what the matrix must be."""
        like = self._like
        complex_field = self.field == "complex"
        given = torch.as_tensor(matrix).detach().cpu()
        if given.shape != (self.size, self.size):
            raise expected("the matrix", f"of shape {(self.size, self.size)}", tuple(given.shape))
        if given.is_complex() and not complex_field:
            raise expected("the matrix", "real", given.dtype)
        # Membership is judged with the digits that the caller's matrix has, the parameters found with all.
        if not torch.isfinite(given).all() or not self.contains(given if given.is_floating_point() else given + 0.0):
            raise expected("the matrix", self.set_name, Description(_what_is_wrong(given)))
        found = self.solve(given.to(torch.complex128 if complex_field else torch.float64))
        return tuple(p.to(device=like.device, dtype=like.dtype) for p in found)

    def attach(self, layer: nn.Module, name: str) -> None:
        """Make the weight `name` of `layer` a function of this transition's parameters, still unset."""
        empty = [torch.empty(shape, device=self._like.device, dtype=self._like.dtype) for shape in self.shapes]
        layer.register_parameter(name, nn.Parameter(torch.empty(0)))
        # Registration inverts the present value to learn the parameters' shapes; here they are known before it.
        vars(self)["right_inverse"] = lambda _: empty
        parametrize.register_parametrization(layer, name, self, unsafe=True)
        del vars(self)["right_inverse"]
        guard(layer, name)

    @torch.no_grad()
    def reset(self, parameters: Sequence[Tensor], generator: torch.Generator | None = None) -> None:
        """Draw the parameters anew, in place."""
        for parameter, value in zip(parameters, self.draw(generator), strict=True):
            parameter.copy_(value)

    def follow(self, parameters: Sequence[Tensor]) -> None:
        """Take type and device of parameters that were put in the place of others."""
        for part in self.modules():
            if isinstance(part, Transition):
                part._like = parameters[0].detach().new_empty(0)

    def orthogonal(self, parameters: Sequence[Tensor]) -> list[Tensor]:
        """Return the parameters that move an orthogonal matrix."""
        return [parameters[i] for i in self.orthogonal_parameters]

    def penalty(self, parameters: Sequence[Tensor]) -> Float[Tensor, ""]:
        """Return what this map asks to be added to the loss: nothing."""
        return parameters[0].new_zeros(())

    def after_step(self, parameters: Sequence[Tensor]) -> None:
        """Do what must follow a step of the optimiser: nothing."""


def gram_error(matrix: Inexact[Tensor, "n n"]) -> float:
    """Return the largest entry of |V* V - I|, the distance from orthogonality or unitarity."""
    identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return float((matrix.mH @ matrix - identity).abs().max())


def is_orthogonal(matrix: Inexact[Tensor, "n n"]) -> bool:
    """Say whether V* V = I to half the digits of the matrix's type."""
    eps = torch.finfo(matrix.dtype).eps
    return gram_error(matrix.to(torch.complex128 if matrix.is_complex() else torch.float64)) <= math.sqrt(eps)


def _what_is_wrong(matrix: Tensor) -> str:
    if not torch.isfinite(matrix).all():
        return "one with entries that are not finite"
    wide = matrix.to(torch.complex128 if matrix.is_complex() else torch.float64)
    error = gram_error(wide)
    size = abs(complex(torch.linalg.det(wide)))
    sign = "" if matrix.is_complex() else f", determinant {'-' if torch.linalg.det(wide) < 0 else '+'}{size:.4g}"
    return f"one with max|V^T V - I| = {error:.2g}{sign}"
