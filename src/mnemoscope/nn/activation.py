"""The nonlinearities phi of first-order networks, on real and on complex numbers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["NONLINEARITIES", "activate", "modrelu"]

NONLINEARITIES = ("tanh", "relu", "modrelu", "identity")


def modrelu(z: Tensor, bias: Tensor | None) -> Tensor:
    """Return ``sign(z) relu(|z| + b)``, with ``sign(z) = z / |z|`` for complex z; z itself when b is None."""
    return z if bias is None else torch.sgn(z) * torch.relu(z.abs() + bias)


def activate(nonlinearity: str, z: Tensor, bias: Tensor | None = None) -> Tensor:
    """Apply phi. tanh and relu act on the real and the imaginary part of a complex number separately."""
    if nonlinearity == "identity":
        return z
    if nonlinearity == "modrelu":
        return modrelu(z, bias)
    function: Callable[[Tensor], Tensor] = torch.tanh if nonlinearity == "tanh" else torch.relu
    return torch.complex(function(z.real), function(z.imag)) if z.is_complex() else function(z)
