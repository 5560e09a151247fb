"""The loops of the complex recurrence, where steps are large: real and imaginary parts in planes of their own.

The output has them side by side, (T, B, 2n), where every elementwise operation on one of them goes row by row and takes
twice as long. Here a chunk of steps is computed in (2, steps, B, n) and copied. A complex product is three real ones:

    Re = (h_r + h_i) M_r - h_i (M_r + M_i),  Im = (h_r + h_i) M_r + h_r (M_i - M_r).

No autograd in here. The twin is the real form of the same recurrence, in `mnemoscope.nn.kernel`, which serves all else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from mnemoscope.nn.kernel import Plan, Tensors, steps_in_cache
from mnemoscope.nn.phi import complex_modrelu_, cut, sum_rows

__all__ = ["fits", "pull_back", "run"]

Pair = tuple[Tensor, Tensor]
"""Real and imaginary parts."""

_LARGE = 2**13
"""Complex numbers in a step from which planes are faster than rows of both parts."""


def fits(tensors: Tensors, plan: Plan) -> bool:
    """Say whether these loops serve: one network with modReLU, on whole sequences whose steps are large."""
    x, u, b, v, _, _ = tensors
    plain = plan == Plan("complex-modrelu") and v.is_complex() and v.dim() == 2 and u is not None and b is None
    return plain and x.shape[-2] * v.shape[-1] >= _LARGE


def run(x: Tensor, u: Tensor, v: Tensor, h0: Tensor | None, c: Tensor) -> Tensor:
    """Return h_1 .. h_T, (T, B, 2n)."""
    (steps, batch, _), n = x.shape, v.shape[-1]
    every = min(steps_in_cache(batch, 2 * n), steps)
    out, room = x.new_empty(steps, batch, 2 * n), x.new_empty(2, every, batch, n)
    slices, weights = list(_steps(room)), [part.T.contiguous() for part in u.chunk(2)]
    product, bend = _Product(v.mT, room[0, 0]), complex_modrelu_(room[0, 0], c)
    previous: Any = None if h0 is None else h0.chunk(2, dim=-1)
    for start in range(0, steps, every):
        stop = min(start + every, steps)
        rows = cut(x, start, stop).flatten(0, 1)
        for plane, weight in zip(room, weights, strict=True):
            torch.mm(rows, weight, out=cut(plane, 0, stop - start).flatten(0, 1))
        for h in slices[: stop - start]:
            if previous is not None:
                product.add(h, previous)
            bend(*h)
            previous = h
        _planes(cut(out, start, stop)).copy_(cut(room, 0, stop - start, 1))
        previous = out[stop - 1].chunk(2, dim=-1)  # the next chunk is written over this one
    return out


def pull_back(
    g: Tensor, out: Tensor, tensors: Tensors, wanted: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    """Return the gradients of x, U, b, V, h_0, c that are wanted, from that of the output and from the output."""
    x, u, _, v, h0, c = tensors
    (steps, batch, _), n = x.shape, v.shape[-1]
    every = min(steps_in_cache(batch, 2 * n), steps)
    dx = torch.empty_like(x, memory_format=torch.contiguous_format) if wanted[0] else None
    du, dc = u.new_zeros(2, *u.mT.chunk(2, dim=-1)[0].shape), torch.zeros_like(c)
    room, between = (g.new_empty(2, length, batch, n) for length in (every, 1))
    gradients, product, correlation = list(_steps(room)), _Product(v.conj(), room[0, 0]), _Correlation(v)
    way_back, later = _WayBack(room, c), None
    for start in reversed(range(0, steps, every)):
        stop = min(start + every, steps)
        da = cut(room, 0, stop - start, 1).copy_(_planes(cut(g, start, stop)))
        way_back.look(_planes(cut(out, start, stop)))
        for t in reversed(range(stop - start)):
            if later is not None:
                product.add(gradients[t], later)
            way_back.pull(t, *gradients[t])
            later = gradients[t]
        dc += way_back.bias_gradient(da)
        parts, rows = [part.flatten(0, 1) for part in da], cut(x, start, stop).flatten(0, 1)
        if dx is not None:
            target = cut(dx, start, stop).flatten(0, 1)
            torch.mm(parts[0], u[:n], out=target).addmm_(parts[1], u[n:])
        if wanted[1]:
            for total, part in zip(du, parts, strict=True):
                total.addmm_(rows.T, part)
        if wanted[3]:
            first = 0 if start else 1
            correlation.add(da[:, first:], _planes(out[start - 1 + first : stop - 1]))
            if not start and h0 is not None:
                correlation.add(da[:, :1], _planes(h0.unsqueeze(0)))
        if start:  # the next chunk is written over this one
            between[:, 0].copy_(room[:, 0])
            later = next(_steps(between))
    dh0 = torch.zeros_like(out[0]) if wanted[4] else None
    if dh0 is not None and later is not None:
        product.add(dh0.chunk(2, dim=-1), later)
    return (
        dx,
        du.mT.flatten(0, 1) if wanted[1] else None,
        None,
        correlation.total() if wanted[3] else None,
        dh0,
        dc if wanted[5] else None,
    )


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


class _Correlation:
    """The gradient of V, sum a^T conj(h) over rows, by three real products."""

    def __init__(self, v: Tensor) -> None:
        self.parts = [torch.zeros_like(v.real) for _ in range(3)]

    def add(self, a: Tensor, h: Tensor) -> None:
        """Add some steps, (2, steps, B, n)."""
        pairs = [(a[0], h[0]), (a[1], h[1]), (a[0] + a[1], h[0] - h[1])]
        for part, (left, right) in zip(self.parts, pairs, strict=True):
            part.addmm_(left.flatten(0, 1).T, right.flatten(0, 1))

    def total(self) -> Tensor:
        """Return the sum."""
        real, imaginary, mixed = self.parts
        return torch.complex(real + imaginary, mixed - real + imaginary)


class _WayBack:
    """modReLU's: with e = y / |y| and s = |y| / (|y| - c), g becomes s g + (1 - s) (e . g) e.

    That of c sums e . g, and this is e . of what g becomes, since e is a unit vector. Where y is zero, e is zero.
    """

    def __init__(self, room: Tensor, c: Tensor) -> None:
        self.c, self.one, self.tiny = c, c.new_ones(()), c.new_full((), torch.finfo(c.dtype).tiny)
        self.directions, self.slopes = torch.empty_like(room), torch.empty_like(room[0])
        self.steps = list(zip(_steps(self.directions), self.slopes.unbind(0), strict=True))
        self.along, self.turned = (torch.empty_like(room[0, 0]) for _ in range(2))

    def look(self, y: Tensor) -> None:
        """Take the outputs of a chunk, (2, steps, B, n)."""
        directions, inverse = cut(self.directions, 0, y.shape[1], 1), cut(self.slopes, 0, y.shape[1])
        real, imaginary = y
        torch.addcmul(self.tiny, real, real, out=inverse).addcmul_(imaginary, imaginary).rsqrt_()
        torch.mul(y, inverse, out=directions)
        torch.addcmul(self.one, self.c, inverse, value=-1, out=inverse).reciprocal_()

    def pull(self, t: int, real: Tensor, imaginary: Tensor) -> None:
        """Turn the gradient of step t, in place."""
        (e_real, e_imaginary), slope = self.steps[t]
        along = torch.mul(real, e_real, out=self.along).addcmul_(imaginary, e_imaginary)
        torch.lerp(torch.mul(along, e_real, out=self.turned), real, slope, out=real)
        torch.lerp(torch.mul(along, e_imaginary, out=self.turned), imaginary, slope, out=imaginary)

    def bias_gradient(self, da: Tensor) -> Tensor:
        """Return the part of the chunk whose gradients are `da`."""
        return sum_rows(cut(self.directions, 0, da.shape[1], 1).mul_(da).flatten(0, 1))


def _planes(rows: Tensor) -> Tensor:
    """Return (steps, B, 2n) as (2, steps, B, n), where it lies."""
    return rows.unflatten(-1, (2, -1)).movedim(-2, 0)


def _steps(planes: Tensor) -> Iterator[Pair]:
    """Return real and imaginary parts step by step."""
    return zip(*(plane.unbind(0) for plane in planes), strict=True)
