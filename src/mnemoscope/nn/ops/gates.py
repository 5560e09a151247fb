"""Arithmetic of an LSTM's gates."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["lstm_cell"]


def lstm_cell(
    gates: Float[Tensor, "batch gates"], c: Float[Tensor, "batch n"]
) -> tuple[Float[Tensor, "batch n"], tuple[Tensor, Tensor]]:
    """Return output and state of an LSTM from its gates before their nonlinearities, in torch's order."""
    i, f, g, o = gates.chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return h, (h, c)
