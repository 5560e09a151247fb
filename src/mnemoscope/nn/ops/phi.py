"""Nonlinearities of the fused recurrence: in place forward, from the output alone backward."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["PHIS", "Backward", "Phi", "complex_modrelu_", "cut", "is_large"]

Apply = Callable[[Tensor, Tensor], object]
"""Of z, which it may change, and of where y is written; the two may be the same."""


class Phi(ABC):
    """A nonlinearity y = phi(z) whose slope is a function of y."""

    def units(self, like: Tensor, c: Any) -> Tensor | None:
        """Return the units m, powers of 2 or -1, in which `apply` wants z: it is given m z; None: as it is."""
        return None

    @abstractmethod
    def apply(self, like: Tensor, c: Any, units: Any) -> Apply:
        """Return the function that writes y = phi(z), of the shape of `like`; z may be changed, and may be y.

        `c` is modReLU's bias as a row that adds to z, `units` what `units` gave.
        """

    @abstractmethod
    def backward(self, space: Tensor, c: Any) -> Backward:
        """Return the backward pass of chunks whose gradients of z are written into `space`, (steps, *K, B, n).

        Its steps are contiguous for one network alone.
        """


class Backward:
    """From the gradient of y to that of z, chunk by chunk, in memory that is used again: that of identity.

    Attributes
    ----------
    arrivals
        Where the gradient of y is put together, step by step: contiguous, for the product that is added to it.
    targets
        Where that of z is written; may be the same.
    """

    in_place = True
    """Whether the gradient of one network may arrive where that of z is written."""

    def __init__(self, space: Tensor) -> None:
        self.space, self.targets = space, space.unbind(0)
        self.small = not is_large(self.targets[0])
        if self.in_place and space.dim() == 3:
            self.room, self.arrivals = space, self.targets
        elif self.small:
            self.room = torch.empty_like(space, memory_format=torch.contiguous_format)
            self.arrivals = self.room.unbind(0)
        else:
            self.room = torch.empty_like(space[0], memory_format=torch.contiguous_format)
            self.arrivals = (self.room,) * len(space)

    def begin(self, y: Tensor) -> None:
        """Take the outputs of a chunk."""

    def arriving_gradients(self, g: Tensor) -> Sequence[Tensor]:
        """Return the gradients of y of a chunk, to which what comes from later steps is to be added.

        Those of steps that are not large are copied to where they arrive, all of a chunk at once.
        """
        if not self.small:
            return g.unbind(0)
        cut(self.room, 0, len(g)).copy_(g)
        return self.arrivals

    def turn(self, t: int) -> None:
        """Turn the gradient of step t of the chunk."""
        if self.room is not self.space:
            self.targets[t].copy_(self.arrivals[t])

    def end(self, steps: int) -> None:
        """Take what is needed of a chunk, all of whose steps have been turned."""

    def bias_gradient(self) -> Tensor:
        """Return the gradient of modReLU's bias, (*K, n), from all chunks so far."""
        raise TypeError(f"{type(self).__name__} has no bias of its own")


class _Identity(Phi):
    def apply(self, like: Tensor, c: Any, units: Any) -> Apply:
        return lambda z, y: None if y is z else y.copy_(z)

    def backward(self, space: Tensor, c: Any) -> Backward:
        return Backward(space)


class _Slopes(Backward):
    """A product with slopes, which are computed for a whole chunk."""

    in_place = False

    def __init__(self, space: Tensor, slopes: Callable[[Tensor, Tensor], object]) -> None:
        super().__init__(space)
        self.compute = slopes

    def begin(self, y: Tensor) -> None:
        self.compute(y, cut(self.space, 0, len(y)))

    def turn(self, t: int) -> None:
        self.targets[t].mul_(self.arrivals[t])


class _Tanh(Phi):
    def apply(self, like: Tensor, c: Any, units: Any) -> Apply:
        return lambda z, y: torch.tanh(z, out=y)

    def backward(self, space: Tensor, c: Any) -> Backward:
        one = space.new_ones(())
        return _Slopes(space, lambda y, out: torch.addcmul(one, y, y, value=-1, out=out))


class _ReLU(Phi):
    def apply(self, like: Tensor, c: Any, units: Any) -> Apply:
        return lambda z, y: torch.clamp_min(z, 0, out=y)

    def backward(self, space: Tensor, c: Any) -> Backward:
        return _Slopes(space, _signs)


class _ModReLU(Phi):
    """sign(z) relu(|z| + c) = clamp(m z, -|c|, |c|) + z, with m = -1 where c <= 0, m = (a huge power of 2) where c > 0.

    Two operations where the definition takes five: the recurrence is computed in units of m, which rounds nothing.
    """

    def units(self, like: Tensor, c: Any) -> Tensor:
        return torch.threshold_(c.sign().mul_(_huge(c.dtype)), 0.0, -1.0)

    def apply(self, like: Tensor, c: Any, units: Any) -> Apply:
        rows = [c.abs(), units.reciprocal()]
        high, inverse = rows if like.numel() < _WIDE else [row.expand_as(like).contiguous() for row in rows]
        low, space = -high, torch.empty_like(like)

        def apply(z: Tensor, y: Tensor) -> None:
            torch.addcmul(torch.clamp(z, low, high, out=space), z, inverse, out=y)

        return apply

    def backward(self, space: Tensor, c: Any) -> Backward:
        return _ModReLUs(space)


