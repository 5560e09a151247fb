"""Soft orthogonality: singular values within a margin of 1, or a penalty for leaving it."""

from __future__ import annotations

import math
from typing import Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import choice, expected
from mnemoscope.nn.first_order import FirstOrder, FirstOrderOptions
from mnemoscope.nn.maps.factorised import Factorised
from mnemoscope.nn.registry import network

__all__ = ["SoftOrth"]


@network(
    "soft-orth",
    family="orthogonal",
    equations=(
        "h_t = phi(V h_{t-1} + U x_t + b)",
        "factorised: V = W_1 diag(s) W_2^T, W_1, W_2 orthogonal, s_i = 1 + 2 m (sigmoid(p_i) - 1/2)",
        "penalty: V free, loss + lambda ||V^T V - I||^2",
    ),
    state="n",
    references=("vorontsov2017",),
    notes=("Factorised: call after_step(). Penalty: add penalty() to the loss.",),
)
class SoftOrth(FirstOrder):
    """A network whose V is nearly orthogonal.

    Parameters
    ----------
    mode
        ``"factorised"``, with singular values in [1 - m, 1 + m]; or ``"penalty"``, with V free.
    margin
        m of the factorised mode, from 0 (orthogonal) to 1.
    strength
        lambda of the penalty mode.
    norm
        Of the penalty: ``"frobenius"`` or ``"spectral"``.
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        mode: str = "factorised",
        margin: float = 0.1,
        strength: float = 0.01,
        norm: str = "frobenius",
        **common: Unpack[FirstOrderOptions],
    ) -> None:
        self.mode = choice("mode", mode, ("factorised", "penalty"))
        self.norm = choice("norm", norm, ("frobenius", "spectral"))
        if isinstance(strength, bool) or not isinstance(strength, int | float) or not 0 <= strength < math.inf:
            raise expected("strength", "a number that is not negative", strength)
        self.margin, self.strength = margin, float(strength)
        super().__init__(input_size, hidden_size, num_layers, **common)

    def make_transition(self) -> Factorised | None:
        """Return the factorisation, or None in the penalty mode."""
        return Factorised(self.hidden_size, self.margin, self.init) if self.mode == "factorised" else None

    def penalty(self) -> Float[Tensor, ""]:
        """Return lambda ||V^T V - I||^2, summed over layers, in the penalty mode; else zero."""
        total = super().penalty()
        if self.mode == "penalty":
            order = 2 if self.norm == "spectral" else "fro"
            for w in self.weights():
                v = w["weight_hh"]
                error = v.mT @ v - torch.eye(self.hidden_size, dtype=v.dtype, device=v.device)
                total = total + self.strength * torch.linalg.matrix_norm(error, ord=order).square()
        return total
