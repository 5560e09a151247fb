"""The loops of the complex recurrence with many units: real and imaginary parts in planes of their own.

A complex product is three real ones,

    Re h M = (h_r + h_i) M_r - h_i (M_r + M_i),  Im h M = (h_r + h_i) M_r + h_r (M_i - M_r),

where that of the real form, [h_r, h_i] times [[M_r, M_i], [-M_i, M_r]], is four. The output has both parts side by
side, (T, B, 2n), and there sums of parts go row by row: a chunk of steps is computed in (2, steps, B, n), then copied.

No autograd in here. The twin is the real form, in `mnemoscope.nn.ops.kernel`, which serves whatever does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from mnemoscope.nn.ops.kernel import Plan, Tensors, steps_in_cache
from mnemoscope.nn.ops.phi import complex_modrelu_, cut

__all__ = ["fits", "pull_back", "run"]

Pair = tuple[Tensor, Tensor]
"""Real and imaginary parts."""

_UNITS = 128
"""Units from which three products are faster than one of twice the size, which is four."""


def fits(tensors: Tensors, plan: Plan) -> bool:
    """Say whether these loops serve: one network of many units with modReLU, on whole sequences."""
    _, u, b, v, _, _ = tensors
    many = v.is_complex() and v.dim() == 2 and v.shape[-1] >= _UNITS
    return many and u is not None and b is None and plan == Plan("complex-modrelu")


def run(x: Tensor, u: Tensor, v: Tensor, h0: Tensor | None, c: Tensor) -> Tensor:
    """Return h_1 .. h_T, (T, B, 2n)."""
    (steps, batch, _), n = x.shape, v.shape[-1]
    every = min(steps_in_cache(batch, n), steps)
    out, room = x.new_empty(steps, batch, 2 * n), x.new_empty(2, every, batch, n)
    slices, weights = list(_steps(room)), [part.T.contiguous() for part in u.chunk(2)]
    product, apply = _Product(v.mT, room[0, 0]), complex_modrelu_(room[0, 0], c)
    previous: Any = None if h0 is None else h0.chunk(2, dim=-1)
    for start in range(0, steps, every):
        stop = min(start + every, steps)
        rows = cut(x, start, stop).flatten(0, 1)
        for plane, weight in zip(room, weights, strict=True):
            torch.mm(rows, weight, out=cut(plane, 0, stop - start).flatten(0, 1))
        for h in slices[: stop - start]:
            if previous is not None:
                product.add(h, previous)
            apply(*h)
            previous = h
        _planes(cut(out, start, stop)).copy_(cut(room, 0, stop - start, 1))
        previous = out[stop - 1].chunk(2, dim=-1)  # the next chunk is written over this one
    return out


def pull_back(g: Tensor, out: Tensor, tensors: Tensors, wanted: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
    """Return the gradients of x, U, b, V, h_0, c that are wanted, from that of the output and from the output."""
    x, _, _, v, _, c = tensors
    (steps, batch, _), n = x.shape, v.shape[-1]
    every = min(steps_in_cache(batch, n), steps)
    room, between = (g.new_empty(2, length, batch, n) for length in (every, 1))
    gradients, product, sums = list(_steps(room)), _Product(v.conj(), room[0, 0]), _Sums(out, tensors, wanted)
    backward, later = _WayBack(room, c), None
    for start in reversed(range(0, steps, every)):
        stop = min(start + every, steps)
        da = cut(room, 0, stop - start, 1).copy_(_planes(cut(g, start, stop)))
        backward.begin(_planes(cut(out, start, stop)))
        for t in reversed(range(stop - start)):
            if later is not None:
                product.add(gradients[t], later)
            backward.turn(t, *gradients[t])
            later = gradients[t]
        sums.add(start, stop, da)
        if start:  # the next chunk is written over this one
            between[:, 0].copy_(room[:, 0])
            later = next(_steps(between))
    dh0 = torch.zeros_like(out[0]) if wanted[4] else None
    if dh0 is not None:
        product.add(dh0.chunk(2, dim=-1), later)
    return sums.dx, sums.of_u(), None, sums.of_v(), dh0, backward.bias_gradient() if wanted[5] else None


class _Sums:
    """The gradients of x, U and V, where they are wanted, from those before phi of one chunk after the other.

    That of V, the sum of a^T conj(h) over rows, is three real products as well.
    """

    def __init__(self, out: Tensor, tensors: Tensors, wanted: tuple[bool, ...]) -> None:
        self.x, self.u, _, v, self.h0, _ = tensors
        self.out, (self.n, _) = out, v.shape
        self.dx = torch.empty_like(self.x, memory_format=torch.contiguous_format) if wanted[0] else None
        self.du = self.u.new_zeros(2, self.u.shape[-1], self.n) if wanted[1] else None
        self.dv = self.x.new_zeros(3, *v.shape) if wanted[3] else None

    def add(self, start: int, stop: int, da: Tensor) -> None:
        """Add a chunk, (2, steps, B, n)."""
        real, imaginary = (part.flatten(0, 1) for part in da)
        if self.dx is not None:
            target = cut(self.dx, start, stop).flatten(0, 1)
            torch.mm(real, self.u[: self.n], out=target).addmm_(imaginary, self.u[self.n :])
        if self.du is not None:
            columns = cut(self.x, start, stop).flatten(0, 1).T
            self.du[0].addmm_(columns, real)
            self.du[1].addmm_(columns, imaginary)
        if start:
            self._add_products(da, _planes(self.out[start - 1 : stop - 1]))
        else:
            self._add_products(da[:, 1:], _planes(self.out[: stop - 1]))
            if self.h0 is not None:
                self._add_products(da[:, :1], _planes(self.h0.unsqueeze(0)))

    def _add_products(self, a: Tensor, h: Tensor) -> None:
        if self.dv is None:
            return
        pairs = [(a[0], h[0]), (a[1], h[1]), (a[0] + a[1], h[0] - h[1])]
        for total, (left, right) in zip(self.dv, pairs, strict=True):
            total.addmm_(left.flatten(0, 1).T, right.flatten(0, 1))

    def of_u(self) -> Tensor | None:
        """Return that of U."""
        return None if self.du is None else self.du.mT.flatten(0, 1)

    def of_v(self) -> Tensor | None:
        """Return that of V."""
        if self.dv is None:
            return None
        real, imaginary, mixed = self.dv
        return torch.complex(real + imaginary, mixed - real + imaginary)


class _Product:
    """z += h M, of rows h."""

    def __init__(self, m: Tensor, like: Tensor) -> None:
        real, imaginary = m.real, m.imag
        self.both, self.to_real, self.to_imaginary = (
            weight.contiguous() for weight in (real, -(real + imaginary), imaginary - real)
        )
        self.sum, self.shared = torch.empty_like(like), torch.empty_like(like)

    def add(self, z: Any, h: Any) -> None:
        """Add, in place."""
        shared = torch.mm(torch.add(*h, out=self.sum), self.both, out=self.shared)
        z[0].addmm_(h[1], self.to_real).add_(shared)
        z[1].addmm_(h[0], self.to_imaginary).add_(shared)


class _WayBack:
    """modReLU's: with e = y / |y| and s = |y| / (|y| - c), g becomes s g + (1 - s) (e . g) e; that of c sums e . g.

    Where y is zero, e is zero. Where |y| - c is lost to rounding, s is 1 / eps.
    """

    def __init__(self, room: Tensor, c: Tensor) -> None:
        self.c, self.one, self.tiny = c, c.new_ones(()), c.new_full((), torch.finfo(c.dtype).tiny)
        self.directions, self.slopes = torch.empty_like(room), torch.empty_like(room[0])
        self.steps = list(zip(_steps(self.directions), self.slopes.unbind(0), strict=True))
        self.along, self.turned, self.total = (torch.zeros_like(room[0, 0]) for _ in range(3))

    def begin(self, y: Tensor) -> None:
        """Take the outputs of a chunk, (2, steps, B, n)."""
        directions, inverse = cut(self.directions, 0, y.shape[1], 1), cut(self.slopes, 0, y.shape[1])
        real, imaginary = y
        torch.addcmul(self.tiny, real, real, out=inverse).addcmul_(imaginary, imaginary).rsqrt_()
        torch.mul(y, inverse, out=directions)
        torch.addcmul(self.one, self.c, inverse, value=-1, out=inverse)
        inverse.abs_().clamp_min_(torch.finfo(inverse.dtype).eps).reciprocal_()

    def turn(self, t: int, real: Tensor, imaginary: Tensor) -> None:
        """Turn the gradient of step t, in place."""
        (e_real, e_imaginary), slope = self.steps[t]
        along = torch.mul(real, e_real, out=self.along).addcmul_(imaginary, e_imaginary)
        self.total.add_(along)
        torch.lerp(torch.mul(along, e_real, out=self.turned), real, slope, out=real)
        torch.lerp(torch.mul(along, e_imaginary, out=self.turned), imaginary, slope, out=imaginary)

    def bias_gradient(self) -> Tensor:
        """Return that of c, from all chunks so far."""
        return self.total.sum(0)


def _planes(rows: Tensor) -> Tensor:
    """Return (steps, B, 2n) as (2, steps, B, n), where it lies."""
    return rows.reshape(*rows.shape[:-1], 2, rows.shape[-1] // 2).movedim(-2, 0)


def _steps(planes: Tensor) -> Iterator[Pair]:
    """Return real and imaginary parts step by step."""
    return zip(*(plane.unbind(0) for plane in planes), strict=True)
