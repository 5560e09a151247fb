"""Gates: what they do in an LSTM, and how they are held while everything else is differentiated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Held", "gate", "hold_gates", "lstm_cell"]


@dataclass
class Held:
    """Whether a network that ran inside `hold_gates` declared any gates."""

    any: bool = False


_holding: list[Held] = []
"""Those that are inside `hold_gates` now, the innermost last."""


def gate(value: Tensor) -> Tensor:
    """Declare what multiplies a state or an input as a gate: as it is, and without a derivative inside `hold_gates`.

    Examples
    --------
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> with hold_gates():
    ...     y = gate(x) * x
    >>> torch.autograd.grad(y, x)[0]
    tensor(2.)
    """
    if not _holding:
        return value
    _holding[-1].any = True
    return value.detach()


@contextmanager
def hold_gates() -> Iterator[Held]:
    """Hold the gates of networks that are run inside: autograd takes them for constants.

    What is left is the map that an input-varying linear network applies to its inputs, y = T(x) x, at this x.
    """
    _holding.append(Held())
    try:
        yield _holding[-1]
    finally:
        _holding.pop()


def lstm_cell(
    gates: Float[Tensor, "batch gates"], c: Float[Tensor, "batch n"]
) -> tuple[Float[Tensor, "batch n"], tuple[Tensor, Tensor]]:
    """Return output and state of an LSTM from its gates before their nonlinearities, in torch's order."""
    i, f, g, o = gates.chunk(4, dim=-1)
    c = gate(torch.sigmoid(f)) * c + gate(torch.sigmoid(i)) * torch.tanh(g)
    h = gate(torch.sigmoid(o)) * torch.tanh(c)
    return h, (h, c)
