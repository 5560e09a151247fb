"""The loops of the fused recurrence, forward and backward, in place on one buffer. No autograd in here.

Tensors: x (T, *K, B, d), U (*K, n, d), b and c (*K, n), V (*K, n, n), h_0 (*K, B, n), where *K is nothing for one
network and one axis for a population.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemoscope.nn.phi import PHIS, WayBack, cut, sum_rows

__all__ = ["Plan", "Tensors", "below_autograd", "pull_back", "run"]

Tensors = tuple[Any, ...]
"""x, U, b, V, h_0, c; U, b, h_0 and c may be None."""

below_autograd = torch._C._AutoDispatchBelowADInplaceOrView
"""Within it no operation asks autograd, which records nothing there but takes a tenth of a small operation's time."""

_CHUNK = 2**17
"""Numbers in a chunk: half a MiB in float32, which stays in the processor's cache with the gradients of the chunk."""

_STEPS = (4, 64)
"""Steps that a chunk has at least, and at most unless they have few rows: to cut memory takes time, too."""

_ROWS = 512
"""Rows that a chunk has at least: a product over fewer is slow."""


class Plan(NamedTuple):
    """What is not a tensor.

    Attributes
    ----------
    phi
        One of `PHIS`; ``complex-modrelu`` reads its n units as n/2 real parts, then n/2 imaginary parts.
    sizes
        How many sequences, the first ones, are alive at each step; None when all are.
    checkpoint
        Steps between two states that are kept for the backward pass, which computes the others again; None keeps all.
    """

    phi: str
    sizes: tuple[int, ...] | None = None
    checkpoint: int | None = None

    def part(self, start: int, stop: int) -> Plan:
        """Return the plan of some of the steps."""
        return self if self.sizes is None else self._replace(sizes=self.sizes[start:stop])


def run(x: Tensor, u: Any, b: Any, v: Tensor, h0: Any, c: Any, plan: Plan) -> Tensor:
    """Return h_1 .. h_T; steps after the end of a sequence are zero.

    What the input contributes is computed chunk by chunk, so that it is still in the cache when its step comes.
    """
    phi, steps = PHIS[plan.phi], x.shape[0]
    units = phi.units(x, _row(c))
    weight = _transposed(v, units)
    out = x.new_empty(*x.shape[:-1], v.shape[-1])
    slices = out.unbind(0)
    drive, add_product, bend = _driver(x, u, b, units, out), _add_product(v), phi.bend(slices[0], _row(c), units)
    previous = h0 if _moves(h0) else None
    every = _steps_in_cache(out)
    for start in range(0, steps, every):
        drive(start, min(start + every, steps))
        for t in range(start, min(start + every, steps)):
            h = alive = slices[t]
            if plan.sizes is not None:
                h[..., plan.sizes[t] :, :] = 0
                alive = h[..., : plan.sizes[t], :]
                previous = previous if previous is None else previous[..., : plan.sizes[t], :]
            if previous is not None:
                add_product(alive, previous, weight)
            bend(h)
            previous = h
    return out


