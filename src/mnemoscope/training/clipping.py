"""Clipping: gradients kept from being too large, of one network or of each member of a population."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mnemoscope.training.optimisers import Optimiser

__all__ = ["Clipping"]

_TINY = 1e-6
"""As torch.nn.utils.clip_grad_norm_ adds it to the norm."""


@dataclass(frozen=True)
class Clipping:
    """What is done to gradients before a step.

    Attributes
    ----------
    norm
        g <- g min(1, norm / |g|), |g| over all parameters of a network.
    value
        Every entry is held within +-value.
    largest
        The gradient of each recurrent matrix is scaled when its largest entry exceeds this.
    """

    norm: float | None = None
    value: float | None = None
    largest: float | None = None

    @torch.no_grad()
    def __call__(self, optimiser: Optimiser, recurrent: list[int], members: int | None) -> None:
        """Clip what the optimiser has taken, in place.

        Parameters
        ----------
        recurrent
            Which of the parameters are those of recurrent matrices.
        members
            How many networks are stacked; None for one that is not.
        """
        if self.value is not None:
            optimiser.gradient.clamp_(-self.value, self.value)
        if self.largest is not None:
            for i in recurrent:
                part = optimiser.gradients[i]
                top = part.abs().max() if members is None else _rows(part).abs().amax(1)
                _scale(part, self.largest / top.clamp_min(self.largest))
        if self.norm is not None:
            if members is None:
                optimiser.gradient.mul_((self.norm / (optimiser.gradient.norm() + _TINY)).clamp_max(1.0))
                return
            squares = torch.stack([_rows(part).square().sum(1) for part in optimiser.gradients])
            factor = (self.norm / (squares.sum(0).sqrt() + _TINY)).clamp_max(1.0)
            for part in optimiser.gradients:
                _scale(part, factor)


def _rows(part: Tensor) -> Tensor:
    return part.reshape(len(part), -1)


def _scale(part: Tensor, factor: Tensor) -> None:
    part.mul_(factor if factor.dim() == 0 else factor.view(-1, *[1] * (part.dim() - 1)))
