"""Skew-symmetric and skew-Hermitian matrices: coordinates, initial values, logarithms."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
import scipy.linalg
import torch
from jaxtyping import Float, Inexact
from torch import Tensor

from mnemoscope.core.errors import choice
from mnemoscope.nn.maps.base import Transition

__all__ = ["SKEW_INITS", "SkewTransition", "block_skew", "log_orthogonal", "random_orthogonal"]

SKEW_INITS = ("henaff", "cayley", "random", "identity", "glorot", "uniform")


class SkewTransition(Transition):
    """Base of the maps from a skew matrix A.

    Real field: A = S - S^T, with the n(n-1)/2 entries of S above the diagonal as the only parameter. Complex
    field: A = S - S* + i diag(d), with the real and imaginary parts of S and the n numbers d: n^2 in all.

    Parameters
    ----------
    size
        n.
    field
        ``"real"`` (orthogonal matrices) or ``"complex"`` (unitary ones).
    init
        How A starts: ``henaff`` and ``cayley``, 2 x 2 blocks [[0, s], [-s, 0]] with s ~ U(-pi, pi), or
        s = -tan(t/2), t ~ U(0, pi/2); ``random``, V Haar-distributed with determinant 1; ``identity``, A = 0;
        ``glorot`` and ``uniform``, entries N(0, 1/n) and U(-1/sqrt(n), 1/sqrt(n)).
    """

    orthogonal_parameters: tuple[int, ...] = (0,)

    def __init__(self, size: int, field: str = "real", init: str = "henaff") -> None:
        super().__init__(size)
        self.field = choice("field", field, ("real", "complex"))
        self.init = choice("init", init, SKEW_INITS)
        if field == "complex":
            self.orthogonal_parameters = (0, 1, 2)
        # No buffer: one that is not saved would stay without values after `load_state_dict(assign=True)` from meta.
        self._upper = tuple(torch.triu_indices(size, size, 1, device="cpu"))

    @property
    def skew_shapes(self) -> tuple[tuple[int, ...], ...]:
        """One vector of n(n-1)/2 numbers; over the complex numbers two, and one of n."""
        pairs = self.size * (self.size - 1) // 2
        return ((pairs,),) if self.field == "real" else ((pairs,), (pairs,), (self.size,))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Those of A."""
        return self.skew_shapes

    def algebra(self, *parameters: Tensor) -> Inexact[Tensor, "n n"]:
        """Return A."""
        upper = parameters[0] if self.field == "real" else torch.complex(parameters[0], parameters[1])
        zero = upper.new_zeros(self.size, self.size)
        matrix = zero.index_put(self._upper, upper)
        matrix = matrix - matrix.mH
        return matrix if self.field == "real" else matrix + torch.diag(1j * parameters[2])

    def coordinates(self, matrix: Inexact[Tensor, "n n"]) -> tuple[Tensor, ...]:
        """Return the parameters of a skew matrix."""
        upper = matrix[self._upper]
        return (upper,) if self.field == "real" else (upper.real, upper.imag, matrix.diagonal().imag)

    @abstractmethod
    def curve(self, skew: Inexact[Tensor, "n n"]) -> Inexact[Tensor, "n n"]:
        """Return f(A), orthogonal or unitary, with f(0) = I."""

    @abstractmethod
    def inverse_curve(self, matrix: Inexact[Tensor, "n n"]) -> Inexact[Tensor, "n n"]:
        """Return an A with f(A) = `matrix`."""

    def draw(self, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        """Draw A as `init` says."""
        if self.init == "random":
            rotation = random_orthogonal(self.size, generator, field=self.field)
            return self.coordinates(self.inverse_curve(rotation))
        if self.init in ("glorot", "uniform"):
            draws = [torch.empty(shape, dtype=torch.float64) for shape in self.skew_shapes]
            for draw in draws:
                if self.init == "glorot":
                    draw.normal_(0, self.size**-0.5, generator=generator)
                else:
                    draw.uniform_(-(self.size**-0.5), self.size**-0.5, generator=generator)
            return tuple(draws)
        blocks = block_skew(self.size, self.init, generator)
        return self.coordinates(blocks if self.field == "real" else blocks.to(torch.complex128))


def block_skew(size: int, init: str, generator: torch.Generator | None = None) -> Float[Tensor, "n n"]:
    """Return the block-diagonal skew matrix of Henaff's or Helfrich's initialisation; an odd last row is zero."""
    pairs = size // 2
    draw = torch.rand(pairs, generator=generator, dtype=torch.float64)
    if init == "henaff":
        s = math.pi * (2 * draw - 1)
    elif init == "cayley":
        s = -torch.tan(math.pi / 4 * draw)
    else:
        s = torch.zeros(pairs, dtype=torch.float64)
    matrix = torch.zeros(size, size, dtype=torch.float64)
    even = torch.arange(pairs) * 2
    matrix[even, even + 1] = s
    matrix[even + 1, even] = -s
    return matrix


def random_orthogonal(
    size: int, generator: torch.Generator | None = None, field: str = "real"
) -> Inexact[Tensor, "n n"]:
    """Draw an orthogonal matrix with determinant 1, or a unitary one, uniformly (Haar measure)."""
    dtype = torch.float64 if field == "real" else torch.complex128
    q: Tensor
    q, r = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=dtype))
    q = q * torch.sgn(r.diagonal())  # makes the distribution uniform
    if field == "real" and torch.linalg.det(q) < 0:
        q[:, 0] = -q[:, 0]
    return q


def log_orthogonal(matrix: Inexact[Tensor, "n n"]) -> Inexact[Tensor, "n n"]:
    """Return the skew A of least norm with exp(A) = V, for V orthogonal with determinant 1, or unitary.

    From the Schur form V = Z S Z*: S is diagonal (unitary) or has 2 x 2 rotations (orthogonal); eigenvalues -1 of a
    real matrix are paired into rotations by pi.
    """
    if matrix.is_complex():
        s, z = scipy.linalg.schur(matrix.numpy(), output="complex")
        a = (z * (1j * np.angle(np.diag(s)))) @ z.conj().T
        return torch.from_numpy((a - a.conj().T) / 2)
    s, z = scipy.linalg.schur(matrix.numpy(), output="real")
    log = np.zeros_like(s)
    minus_ones: list[int] = []
    i, n = 0, len(s)
    while i < n:
        if i + 1 < n and s[i + 1, i] != 0:  # LAPACK writes exact zeros between real eigenvalues
            angle = math.atan2((s[i + 1, i] - s[i, i + 1]) / 2, (s[i, i] + s[i + 1, i + 1]) / 2)
            log[i + 1, i], log[i, i + 1] = angle, -angle
            i += 2
            continue
        if s[i, i] < 0:
            minus_ones.append(i)
        i += 1
    for p, q in zip(minus_ones[::2], minus_ones[1::2], strict=True):
        log[q, p], log[p, q] = math.pi, -math.pi
    a = z @ log @ z.T
    return torch.from_numpy((a - a.T) / 2)