def pull_back(
    g: Tensor, kept: Tensor, tensors: Tensors, plan: Plan, wanted: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    """Return the gradients of x, U, b, V, h_0, c that are wanted.

    `g` is that of the output; `kept` is the output, or its states before each chunk but the first. Steps are taken back
    in chunks: those of the plan's checkpoints, or as many as stay in the cache.
    """
    x, u, b, v, h0, c = tensors
    steps, weight = x.shape[0], v.contiguous()
    every = min(plan.checkpoint or _steps_in_cache(g), steps)
    dx = torch.empty_like(x) if wanted[0] else None
    space = g.new_empty(every, *g.shape[1:])
    way_back, sums, later = PHIS[plan.phi].way_back(space, _row(c)), _Sums(), None
    between: Any = torch.empty_like(space[0]) if every < steps else None
    for start in reversed(range(0, steps, every)):
        stop = min(start + every, steps)
        chunk, now = plan.part(start, stop), cut(x, start, stop)
        if plan.checkpoint is None:
            out, before = cut(kept, start, stop), h0 if start == 0 else kept[start - 1]
        else:
            before = h0 if start == 0 else kept[start // every - 1]
            out = run(now, u, b, v, before, c, chunk)
        way_back.look(out)
        _chain(way_back, cut(g, start, stop), weight, chunk, later)
        way_back.leave(stop - start)
        da = cut(space, 0, stop - start)
        if dx is not None:
            _input_gradient(da, u, cut(dx, start, stop))
        if wanted[1]:
            sums.add_products("u", now, da)  # with a narrow x this order of factors is ten times as fast as da^T x
        if wanted[2]:
            sums.add("b", sum_rows(da))
        if wanted[3] and plan.checkpoint is None and start > 0:
            sums.add_products("v", da, kept[start - 1 : stop - 1])
        elif wanted[3]:
            sums.add_products("v", da[1:], out[:-1])
            if _moves(before):
                sums.add_products("v", da[:1], before.unsqueeze(0))
        later = way_back.targets[0]
        if start:  # the next chunk is written over this one
            later = between.copy_(later)
    dh0 = later @ weight if wanted[4] and later is not None else None
    du = sums["u"].mT.contiguous() if wanted[1] else None
    return dx, du, sums.get("b"), sums.get("v"), dh0, way_back.bias_gradient() if wanted[5] else None


def _moves(state: Tensor | None) -> bool:
    """Say whether a state contributes anything to the next: one at zero does not."""
    return state is not None and bool(state.count_nonzero())


def _steps_in_cache(out: Tensor) -> int:
    """Return how many steps of (T, *K, B, n) make a chunk."""
    numbers = max(1, out.numel() // max(1, out.shape[0]))
    rows = max(1, numbers // max(1, out.shape[-1]))
    fewest, most = _STEPS
    return max(min(_CHUNK // numbers, most), _ROWS // rows, fewest)


def _input_gradient(da: Tensor, u: Tensor | None, out: Tensor) -> None:
    """Write that of x of some steps; a population's step by step, since a product over all would copy U for each."""
    if u is None:
        out.copy_(da)
    elif u.dim() == 2:
        torch.matmul(da, u, out=out)
    else:
        for one, target in zip(da.unbind(0), out.unbind(0), strict=True):
            torch.bmm(one, u, out=target)


class _Sums(dict[str, Tensor]):
    """Gradients by name, added up chunk by chunk."""

    def add(self, name: str, part: Tensor) -> None:
        """Add the part of one chunk."""
        if name in self:
            self[name] += part
        else:
            self[name] = part

    def add_products(self, name: str, left: Tensor, right: Tensor) -> None:
        """Add the sum over steps of left^T right; a population's in one batch of products a step, without a copy."""
        if left.dim() == 3:
            one, other = left.flatten(0, 1).T, right.flatten(0, 1)
            self[name] = self[name].addmm_(one, other) if name in self else one @ other
            return
        if name not in self:
            self[name] = left.new_zeros(left.shape[1], left.shape[-1], right.shape[-1])
        total = self[name]
        for one, other in zip(left.unbind(0), right.unbind(0), strict=True):
            total.baddbmm_(one.mT, other)


def _row(vector: Tensor | None) -> Tensor | None:
    """Return a bias so that it adds to (*K, B, n)."""
    return vector.unsqueeze(-2) if vector is not None and vector.dim() == 2 else vector


def _add_product(v: Tensor) -> Any:
    """Return the operation ``h += previous @ weight``, in place."""
    return Tensor.addmm_ if v.dim() == 2 else Tensor.baddbmm_


def _transposed(weight: Tensor, units: Tensor | None) -> Tensor:
    """Return a weight, its outputs in `units`, so that inputs multiply it from the left.

    Contiguous, on which a product runs half again as fast; to multiply a transposed one keeps it transposed.
    """
    turned = weight.mT.contiguous()
    return turned if units is None else turned * units


def _driver(
    x: Tensor, u: Tensor | None, b: Tensor | None, units: Tensor | None, out: Tensor
) -> Callable[[int, int], object]:
    """Return the function that writes U x + b of some steps into `out`: one product, or for a population one a step."""
    if u is None:
        one = x.new_ones(()) if units is None else units
        return lambda start, stop: torch.mul(cut(x, start, stop), one, out=cut(out, start, stop))
    weight = _transposed(u, units)
    b = b if b is None or units is None else b * (units.squeeze(-2) if units.dim() > 1 else units)
    if x.dim() > 3:
        bias = _row(b)

        def drive_members(start: int, stop: int) -> None:
            for driven, now in zip(cut(out, start, stop).unbind(0), cut(x, start, stop).unbind(0), strict=True):
                torch.bmm(now, weight, out=driven) if bias is None else torch.baddbmm(bias, now, weight, out=driven)

        return drive_members

    def drive(start: int, stop: int) -> None:
        now, driven = (cut(steps, start, stop).flatten(0, 1) for steps in (x, out))
        torch.mm(now, weight, out=driven) if b is None else torch.addmm(b, now, weight, out=driven)

    return drive


def _chain(way_back: WayBack, g: Tensor, v: Tensor, plan: Plan, later: Tensor | None) -> None:
    """Turn the gradients of the outputs of some steps into those before phi; `later` is that of the step after them."""
    add_product = torch.addmm if v.dim() == 2 else torch.baddbmm
    gradients = way_back.receive(g)
    for t in range(len(g) - 1, -1, -1):
        arriving = way_back.arrivals[t]
        if later is not None:
            add_product(gradients[t], later, v, out=arriving)
        elif not way_back.small:
            arriving.copy_(gradients[t])
        if plan.sizes is not None:
            arriving[..., plan.sizes[t] :, :] = 0
        way_back.pull(t)
        later = way_back.targets[t]
