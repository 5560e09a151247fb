"""s4d: diagonal state-space layer, one for each feature."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Unpack

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from mnemoscope.core.errors import choice, expected
from mnemoscope.nn.block import Block, BlockOptions
from mnemoscope.nn.initialisers import normal
from mnemoscope.nn.maps.hippo import legs
from mnemoscope.nn.ops.state_space import Diagonal, convolved_state_space, state_space
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["S4D", "draw_steps"]


@network(
    "s4d",
    family="state space",
    equations=(
        "x_t = exp(Delta A) x_{t-1} + (exp(Delta A) - 1) / A * u_t, A = diag(-exp(a) + i omega) for each feature",
        "y_t = 2 Re(C x_t) + D u_t",
    ),
    state="n N",
    references=("gu2022s4d",),
    notes=(
        "Linear in its inputs, and features do not meet, unless block=True, whose GLU mixes them.",
        "Input of another width than n is projected to it first.",
    ),
)
class S4D(Block):
    """Diagonal state-space layer: n features, each with a state of N / 2 complex numbers.

    Parameters
    ----------
    order
        N, real numbers in the state of a feature; even.
    init
        Eigenvalues of the continuous system: ``"legs"`` (those of HiPPO-LegS without its low-rank part), ``"lin"``
        (-1/2 + i pi k), ``"inv"`` (-1/2 + i N/pi (N / (2k + 1) - 1)) or ``"real"`` (-(k + 1)).
    steps
        Least and largest initial time step Delta.
    """

    transitions = "fixed diagonal"

    field = "complex"
    parts: ClassVar[tuple[str, ...]] = ("glu",)
    modes: ClassVar[tuple[str, ...]] = ("recurrent", "parallel", "chunked")
    square: ClassVar[bool] = True
    starts_at_zero: ClassVar[bool] = True
    batch_axis = 0

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        order: int = 64,
        init: str = "legs",
        steps: tuple[float, float] = (1e-3, 0.1),
        **common: Unpack[BlockOptions],
    ) -> None:
        if isinstance(order, bool) or not isinstance(order, int) or order < 2 or order % 2:
            raise expected("order", "an even positive integer", order)
        if len(steps) != 2 or not 0 < steps[0] <= steps[1]:
            raise expected("steps", "two positive numbers, the least first", steps)
        self.order, self.steps = order, tuple(steps)
        self.init = choice("init", init, ("legs", "lin", "inv", "real"))
        super().__init__(input_size, hidden_size, num_layers, **common)

    @property
    def cell_blocks(self) -> tuple[int, int, int] | None:
        """Complex modes of all features."""
        return self.hidden_size * self.order // 2, 2, 1

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create Delta, A, C and D."""
        n, modes = self.hidden_size, self.order // 2
        self.parameter("log_step", n, init=draw_steps(*self.steps), role="state-space")
        self.parameter("log_decay", n, modes, init=lambda t, _: t.copy_(-self._rates().real).log_(), role="state-space")
        self.parameter("frequency", n, modes, init=lambda t, _: t.copy_(self._rates().imag), role="state-space")
        self.parameter("weight_readout", n, modes, 2, init=normal(math.sqrt(0.5)), role="readout")
        self.parameter("weight_skip", n, init=normal(1.0))

    def _rates(self) -> Complex[Tensor, " modes"]:
        """Return the initial eigenvalues of the continuous system."""
        k = torch.arange(self.order // 2, dtype=torch.float64)
        if self.init == "legs":
            return legs(self.order)[0]
        if self.init == "real":
            return torch.complex(-(k + 1), torch.zeros_like(k))
        inverse = self.order / math.pi * (self.order / (2 * k + 1) - 1)
        return torch.complex(torch.full_like(k, -0.5), math.pi * k if self.init == "lin" else inverse)

    def discretise(self, w: Weights) -> tuple[Complex[Tensor, "n modes"], Complex[Tensor, "n modes"], Tensor]:
        """Return Delta A, the input's weights (exp(Delta A) - 1) / A, and 2 C."""
        rates = torch.complex(-torch.exp(w["log_decay"]), w["frequency"])
        scaled = rates * torch.exp(w["log_step"])[:, None]
        return scaled, torch.expm1(scaled) / rates, 2 * torch.view_as_complex(w["weight_readout"])

    def drive_cell(self, w: Weights, x: Float[Tensor, "*time batch n"]) -> Float[Tensor, "*time batch n"]:
        """Return the input itself."""
        return x

    def start_cell(self, w: Weights, batch: int, **factory: Any) -> Complex[Tensor, "batch n modes"]:
        """Return zeros."""
        return self._zeros(batch, self.hidden_size, self.order // 2, **factory)

    def advance_cell(self, w: Weights, a: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one step."""
        rates, inputs, readout = self.discretise(w)
        x = torch.exp(rates) * state + inputs * a[..., None]
        return (readout * x).sum(-1).real + w["weight_skip"] * a, x

    def unroll_cell(self, w: Weights, a: Tensor, state: Tensor | None, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run chunk by chunk, or convolve with the kernel 2 Re sum C exp(l Delta A) B."""
        form = convolved_state_space if self.form(len(a)) == "parallel" else state_space
        start = None if state is None else torch.cat([state.real, state.imag], -1)
        outputs, last = form(a, Diagonal(*self.discretise(w)), start, lengths)
        return outputs + w["weight_skip"] * a, torch.complex(*last.chunk(2, -1))


def draw_steps(least: float, largest: float) -> Any:
    """Return what draws log Delta uniformly between the logarithms of two steps."""
    return lambda t, generator: t.uniform_(math.log(least), math.log(largest), generator=generator)
