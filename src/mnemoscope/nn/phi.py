"""The nonlinearities of the fused recurrence: in place on the way there, from the output alone on the way back."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["PHIS", "Phi"]

Bend = Callable[[Tensor], object]


class Phi(ABC):
    """A nonlinearity y = phi(z) whose slope is a function of y."""

    def units(self, c: Any) -> Tensor | None:
        """Return the units m in which `bend` wants z: it is given m z; None: as it is."""
        return None

    @abstractmethod
    def bend(self, c: Tensor | None, units: Tensor | None = None) -> Bend:
        """Return the function that turns z into y in place; `c` is modReLU's bias, `units` what `units` gave."""

    @abstractmethod
    def slopes(self, y: Tensor, c: Any) -> tuple[Tensor, ...]:
        """Return what `pull` needs at many steps at once."""

    def pull(self, g: Tensor, *slopes: Tensor) -> None:
        """Turn the gradient of y into that of z, in place, at one step: a product, unless said otherwise."""
        g.mul_(slopes[0])

    def bias_gradient(self, g: Tensor, *slopes: Tensor) -> Tensor:
        """Return the gradient of modReLU's bias, (*K, n), from that of z at many steps."""
        raise TypeError(f"{type(self).__name__} has no bias of its own")


class _Identity(Phi):
    def bend(self, c: Tensor | None, units: Tensor | None = None) -> Bend:
        return lambda h: None

    def slopes(self, y: Tensor, c: Any) -> tuple[Tensor, ...]:
        return ()

    def pull(self, g: Tensor, *slopes: Tensor) -> None:
        """Leave the gradient as it is."""


class _Tanh(Phi):
    def bend(self, c: Tensor | None, units: Tensor | None = None) -> Bend:
        return Tensor.tanh_

    def slopes(self, y: Tensor, c: Any) -> tuple[Tensor, ...]:
        return (torch.addcmul(y.new_ones(()), y, y, value=-1),)


class _ReLU(Phi):
    def bend(self, c: Tensor | None, units: Tensor | None = None) -> Bend:
        return Tensor.relu_

    def slopes(self, y: Tensor, c: Any) -> tuple[Tensor, ...]:
        return (y.sign(),)


class _ModReLU(Phi):
    """sign(z) relu(|z| + c) = clamp(m z, -|c|, |c|) + z, with m = -1 where c <= 0, m = (a huge power of 2) where c > 0.

    Two operations where the definition takes five: the recurrence is computed in units of m, which rounds nothing.
    """

    def units(self, c: Any) -> Tensor:
        return torch.where(c > 0, c.new_full((), _huge(c.dtype)), -1.0)

    def bend(self, c: Any, units: Any = None) -> Bend:
        high, inverse = c.abs(), units.reciprocal()
        low, space = -high, c.new_empty(0)

        def bend(h: Tensor) -> None:
            nonlocal space, low, high, inverse
            if space.shape != h.shape:
                space = torch.empty_like(h)
                if h.numel() >= _WIDE:
                    low, high, inverse = (
                        row[..., :1, :].expand_as(h).contiguous() for row in _rows(low, high, inverse)
                    )
            torch.addcmul(torch.clamp(h, low, high, out=space), h, inverse, out=h)

        return bend

    def slopes(self, y: Tensor, c: Any) -> tuple[Tensor, ...]:
        sign = y.sign()
        return sign.abs(), sign

    def bias_gradient(self, g: Tensor, *slopes: Tensor) -> Tensor:
        return _sum_over_steps(slopes[1].mul_(g))


class _ComplexModReLU(Phi):
    """z / |z| relu(|z| + c) of n/2 complex numbers: their real parts, then their imaginary parts.

    With y = s z the gradient g becomes s g + (1 - s) (y . g) / |y|^2 y, and that of c is y . g / |y|.
    """

    def bend(self, c: Any, units: Any = None) -> Bend:
        tiny, one = torch.finfo(c.dtype).tiny, c.new_ones(())

        def bend(h: Tensor) -> None:
            inverse = _square(h).clamp_min_(tiny).rsqrt_()
            scale = torch.addcmul(one, inverse, c, out=inverse).relu_()
            _pairs(h).mul_(scale.unsqueeze(-2))

        return bend

    def slopes(self, y: Tensor, c: Any) -> tuple[Tensor, ...]:
        # Where y is zero nothing passes: s is zero there to rounding, since 1 / |y| is taken as huge.
        inverse = _square(y).clamp_min_(torch.finfo(y.dtype).tiny).rsqrt_()
        scale = torch.addcmul(c.new_ones(()), inverse, c, value=-1).reciprocal_()
        rest = torch.rsub(scale, 1).mul_(inverse).mul_(inverse)
        return scale.unsqueeze(-2), rest, y, inverse, torch.empty_like(inverse)

    def pull(self, g: Tensor, *slopes: Tensor) -> None:
        scale, rest, y, _, along = slopes
        (real, imaginary), (y_real, y_imaginary) = g.chunk(2, dim=-1), y.chunk(2, dim=-1)
        torch.mul(real, y_real, out=along).addcmul_(imaginary, y_imaginary)
        _pairs(g).mul_(scale).addcmul_(_pairs(y), (along * rest).unsqueeze(-2))

    def bias_gradient(self, g: Tensor, *slopes: Tensor) -> Tensor:
        return _sum_over_steps(slopes[3] * slopes[4])


_WIDE = 8192
"""Numbers in a step from which a row that is broadcast takes longer than its copies."""


@functools.cache
def _huge(dtype: torch.dtype) -> float:
    """Return a power of 2 near the square root of the largest number."""
    return float(2.0 ** (math.frexp(torch.finfo(dtype).max)[1] // 2))


def _rows(*vectors: Tensor) -> list[Tensor]:
    """Return vectors (*K, n), or rows (*K, 1 or B, n), as (.., B or 1, n)."""
    return [vector.unsqueeze(0) if vector.dim() == 1 else vector for vector in vectors]


def _sum_over_steps(parts: Tensor) -> Tensor:
    """Return the sum over time and batch of (T, *K, B, n)."""
    return parts.flatten(0, 1).sum(0) if parts.dim() == 3 else parts.sum(0).sum(1)


def _pairs(h: Tensor) -> Tensor:
    """Return a view of [Re, Im] as (.., 2, n/2)."""
    return h.view(*h.shape[:-1], 2, h.shape[-1] // 2)


def _square(h: Tensor) -> Tensor:
    """Return the squared moduli of [Re, Im]."""
    real, imaginary = h.chunk(2, dim=-1)
    return torch.mul(real, real).addcmul_(imaginary, imaginary)


PHIS: dict[str, Phi] = {
    "identity": _Identity(),
    "tanh": _Tanh(),
    "relu": _ReLU(),
    "modrelu": _ModReLU(),
    "complex-modrelu": _ComplexModReLU(),
}
