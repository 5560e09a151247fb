"""V = D_3 R_2 F^-1 D_2 P R_1 F D_1: diagonals, reflections, a permutation and Fourier transforms (uRNN)."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from jaxtyping import Complex
from torch import Tensor

from mnemoscope.core.errors import UserError
from mnemoscope.nn.maps.base import Transition, is_orthogonal

__all__ = ["Fourier"]


class Fourier(Transition):
    """V = D_3 R_2 F^-1 D_2 P R_1 F D_1, unitary, with 7n parameters; V h costs O(n log n).

    D_i = diag(e^{i w}) (n angles each), R_i = I - 2 v v* / |v|^2 (n complex numbers each), F the unitary Fourier
    transform, P a fixed permutation, drawn with the parameters. For n > 7 it cannot reach every unitary matrix:
    7n < n^2. It has no inverse.
    """

    set_name: ClassVar[str] = "left alone: this map has no inverse"
    orthogonal_parameters = (0, 1)
    field = "complex"
    order: Tensor

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.register_buffer("order", torch.arange(size))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Three rows of angles; real and imaginary parts of two reflection vectors: 7n."""
        return ((3, self.size), (4, self.size))

    def draw(self, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        """Draw angles from U(-pi, pi), vectors from U(-1, 1), and the permutation."""
        angles = math.pi * (2 * torch.rand(self.shapes[0], generator=generator, dtype=torch.float64) - 1)
        vectors = 2 * torch.rand(self.shapes[1], generator=generator, dtype=torch.float64) - 1
        self.order.copy_(torch.randperm(self.size, generator=generator))
        return angles, vectors

    def map(self, *parameters: Tensor) -> Complex[Tensor, "n n"]:
        """Return V, by applying its factors to the identity."""
        like = parameters[0]
        dtype = torch.complex128 if like.dtype == torch.float64 else torch.complex64
        return self.multiply(torch.eye(self.size, dtype=dtype, device=like.device), *parameters).mT

    def multiply(self, h: Complex[Tensor, "*batch n"], *parameters: Tensor) -> Complex[Tensor, "*batch n"]:
        """Return V h in O(n log n)."""
        angles, vectors = parameters
        phases = torch.complex(angles.cos(), angles.sin())
        reflectors = torch.complex(vectors[:2], vectors[2:])
        if h.shape[:-1].numel() == 0:  # torch's FFT refuses an empty batch
            return h * phases[2]
        h = torch.fft.fft(h * phases[0], norm="ortho")
        h = _reflect(h, reflectors[0])[..., self.order]
        h = torch.fft.ifft(h * phases[1], norm="ortho")
        return _reflect(h, reflectors[1]) * phases[2]

    def contains(self, matrix: Complex[Tensor, "n n"]) -> bool:
        """Whether V is unitary, which is necessary; whether it is sufficient is not known."""
        return is_orthogonal(matrix)

    def solve(self, matrix: Complex[Tensor, "n n"]) -> tuple[Tensor, ...]:
        """Refuse: nobody knows this inverse."""
        raise UserError("weight_hh of urnn cannot be assigned: its map has no inverse; use full-urnn, scurnn or exprnn")


def _reflect(h: Complex[Tensor, "*batch n"], v: Complex[Tensor, " n"]) -> Complex[Tensor, "*batch n"]:
    scale = 2 / (v.real.square() + v.imag.square()).sum()
    return h - (h @ v.conj() * scale).unsqueeze(-1) * v
