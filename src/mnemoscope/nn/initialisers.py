"""How a free parameter starts."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

__all__ = ["Initialiser", "uniform", "zeros"]

Initialiser = Callable[[Tensor, torch.Generator | None], object]


def uniform(bound: float) -> Initialiser:
    """Draw from U(-bound, bound)."""
    return lambda tensor, generator: nn.init.uniform_(tensor, -bound, bound, generator=generator)


def zeros(tensor: Tensor, generator: torch.Generator | None) -> object:
    """Set to zero."""
    return nn.init.zeros_(tensor)
