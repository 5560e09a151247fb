"""s4: structured state-space layer, HiPPO-LegS as diagonal plus low rank."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Unpack

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.nn.block import Block, BlockOptions
from mnemoscope.nn.initialisers import Initialiser, normal
from mnemoscope.nn.maps.hippo import legs
from mnemoscope.nn.networks.s4d import draw_steps
from mnemoscope.nn.ops.state_space import Dense, convolved_state_space, state_space
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["S4"]


@network(
    "s4",
    family="state space",
    equations=(
        "x' = A x + B u, y = C x + D u for each feature, A = diag(Lambda) - P P*, started at HiPPO-LegS",
        "x_t = (I - Delta/2 A)^-1 ((I + Delta/2 A) x_{t-1} + Delta B u_t), y_t = 2 Re(C x_t) + D u_t",
    ),
    state="n N",
    references=("gu2022", "gu2020"),
    notes=(
        "Linear in its inputs, and features do not meet, unless block=True, whose GLU mixes them.",
        "Eigenvalues come in conjugate pairs, of which one of each is kept. Both directions share A, B and P.",
        "Input of another width than n is projected to it first.",
    ),
)
class S4(Block):
    """Structured state-space layer: n features, each with a state of N / 2 complex numbers.

    Parameters
    ----------
    order
        N, real numbers in the state of a feature; even.
    groups
        Sets of A, B and P, each shared by n / groups features; by default 2, or 1 where n is odd.
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
        groups: int | None = None,
        steps: tuple[float, float] = (1e-3, 0.1),
        **common: Unpack[BlockOptions],
    ) -> None:
        n = positive_int("hidden_size", hidden_size)
        if isinstance(order, bool) or not isinstance(order, int) or order < 2 or order % 2:
            raise expected("order", "an even positive integer", order)
        if len(steps) != 2 or not 0 < steps[0] <= steps[1]:
            raise expected("steps", "two positive numbers, the least first", steps)
        self.groups = 2 - n % 2 if groups is None else positive_int("groups", groups)
        if n % self.groups:
            raise expected("groups", f"a divisor of hidden_size = {n}", groups)
        self.order, self.steps = order, tuple(steps)
        super().__init__(input_size, hidden_size, num_layers, **common)

    @property
    def cell_blocks(self) -> tuple[int, int, int] | None:
        """Features."""
        return self.hidden_size, self.order, 1

    def declare_cell(self, layer: Layer, size: int) -> None:
        """Create Delta, C and D, and of each group Lambda, P and B."""
        n, modes = self.hidden_size, self.order // 2
        for name, parts in (("log_decay", ()), ("frequency", ()), ("low_rank", (2,)), ("weight_ih", (2,))):
            if layer.reverse:
                layer.names[name], layer.roles[name] = f"{name}_l{layer.index}", "state-space"
            else:
                self.parameter(name, self.groups, modes, *parts, init=self._legs(name), role="state-space")
        self.parameter("log_step", n, init=draw_steps(*self.steps), role="state-space")
        self.parameter("weight_readout", n, modes, 2, init=normal(math.sqrt(0.5)), role="readout")
        self.parameter("weight_skip", n, init=normal(1.0))

    def _legs(self, name: str) -> Initialiser:
        """Return what sets a parameter to its part of HiPPO-LegS, the same in every group."""

        def fill(parameter: Tensor, generator: torch.Generator | None) -> None:
            rates, low_rank, inputs = legs(self.order)
            start = {"log_decay": torch.log(-rates.real), "frequency": rates.imag}
            start |= {"low_rank": torch.view_as_real(low_rank), "weight_ih": torch.view_as_real(inputs)}
            parameter.copy_(start[name])

        return fill

    def start_cell(self, w: Weights, batch: int, **factory: Any) -> Complex[Tensor, "batch n modes"]:
        """Return zeros."""
        return self._zeros(batch, self.hidden_size, self.order // 2, **factory)

    def drive_cell(self, w: Weights, x: Float[Tensor, "*time batch n"]) -> Float[Tensor, "*time batch n"]:
        """Return the input itself."""
        return x

    def advance_cell(self, w: Weights, a: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one step, in O(N) for each feature."""
        system = _Bilinear(w, self.hidden_size)
        x = system.turn(state) + system.inputs * a[..., None]
        return (system.readout * x).sum(-1).real + w["weight_skip"] * a, x

    def unroll_cell(self, w: Weights, a: Tensor, state: Tensor | None, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run chunk by chunk, or convolve with the kernel C A^l B, by powers of the matrix A, a contraction."""
        form = convolved_state_space if self.form(len(a)) == "parallel" else state_space
        start = None if state is None else torch.view_as_real(state.resolve_conj()).flatten(-2)
        outputs, last = form(a, _Bilinear(w, self.hidden_size).dense(), start, lengths)
        last = last.reshape(*last.shape[:-1], self.order // 2, 2).contiguous()
        return outputs + w["weight_skip"] * a, torch.view_as_complex(last)


class _Bilinear:
    """The discrete system of every feature.

    On one of each conjugate pair A x = Lambda x - 2 P Re(P* x), so that I - Delta/2 A is a diagonal matrix plus one of
    real rank one, and is inverted by the formula of Sherman and Morrison.
    """

    def __init__(self, w: Weights, features: int) -> None:
        rates = torch.complex(-torch.exp(w["log_decay"]), w["frequency"])
        groups = (rates, torch.view_as_complex(w["low_rank"]), torch.view_as_complex(w["weight_ih"]))
        repeats = features // len(rates)
        self.rates, self.low_rank, b = (part.repeat_interleave(repeats, 0) for part in groups)
        self.step = torch.exp(w["log_step"])[:, None]
        self.inverse = 1 / (1 - self.step / 2 * self.rates)
        self.projected = self.inverse * self.low_rank
        self.scale = self.step / (1 + self.step * self._inner(self.projected))
        self.inputs = self.solve(self.step * b)
        self.readout = 2 * torch.view_as_complex(w["weight_readout"])

    def _inner(self, x: Tensor) -> Tensor:
        """Return Re(P* x)."""
        return (self.low_rank.conj() * x).sum(-1, keepdim=True).real

    def solve(self, x: Tensor) -> Tensor:
        """Return (I - Delta/2 A)^-1 x."""
        y = self.inverse * x
        return y - self.projected * (self.scale * self._inner(y))

    def turn(self, x: Tensor) -> Tensor:
        """Return (I - Delta/2 A)^-1 (I + Delta/2 A) x."""
        return self.solve((1 + self.step / 2 * self.rates) * x - self.step * self.low_rank * self._inner(x))

    def dense(self) -> Dense:
        """Return the system on real and imaginary parts in turn, with a real matrix for each feature."""
        modes = self.rates.shape[-1]
        eye = torch.eye(2 * modes, dtype=self.step.dtype, device=self.step.device)
        units = torch.view_as_complex(eye.reshape(2 * modes, 1, modes, 2))
        matrix = torch.view_as_real(self.turn(units)).flatten(-2).movedim(0, -1)
        readout = torch.view_as_real(self.readout.conj().resolve_conj()).flatten(-2)
        return Dense(matrix, torch.view_as_real(self.inputs).flatten(-2), readout)
