"""Orders in which the pixels of an image can be read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

__all__ = ["Patches", "Permuted"]


@dataclass(frozen=True)
class Permuted:
    """A random order of pixels that a seed of NumPy's RandomState fixes."""

    seed: int

    def __call__(self, side: int) -> Int64[Tensor, " pixels"]:
        """Return the order for images of this side."""
        return torch.from_numpy(np.random.RandomState(self.seed).permutation(side**2))


@dataclass(frozen=True)
class Patches:
    """The pixels of one patch after those of another, both row by row."""

    grid: int

    def __call__(self, side: int) -> Int64[Tensor, " pixels"]:
        """Return the order for images of this side."""
        patch = side // self.grid
        return torch.arange(side**2).view(self.grid, patch, self.grid, patch).transpose(1, 2).flatten()
