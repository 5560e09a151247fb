"""The loops of the fused recurrence, forward and backward, in place on one buffer. No autograd in here.

Tensors: x (*K, T, B, d), U (*K, n, d), b and c (*K, n), V (*K, n, n), h_0 (*K, B, n), where *K is nothing for one
network and one axis for a population. One network's steps are computed where its output lies. A population's steps are
scattered there, and batches of products are slow to write to such places: products are added up in a chunk of memory,
(steps, K, B, n), from which phi writes to where they belong. What need not go step by step is one product of each
member over the rows of a chunk, but for large steps, whose U x + b and gradients of x go where they belong at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemoscope.nn.ops.phi import PHIS, Backward, cut, is_large

__all__ = ["Plan", "Tensors", "below_autograd", "pull_back", "run", "steps_in_cache"]

Tensors = tuple[Any, ...]
"""x, U, b, V, h_0, c; U, b, h_0 and c may be None."""

below_autograd = torch._C._AutoDispatchBelowADInplaceOrView
"""Within it no operation asks autograd, which records nothing there but takes a tenth of a small operation's time."""

_CHUNK = 2**17
"""Numbers in a chunk: half a MiB in float32, which stays in the processor's cache with the gradients of the chunk.

Twice as many for a population, each of whose products has the rows of one member alone.
"""

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
    phi, steps, alone = PHIS[plan.phi], x.shape[-3], v.dim() == 2
    units = phi.units(x, _row(c))
    weight = _transposed(v, units)
    out = x.new_empty(*x.shape[:-1], v.shape[-1])
    every = min(_chunk(out), steps)
    room = out if alone else out.new_empty(every, *_by_step(out).shape[1:])
    drive, add_product, apply = _driver(x, u, b, units), _add_product(v), phi.apply(room[0], _row(c), units)
    previous = h0 if _moves(h0) else None
    for start in range(0, steps, every):
        stop = min(start + every, steps)
        space = cut(room, start, stop) if alone else cut(room, 0, stop - start)
        drive(start, stop, space)
        slices = space.unbind(0)
        places = slices if alone else cut(out, start, stop, -3).unbind(-3)
        for t, z, h in zip(range(start, stop), slices, places, strict=True):
            alive = z
            if plan.sizes is not None:
                z[..., plan.sizes[t] :, :] = 0
                alive = z[..., : plan.sizes[t], :]
                previous = previous if previous is None else previous[..., : plan.sizes[t], :]
            if previous is not None:
                add_product(alive, previous, weight)
            apply(z, h)
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
    steps, weight = x.shape[-3], v.contiguous()
    every = min(plan.checkpoint or _chunk(g), steps)
    dx = x.new_empty(_by_step(x).shape) if wanted[0] else None
    space = g.new_empty(*g.shape[:-3], every, *g.shape[-2:])
    backward, sums, later = PHIS[plan.phi].backward(_by_step(space), _row(c)), _Sums(), None
    between: Any = g.new_empty(backward.targets[0].shape) if every < steps else None
    for start in reversed(range(0, steps, every)):
        stop = min(start + every, steps)
        chunk, now = plan.part(start, stop), cut(x, start, stop, -3)
        if plan.checkpoint is None:
            out, before = cut(kept, start, stop, -3), h0 if start == 0 else kept.select(-3, start - 1)
        else:
            before = h0 if start == 0 else kept.select(-3, start // every - 1)
            out = run(now, u, b, v, before, c, chunk)
        backward.begin(_by_step(out))
        _chain(backward, _by_step(cut(g, start, stop, -3)), weight, chunk, later)
        backward.end(stop - start)
        da = cut(space, 0, stop - start, -3)
        if dx is not None:
            _input_gradient(_by_step(da), u, cut(dx, start, stop))
        if wanted[1]:
            sums.add_products("u", now, da)  # with a narrow x this order of factors is ten times as fast as da^T x
        if wanted[2]:
            sums.add("b", da.flatten(-3, -2).sum(-2))
        if wanted[3] and plan.checkpoint is None and start > 0:
            sums.add_products("v", da, cut(kept, start - 1, stop - 1, -3))
        elif wanted[3]:
            sums.add_products("v", da[..., 1:, :, :], out[..., :-1, :, :])
            if _moves(before):
                sums.add_products("v", da[..., :1, :, :], before.unsqueeze(-3))
        later = backward.targets[0]
        if start:  # the next chunk is written over this one
            later = between.copy_(later)
    dh0 = later @ weight if wanted[4] and later is not None else None
    du = sums["u"].mT.contiguous() if wanted[1] else None
    dc = backward.bias_gradient() if wanted[5] else None
    return None if dx is None else _by_member(dx), du, sums.get("b"), sums.get("v"), dh0, dc


def steps_in_cache(rows: int, width: int, members: tuple[int, ...] = ()) -> int:
    """Return how many steps, of so many rows for each member, make a chunk."""
    fewest, most = _STEPS
    rows = max(1, math.prod((*members, rows)))
    numbers = 2 * _CHUNK if members else _CHUNK
    return max(min(numbers // max(1, rows * width), most), _ROWS // rows, fewest)


def _chunk(out: Tensor) -> int:
    return steps_in_cache(out.shape[-2], out.shape[-1], out.shape[:-3])


def _by_step(tensor: Tensor) -> Tensor:
    """Return (*K, T, B, n) as (T, *K, B, n), where it lies."""
    return tensor if tensor.dim() == 3 else tensor.movedim(-3, 0)


def _by_member(steps: Tensor) -> Tensor:
    """Undo `_by_step`."""
    return steps if steps.dim() == 3 else steps.movedim(0, -3)


def _member_products(x: Tensor, weight: Tensor) -> Tensor:
    """Return (K, T, B, d) times (K, d, n), by one product of each member over all rows."""
    return torch.bmm(x.flatten(-3, -2), weight).view(*x.shape[:-1], weight.shape[-1])


def _moves(state: Tensor | None) -> bool:
    """Say whether a state contributes anything to the next: one at zero does not."""
    return state is not None and bool(state.count_nonzero())


def _input_gradient(da: Tensor, u: Tensor | None, out: Tensor) -> None:
    """Write that of x of some steps, (steps, *K, B, d)."""
    if u is None:
        out.copy_(da)
    elif u.dim() == 2:
        torch.mm(da.flatten(0, 1), u, out=out.flatten(0, 1))
    elif is_large(da[0]):
        for after, before in zip(da.unbind(0), out.unbind(0), strict=True):
            torch.bmm(after, u, out=before)
    else:
        out.copy_(_by_step(_member_products(_by_member(da), u)))


class _Sums(dict[str, Tensor]):
    """Gradients by name, added up chunk by chunk."""

    def add(self, name: str, part: Tensor) -> None:
        """Add the part of one chunk."""
        if name in self:
            self[name] += part
        else:
            self[name] = part

    def add_products(self, name: str, left: Tensor, right: Tensor) -> None:
        """Add the sum over steps and sequences of left^T right."""
        one, other = left.flatten(-3, -2).mT, right.flatten(-3, -2)
        if name in self:
            total = self[name]
            total.addmm_(one, other) if total.dim() == 2 else total.baddbmm_(one, other)
        else:
            self[name] = one @ other


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
    x: Tensor, u: Tensor | None, b: Tensor | None, units: Tensor | None
) -> Callable[[int, int, Tensor], object]:
    """Return the function that writes U x + b of some steps into (steps, *K, B, n)."""
    if u is None:
        one = x.new_ones(()) if units is None else units
        return lambda start, stop, out: torch.mul(_by_step(cut(x, start, stop, -3)), one, out=out)
    weight = _transposed(u, units)
    bias = _row(b if b is None or units is None else b * (units.squeeze(-2) if units.dim() > 1 else units))

    def drive(start: int, stop: int, out: Tensor) -> None:
        rows, driven = cut(x, start, stop).flatten(0, 1), out.flatten(0, 1)
        torch.mm(rows, weight, out=driven) if bias is None else torch.addmm(bias, rows, weight, out=driven)

    def drive_members(start: int, stop: int, out: Tensor) -> None:
        now = cut(x, start, stop, -3)
        if is_large(out[0]):
            for one, driven in zip(now.unbind(-3), out.unbind(0), strict=True):
                torch.bmm(one, weight, out=driven) if bias is None else torch.baddbmm(bias, one, weight, out=driven)
        else:
            made = _by_step(_member_products(now, weight))
            out.copy_(made) if bias is None else torch.add(made, bias, out=out)

    return drive if u.dim() == 2 else drive_members


def _chain(backward: Backward, g: Tensor, v: Tensor, plan: Plan, later: Tensor | None) -> None:
    """Turn the gradients of the outputs of some steps into those before phi; `later` is that of the step after them."""
    add_product = torch.addmm if v.dim() == 2 else torch.baddbmm
    gradients = backward.arriving_gradients(g)
    for t in range(len(g) - 1, -1, -1):
        arriving = backward.arrivals[t]
        if later is not None:
            add_product(gradients[t], later, v, out=arriving)
        elif not backward.small:
            arriving.copy_(gradients[t])
        if plan.sizes is not None:
            arriving[..., plan.sizes[t] :, :] = 0
        backward.turn(t)
        later = backward.targets[t]