class _ModReLUs(_Slopes):
    """g sign(y)^2; that of c sums g sign(y)."""

    def __init__(self, space: Tensor) -> None:
        super().__init__(space, _signs)
        # A sum over many steps loses its digits in 16 bits.
        self.wide = torch.float32 if space.dtype.itemsize < 4 else None
        self.total: Any = None

    def turn(self, t: int) -> None:
        arriving, sign = self.arrivals[t], self.targets[t]
        arriving.mul_(sign)
        if not self.small:
            self._count(arriving.unsqueeze(0))
        sign.mul_(arriving)

    def end(self, steps: int) -> None:
        if self.small:
            self._count(cut(self.room, 0, steps))

    def _count(self, products: Tensor) -> None:
        part = _sum_rows(products, self.wide)
        self.total = part if self.total is None else self.total.add_(part)

    def bias_gradient(self) -> Tensor:
        total: Tensor = self.total
        return total if self.wide is None else total.to(self.space.dtype)


class _ComplexModReLU(Phi):
    """z / |z| relu(|z| + c) of n/2 complex numbers: their real parts, then their imaginary parts."""

    def apply(self, like: Tensor, c: Any, units: Any) -> Apply:
        apply_parts = complex_modrelu_(like.chunk(2, dim=-1)[0], c)

        def apply(z: Tensor, y: Tensor) -> None:
            apply_parts(*z.chunk(2, dim=-1))
            if y is not z:
                y.copy_(z)

        return apply

    def backward(self, space: Tensor, c: Any) -> Backward:
        return _ComplexModReLUs(space, c)


class _ComplexModReLUs(Backward):
    """With y = s z, s = |y| / (|y| - c): g becomes s g + (1 - s) (y . g) / |y|^2 y; that of c sums y . g / |y|.

    Where y is zero nothing passes: |y| is taken as tiny there, and s is zero to rounding. Where |y| - c is lost to
    rounding, s is 1 / eps.
    """

    def __init__(self, space: Tensor, c: Any) -> None:
        super().__init__(space)
        self.c, self.parts, self.ends = c, _halves(self.arrivals), _halves(self.targets)
        self.outputs: list[tuple[Tensor, ...]] = []
        self.tiny, self.lost = c.new_full((), torch.finfo(c.dtype).tiny), c.abs() * torch.finfo(c.dtype).eps
        half = space[0].chunk(2, dim=-1)[0]
        self.scratch = [space.new_empty(half.shape) for _ in range(3)]
        self.total = torch.zeros_like(self.scratch[0])

    def begin(self, y: Tensor) -> None:
        self.outputs = _halves(y.unbind(0))

    def turn(self, t: int) -> None:
        (g_real, g_imaginary), (real, imaginary) = self.parts[t], self.outputs[t]
        square, modulus, along = self.scratch
        torch.addcmul(self.tiny, real, real, out=square).addcmul_(imaginary, imaginary)
        torch.sqrt(square, out=modulus)
        torch.mul(g_real, real, out=along).addcmul_(g_imaginary, imaginary)
        self.total.addcdiv_(along, modulus)
        along.div_(square)
        scale = torch.sub(modulus, self.c, out=square).abs_().clamp_min_(self.lost)
        torch.div(modulus, scale, out=scale)
        for g, y, end in zip(self.parts[t], self.outputs[t], self.ends[t], strict=True):
            torch.lerp(torch.mul(along, y, out=modulus), g, scale, out=end)

    def bias_gradient(self) -> Tensor:
        return self.total.sum(-2)


def complex_modrelu_(like: Tensor, c: Tensor) -> Callable[[Tensor, Tensor], None]:
    """Return z / |z| relu(|z| + c) as a function of Re z and Im z, of the shape of `like`, in place."""
    tiny, one = c.new_full((), torch.finfo(c.dtype).tiny), c.new_ones(())
    scale = torch.empty_like(like, memory_format=torch.contiguous_format)

    def apply(real: Tensor, imaginary: Tensor) -> None:
        torch.addcmul(tiny, real, real, out=scale).addcmul_(imaginary, imaginary).rsqrt_()
        torch.addcmul(one, c, scale, out=scale).relu_()
        real.mul_(scale)
        imaginary.mul_(scale)

    return apply


def cut(tensor: Tensor, start: int, stop: int, axis: int = 0) -> Tensor:
    """Return some steps; where these are all, without a view, which takes as long as phi of a small step."""
    return tensor if stop - start == tensor.shape[axis] else tensor.narrow(axis, start, stop - start)


def _sum_rows(tensor: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return the sum over the steps and sequences of (steps, *K, B, n)."""
    if tensor.dim() == 3:
        return tensor.flatten(0, 1).sum(0, dtype=dtype)
    return tensor.sum(-2, dtype=dtype).sum(0)


def is_large(step: Tensor) -> bool:
    """Say whether a step is better read and written where it is than copied with others."""
    return step.numel() >= _LARGE


_WIDE = 8192
"""Numbers in a step from which a row that is broadcast takes longer than its copies."""

_LARGE = 2**16
"""Numbers in a large step: the calls that it takes by itself are short beside the copies that it saves."""


@functools.cache
def _huge(dtype: torch.dtype) -> float:
    """Return a power of 2 near the square root of the largest number."""
    return float(2.0 ** (math.frexp(torch.finfo(dtype).max)[1] // 2))


def _signs(y: Tensor, out: Tensor) -> None:
    """Write the signs of y: the slopes of relu, and of modReLU up to their own sign."""
    torch.sign(y, out=out)


def _halves(steps: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
    """Return real and imaginary parts step by step."""
    return [step.chunk(2, dim=-1) for step in steps]


PHIS: dict[str, Phi] = {
    "identity": _Identity(),
    "tanh": _Tanh(),
    "relu": _ReLU(),
    "modrelu": _ModReLU(),
    "complex-modrelu": _ComplexModReLU(),
}
