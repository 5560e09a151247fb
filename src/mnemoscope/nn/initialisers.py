"""Initial values of free parameters."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

__all__ = ["Initialiser", "constant", "normal", "uniform", "unit_gain", "zeros"]

Initialiser = Callable[[Tensor, torch.Generator | None], object]


def normal(deviation: float) -> Initialiser:
    """Draw from N(0, deviation^2)."""
    return lambda tensor, generator: nn.init.normal_(tensor, 0.0, deviation, generator=generator)


def uniform(bound: float) -> Initialiser:
    """Draw from U(-bound, bound)."""
    return lambda tensor, generator: nn.init.uniform_(tensor, -bound, bound, generator=generator)


def constant(value: float) -> Initialiser:
    """Set to a value."""
    return lambda tensor, generator: nn.init.constant_(tensor, value)


def unit_gain(matrix: Tensor, generator: torch.Generator | None) -> object:
    """Draw from U(-sqrt(3/m), sqrt(3/m)), m the columns: entries of mean square 1 are mapped to such entries."""
    bound = math.sqrt(3 / matrix.shape[1])
    return nn.init.uniform_(matrix, -bound, bound, generator=generator)


def zeros(tensor: Tensor, generator: torch.Generator | None) -> object:
    """Set to zero."""
    return nn.init.zeros_(tensor)
