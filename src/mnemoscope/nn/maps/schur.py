"""V = P (Lambda + T) P^T: a real Schur form with chosen moduli (nnRNN)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import UserError, choice, expected
from mnemoscope.nn.maps.base import Transition
from mnemoscope.nn.maps.exponential import Exponential
from mnemoscope.nn.maps.real_schur import paired_schur

__all__ = ["BLOCKS", "GAMMAS", "Schur"]

BLOCKS = ("rotation", "balanced", "published")
GAMMAS = ("regularised", "free", "clamped")


class Schur(Transition):
    """V = P (Lambda + T) P^T, P = exp(A) orthogonal, Lambda 2 x 2 blocks with moduli gamma, T lower triangular.

    The blocks, and what T holds of them:

    - ``rotation``: gamma R(theta), T zero within the blocks. Moduli of the eigenvalues are exactly |gamma|.
    - ``balanced``: gamma [[cos, -r sin], [sin / r, cos]], r > 0 learned, T zero within the blocks. Moduli are exactly
      |gamma|, and every real matrix whose eigenvalues are pairs x +- iy, y > 0, is reached.
    - ``published``: gamma R(theta), T with the entry below the diagonal of each block, as Kerg et al. (2019) print
      it. Moduli are then not gamma.

    An odd n has a last 1 x 1 block gamma.

    Parameters
    ----------
    gamma
        ``regularised``, with the penalty delta sum (gamma_i - 1)^2; ``free``, without it; ``clamped``: `gamma_value`.
    delta, decay
        Strength of the penalties on gamma and on T (decay * sum T_ij^2).
    gamma_value
        Where gamma is clamped.
    """

    set_name: ClassVar[str] = "a real matrix that the chosen blocks reach"
    orthogonal_parameters = (0,)
    orthogonal_map: Exponential

    def __init__(
        self,
        size: int,
        block: str,
        gamma: str,
        delta: float,
        decay: float,
        init: str = "henaff",
        gamma_value: float = 1.0,
    ) -> None:
        super().__init__(size)
        self.block = choice("block", block, BLOCKS)
        self.gamma = choice("gamma", gamma, GAMMAS)
        for name, value in (("delta", delta), ("decay", decay)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise expected(name, "a number that is not negative", value)
        if isinstance(gamma_value, bool) or not isinstance(gamma_value, int | float) or not 0 < gamma_value < math.inf:
            raise expected("gamma_value", "a number above 0", gamma_value)
        if gamma_value != 1 and gamma != "clamped":
            raise expected("gamma_value", "1 where gamma is not 'clamped'", gamma_value)
        self.delta, self.decay, self.gamma_value = float(delta), float(decay), float(gamma_value)
        self.orthogonal_map = Exponential(size, init=init)
        rows, columns = torch.tril_indices(size, size, -1, device="cpu")
        if block != "published":
            outside = rows // 2 != columns // 2
            rows, columns = rows[outside], columns[outside]
        self._lower = (rows, columns)

    @property
    def _names(self) -> tuple[str, ...]:
        names = ["skew", "theta", "lower"]
        names += ["gamma"] if self.gamma != "clamped" else []
        names += ["log_ratio"] if self.block == "balanced" else []
        return tuple(names)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """A, theta, T; then gamma unless clamped; then log r when balanced."""
        pairs = self.size // 2
        sizes = {"theta": pairs, "lower": len(self._lower[0]), "gamma": self.size - pairs, "log_ratio": pairs}
        return tuple(self.orthogonal_map.shapes[0] if name == "skew" else (sizes[name],) for name in self._names)

    def named(self, parameters: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return the parameters by name: skew, theta, lower, gamma, log_ratio."""
        found = dict(zip(self._names, parameters, strict=True))
        pairs = self.size // 2
        found.setdefault("gamma", parameters[0].new_full((self.size - pairs,), self.gamma_value))
        found.setdefault("log_ratio", parameters[0].new_zeros(pairs))
        return found

    def draw(self, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        """Start orthogonal: P as `init` says, theta ~ U(0, 2 pi), gamma = 1, T = 0, r = 1."""
        skew = self.orthogonal_map.draw(generator)[0]
        draw = torch.rand(self.size // 2, generator=generator, dtype=torch.float64)
        values = {"skew": skew, "theta": 2 * math.pi * draw}
        fill = {"gamma": 1.0}
        return tuple(
            values[name] if name in values else torch.full(shape, fill.get(name, 0.0))
            for name, shape in zip(self._names, self.shapes, strict=True)
        )

    def form(self, *parameters: Tensor) -> Float[Tensor, "n n"]:
        """Return Theta = Lambda + T."""
        p = self.named(parameters)
        even = torch.arange(self.size // 2, device=p["theta"].device) * 2
        gamma, ratio = p["gamma"][: self.size // 2], p["log_ratio"].exp()
        diagonal = gamma * p["theta"].cos()
        sine = gamma * p["theta"].sin()
        last = p["gamma"][self.size // 2 :]
        theta = p["lower"].new_zeros(self.size, self.size).index_put(self._lower, p["lower"])
        rows = torch.cat([even, even + 1, even, even + 1])
        columns = torch.cat([even, even + 1, even + 1, even])
        values = torch.cat([diagonal, diagonal, -sine * ratio, sine / ratio])
        if self.size % 2:
            end = torch.tensor([self.size - 1], device=even.device)
            rows, columns, values = torch.cat([rows, end]), torch.cat([columns, end]), torch.cat([values, last])
        return theta.index_put((rows, columns), values, accumulate=True)

    def map(self, *parameters: Tensor) -> Float[Tensor, "n n"]:
        """Return P Theta P^T."""
        orthogonal = self.orthogonal_map.map(parameters[0])
        return orthogonal @ self.form(*parameters) @ orthogonal.mT

    def penalty(self, parameters: Sequence[Tensor]) -> Float[Tensor, ""]:
        """Return delta sum (gamma_i - 1)^2 + decay sum T_ij^2."""
        p = self.named(parameters)
        total = self.decay * p["lower"].square().sum()
        return total + self.delta * (p["gamma"] - 1).square().sum() if self.gamma == "regularised" else total

    def contains(self, matrix: Float[Tensor, "n n"]) -> bool:
        """Whether the blocks reach V."""
        try:
            self._decompose(matrix.double(), torch.finfo(matrix.dtype).eps ** 0.5)
        except UserError:
            return False
        return True

    def right_inverse(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """Return the parameters of V; the error says which block stands in the way."""
        given = torch.as_tensor(matrix)
        if given.shape == (self.size, self.size) and given.is_floating_point() and torch.isfinite(given).all():
            self._decompose(given.double().cpu(), torch.finfo(given.dtype).eps ** 0.5)
        return super().right_inverse(matrix)

    def solve(self, matrix: Float[Tensor, "n n"]) -> tuple[Tensor, ...]:
        """Return the parameters from SciPy's real Schur form, turned around into a lower one."""
        found = self._decompose(matrix, 1e-3)
        return tuple(torch.as_tensor(found[name]) for name in self._names)

    def _decompose(self, matrix: Float[Tensor, "n n"], tolerance: float) -> dict[str, np.ndarray]:
        allowed = tolerance * max(1.0, float(matrix.abs().max()))
        p, form = paired_schur(matrix.numpy(), lambda block: self._block(*block.ravel())[3] <= allowed)
        pairs = self.size // 2
        theta, gamma, ratio = np.zeros(pairs), np.ones(self.size - pairs), np.ones(pairs)
        for k in range(pairs):
            block = form[2 * k : 2 * k + 2, 2 * k : 2 * k + 2]
            theta[k], gamma[k], ratio[k], left = self._block(*block.ravel())
            if left > allowed:
                reached = f"one whose 2 x 2 Schur blocks block={self.block!r} reaches"
                raise expected("the matrix", reached, [[float(f"{x:.4g}") for x in row] for row in block])
            if self.block == "published":
                form[2 * k + 1, 2 * k] -= gamma[k] * math.sin(theta[k])
        if self.size % 2:
            gamma[-1] = form[-1, -1]
        if self.gamma == "clamped" and (apart := np.abs(gamma - self.gamma_value)).max() > allowed:
            wanted = f"one with eigenvalues of modulus {self.gamma_value:g}, as gamma is clamped"
            raise expected("the matrix", wanted, float(gamma[apart.argmax()]))
        skew = self.orthogonal_map.solve(torch.from_numpy(p))[0].numpy()
        lower = form[tuple(index.numpy() for index in self._lower)]
        return {"skew": skew, "theta": theta, "lower": lower, "gamma": gamma, "log_ratio": np.log(ratio)}

    def _block(self, a: float, b: float, c: float, d: float) -> tuple[float, float, float, float]:
        """Return theta, gamma, r of a block, and what of it they leave out."""
        if self.block == "published":  # the entry c is free
            gamma = math.hypot(b, (a + d) / 2)
            left = max(abs(a - d), abs(gamma - self.gamma_value) if self.gamma == "clamped" else 0.0)
            return math.atan2(-b, (a + d) / 2), gamma, 1.0, left
        if self.block == "balanced" and b * c < 0:
            sine = math.copysign(math.sqrt(-b * c), c)
            return math.atan2(sine, (a + d) / 2), math.hypot(sine, (a + d) / 2), math.sqrt(-b / c), abs(a - d)
        sine = (c - b) / 2
        return math.atan2(sine, (a + d) / 2), math.hypot(sine, (a + d) / 2), 1.0, max(abs(a - d), abs(b + c))
