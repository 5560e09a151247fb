"""lru: the linear recurrent unit, a complex diagonal recurrence on a ring."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float
from torch import Tensor

from mnemoscope.core.errors import expected
from mnemoscope.nn.block import Block, BlockOptions
from mnemoscope.nn.initialisers import normal
from mnemoscope.nn.ops.linear_scan import linear_scan
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["LRU"]


@network(
    "lru",
    family="state space",
    equations=(
        "x_t = Lambda x_{t-1} + exp(gamma) * (B u_t), Lambda = diag(exp(-exp(nu) + i exp(theta)))",
        "y_t = Re(C x_t) + D u_t",
    ),
    state="2n",
    references=("orvieto2023",),
    notes=(
        "Linear in its inputs unless block=True, whose GLU stands between the layers.",
        "D is diagonal where the input has n features.",
    ),
)
class LRU(Block):
    """The linear recurrent unit: n complex units whose eigenvalues start on a ring.

    Parameters
    ----------
    radii
        Least and largest modulus of the initial eigenvalues.
    phase
        Largest initial angle of an eigenvalue.
    """

    transitions = "fixed diagonal"

    field = "complex"
    parts: ClassVar[tuple[str, ...]] = ("glu",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        radii: tuple[float, float] = (0.9, 0.999),
        phase: float = 2 * math.pi,
        **common: Unpack[BlockOptions],
    ) -> None:
        if len(radii) != 2 or not 0 <= radii[0] < radii[1] <= 1:
            raise expected("radii", "two numbers, 0 <= least < largest <= 1", radii)
        if not 0 < phase <= 2 * math.pi:
            raise expected("phase", "an angle above 0 and at most 2 pi", phase)
        self.radii, self.phase = tuple(radii), phase
        super().__init__(input_size, hidden_size, num_layers, **common)

    @property
    def cell_blocks(self) -> tuple[int, int, int] | None:
        """Complex units."""
        return self.hidden_size, 2, 1

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create Lambda, gamma, B (rows in pairs: real, imaginary), C (columns in pairs) and D."""
        n = self.hidden_size
        self.parameter("nu", n, init=self._draw_moduli, role="state-space")
        self.parameter("theta", n, init=self._draw_angles, role="state-space")
        self.parameter("gamma", n, init=lambda t, _: t.copy_(self._normaliser(layer)), role="state-space")
        self.parameter("weight_ih", 2 * n, size, init=normal(1 / math.sqrt(2 * size)), role="input")
        self.parameter("weight_readout", n, 2 * n, init=normal(1 / math.sqrt(n)), role="readout")
        self.parameter("weight_skip", *((n,) if size == n else (n, size)), init=normal(1 / math.sqrt(size)))

    def _draw_moduli(self, nu: Tensor, generator: torch.Generator | None) -> None:
        least, largest = self.radii
        squares = nu.uniform_(least**2, largest**2, generator=generator).clamp(1e-12, 1 - 1e-7)
        nu.copy_(torch.log(-0.5 * torch.log(squares)))

    def _draw_angles(self, theta: Tensor, generator: torch.Generator | None) -> None:
        theta.uniform_(0, self.phase, generator=generator).clamp_(min=1e-6).log_()

    def _normaliser(self, layer: Layer) -> Tensor:
        """Return log sqrt(1 - |Lambda|^2), with which states start with the size of the inputs."""
        nu: Tensor = getattr(self, layer.names["nu"])
        return 0.5 * torch.log(-torch.expm1(-2 * torch.exp(nu)))

    def eigenvalues(self, w: Weights) -> Complex[Tensor, " n"]:
        """Return Lambda."""
        return torch.exp(torch.complex(-torch.exp(w["nu"]), torch.exp(w["theta"])))

    def drive_cell(self, w: Weights, x: Float[Tensor, "*time batch size"]) -> tuple[Tensor, Tensor]:
        """Return exp(gamma) * B u and D u."""
        weight = w["weight_ih"] * torch.exp(w["gamma"]).repeat_interleave(2)[:, None]
        b = torch.view_as_complex(F.linear(x, weight).reshape(*x.shape[:-1], self.hidden_size, 2))
        return b, x * w["weight_skip"] if w["weight_skip"].dim() == 1 else F.linear(x, w["weight_skip"])

    def advance_cell(self, w: Weights, a: Any, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one step."""
        b, skip = a
        x = self.eigenvalues(w) * state + b
        return self._read(w, x) + skip, x

    def unroll_cell(self, w: Weights, a: Any, state: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run the linear scan."""
        b, skip = a
        states, last = linear_scan(b, self.eigenvalues(w), state, lengths)
        return self._read(w, states) + skip, last

    def _read(self, w: Weights, x: Complex[Tensor, "*time batch n"]) -> Float[Tensor, "*time batch n"]:
        return F.linear(torch.view_as_real(x).flatten(-2), w["weight_readout"])
