"""The nonlinearities of the fused recurrence: in place on the way there, from the output alone on the way back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["PHIS", "Phi"]

Bend = Callable[[Tensor], object]


class Phi(ABC):
    """A nonlinearity y = phi(z) whose slope is a function of y."""

    @abstractmethod
    def bend(self, c: Tensor | None) -> Bend:
        """Return the function that turns z into y in place; `c` is modReLU's bias."""

    @abstractmethod
    def slopes(self, y: Tensor, c: Any) -> tuple[Tensor, ...]:
        """Return what `pull` needs at many steps at once."""

    def pull(self, g: Tensor, *slopes: Tensor) -> None:
        """Turn the gradient of y into that of z, in place, at one step: a product, unless said otherwise."""
        g.mul_(slopes[0])

    def bias_gradient(self, g: Tensor, *slopes: Tensor) -> Tensor:
        """Return the gradient of modReLU's bias, (*K, 1, n), from that of z at many steps."""
        raise TypeError(f"{type(self).__name__} has no bias of its own")


class _Identity(Phi):
    def bend(self, c: Tensor | None) -> Bend:
        return lambda h: None

    def slopes(self, y: Tensor, c: Any) -> tuple[Tensor, ...]:
        return ()

    def pull(self, g: Tensor, *slopes: Tensor) -> None:
        """Leave the gradient as it is."""


class _Tanh(Phi):
    def bend(self, c: Tensor | None) -> Bend:
        return Tensor.tanh_

    def slopes(self, y: Tensor, c: Any) -> tuple[Tensor, ...]:
        return (torch.addcmul(y.new_ones(()), y, y, value=-1),)


class _ReLU(Phi):
    def bend(self, c: Tensor | None) -> Bend:
        return Tensor.relu_

    def slopes(self, y: Tensor, c: Any) -> tuple[Tensor, ...]:
        return (y.sign(),)


class _ModReLU(Phi):
    """sign(z) relu(|z| + c) = z - clamp(m z, -|c|, |c|), with m = 1 where c <= 0 and m = -(a huge number) where c > 0.

    Three operations where the definition takes five.
    """

    def bend(self, c: Any) -> Bend:
        huge = torch.finfo(c.dtype).max ** 0.75
        factor, high = torch.where(c > 0, c.new_tensor(-huge), c.new_ones(())), c.abs()
        low, space = -high, c.new_empty(())

        def bend(h: Tensor) -> None:
            nonlocal space
            if space.shape != h.shape:
                space = torch.empty_like(h)
            h.sub_(torch.mul(h, factor, out=space).clamp_(low, high))

        return bend

    def slopes(self, y: Tensor, c: Any) -> tuple[Tensor, ...]:
        sign = y.sign()
        return sign * sign, sign

    def bias_gradient(self, g: Tensor, *slopes: Tensor) -> Tensor:
        return (g * slopes[1]).sum(0).sum(-2, keepdim=True)


class _ComplexModReLU(Phi):
    """z / |z| relu(|z| + c) of n/2 complex numbers: their real parts, then their imaginary parts.

    With y = s z and u = y / |y|, the gradient g becomes s g + (1 - s) (u . g) u, and that of c is u . g.
    """

    def bend(self, c: Any) -> Bend:
        tiny = torch.finfo(c.dtype).tiny

        def bend(h: Tensor) -> None:
            radius = _radius(h)
            scale = (radius + c).relu_().div_(radius.clamp_min_(tiny))
            _pairs(h).mul_(scale.unsqueeze(-2))

        return bend

    def slopes(self, y: Tensor, c: Any) -> tuple[Tensor, ...]:
        radius = _radius(y)
        scale = (radius / (radius - c)).masked_fill_(radius == 0, 0.0).unsqueeze(-2)
        unit = _pairs(y) / radius.clamp_min_(torch.finfo(y.dtype).tiny).unsqueeze(-2)
        return scale, unit, unit * (1 - scale)

    def pull(self, g: Tensor, *slopes: Tensor) -> None:
        scale, unit, rest = slopes
        pair = _pairs(g)
        along = (pair * unit).sum(-2, keepdim=True)
        pair.mul_(scale).addcmul_(along, rest)

    def bias_gradient(self, g: Tensor, *slopes: Tensor) -> Tensor:
        return (_pairs(g) * slopes[1]).sum((0, -2)).sum(-2, keepdim=True)


def _pairs(h: Tensor) -> Tensor:
    """Return a view of [Re, Im] as (.., 2, n/2)."""
    return h.view(*h.shape[:-1], 2, h.shape[-1] // 2)


def _radius(h: Tensor) -> Tensor:
    real, imaginary = h.chunk(2, dim=-1)
    return torch.addcmul(real * real, imaginary, imaginary).sqrt_()


PHIS: dict[str, Phi] = {
    "identity": _Identity(),
    "tanh": _Tanh(),
    "relu": _ReLU(),
    "modrelu": _ModReLU(),
    "complex-modrelu": _ComplexModReLU(),
}
