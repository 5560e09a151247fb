"""The loops of the fused recurrence, forward and backward, in place on one buffer. No autograd in here.

Tensors: x (T, *K, B, d), U (*K, n, d), b and c (*K, n), V (*K, n, n), h_0 (*K, B, n), where *K is nothing for one
network and one axis for a population.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemoscope.nn.phi import PHIS

__all__ = ["Plan", "Tensors", "pull_back", "run"]

Tensors = tuple[Any, ...]
"""x, U, b, V, h_0, c; U, b and c may be None."""

_CHUNK = 2**17
"""Numbers in a chunk of the backward pass: half a MiB in float32, which stays in the processor's cache."""

_ROWS = 1024
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

    def part(self, steps: slice) -> Plan:
        """Return the plan of some of the steps."""
        return self if self.sizes is None else self._replace(sizes=self.sizes[steps])


def run(x: Tensor, u: Tensor | None, b: Tensor | None, v: Tensor, h0: Tensor, c: Tensor | None, plan: Plan) -> Tensor:
    """Return h_1 .. h_T; steps after the end of a sequence are zero."""
    out = _drive(x, u, b)
    weight = v.mT.contiguous()  # the product with h runs half again as fast on a contiguous matrix
    add_product, bend, previous = _add_product(v), PHIS[plan.phi].bend(_row(c)), h0
    slices = out.unbind(0) if plan.sizes is None else _alive(out, plan.sizes)
    for h in slices:
        add_product(h, previous if plan.sizes is None else previous[..., : h.shape[-2], :], weight)
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
    every = plan.checkpoint or max(_CHUNK // max(1, g[0].numel()), _ROWS // max(1, g.shape[-2]), 1)
    dx = torch.empty_like(x) if wanted[0] else None
    phi, sums, later = PHIS[plan.phi], _Sums(), None
    for start in reversed(range(0, steps, every)):
        part = slice(start, min(start + every, steps))
        chunk = plan.part(part)
        if plan.checkpoint is None:
            out, before = kept[part], h0 if start == 0 else kept[start - 1]
        else:
            before = h0 if start == 0 else kept[start // every - 1]
            out = run(x[part], u, b, v, before, c, chunk)
        slopes = phi.slopes(out, _row(c))
        da = _chain(g[part], weight, slopes, chunk, later)
        later = da[0]
        if dx is not None:
            torch.matmul(da, u, out=dx[part]) if u is not None else dx[part].copy_(da)
        if wanted[1]:
            sums.add("u", _input_gradient(da, x[part]))
        if wanted[2]:
            sums.add("b", da.flatten(0, 1).sum(0) if da.dim() == 3 else da.sum(0).sum(1))
        if wanted[3]:
            sums.add("v", _recurrent_gradient(da, before, out))
        if wanted[5]:
            sums.add("c", phi.bias_gradient(da, *slopes))
    dh0 = later @ weight if wanted[4] and later is not None else None
    return dx, sums.get("u"), sums.get("b"), sums.get("v"), dh0, sums.get("c")


class _Sums(dict[str, Tensor]):
    """Gradients by name, added up chunk by chunk."""

    def add(self, name: str, part: Tensor) -> None:
        """Add the part of one chunk."""
        self[name] = self[name] + part if name in self else part


def _row(vector: Tensor | None) -> Tensor | None:
    """Return a bias so that it adds to (*K, B, n)."""
    return vector.unsqueeze(-2) if vector is not None and vector.dim() == 2 else vector


def _add_product(v: Tensor) -> Any:
    """Return the operation ``h += previous @ weight``, in place."""
    return Tensor.addmm_ if v.dim() == 2 else Tensor.baddbmm_


def _drive(x: Tensor, u: Tensor | None, b: Tensor | None) -> Tensor:
    """Return U x + b in a new buffer: one product, or for a population one batch of products a step."""
    if u is None:
        return x.clone(memory_format=torch.contiguous_format)
    if x.dim() == 3:
        flat = x.reshape(-1, x.shape[-1])
        a = flat @ u.T if b is None else torch.addmm(b, flat, u.T)
        return a.view(*x.shape[:-1], u.shape[0])
    out, weight = x.new_empty(*x.shape[:-1], u.shape[1]), u.mT.contiguous()
    for driven, now in zip(out.unbind(0), x.unbind(0), strict=True):
        if b is None:
            torch.bmm(now, weight, out=driven)
        else:
            torch.baddbmm(_row(b), now, weight, out=driven)  # type: ignore[arg-type]
    return out


def _alive(out: Tensor, sizes: tuple[int, ...]) -> list[Tensor]:
    """Return what is alive at each step, and set the rest to zero."""
    slices = []
    for h, size in zip(out.unbind(0), sizes, strict=True):
        h[..., size:, :] = 0
        slices.append(h[..., :size, :])
    return slices


def _chain(g: Tensor, v: Tensor, slopes: tuple[Tensor, ...], plan: Plan, later: Tensor | None) -> Tensor:
    """Return the gradients before phi of some steps; `later` is that of the step after them."""
    da = g.clone(memory_format=torch.contiguous_format)
    add_product, pull = _add_product(v), PHIS[plan.phi].pull
    by_step = list(zip(*(slope.unbind(0) for slope in slopes), strict=True)) or [()] * len(da)
    targets, identity = da.unbind(0), not slopes
    for t in range(len(targets) - 1, -1, -1):
        target = targets[t]
        if later is not None:
            add_product(target, later, v)
        if plan.sizes is not None:
            target[..., plan.sizes[t] :, :] = 0
        if not identity:
            pull(target, *by_step[t])
        later = target
    return da


def _input_gradient(da: Tensor, x: Tensor) -> Tensor:
    """Return that of U; with a narrow x this order of factors is ten times as fast as da^T x."""
    if da.dim() == 3:
        return (x.flatten(0, 1).T @ da.flatten(0, 1)).T.contiguous()
    return _add_products(x, da).mT.contiguous()


def _recurrent_gradient(da: Tensor, before: Tensor, out: Tensor) -> Tensor:
    """Return that of V."""
    if da.dim() == 3:
        first = da[0].T @ before
        return first.addmm_(da[1:].flatten(0, 1).T, out[:-1].flatten(0, 1)) if len(da) > 1 else first
    return _add_products(da[1:], out[:-1], torch.bmm(da[0].mT, before))


def _add_products(left: Tensor, right: Tensor, total: Tensor | None = None) -> Tensor:
    """Return the sum over steps of left^T right: one batch of products a step, which needs no copy of a population."""
    if total is None:
        total = left.new_zeros(left.shape[1], left.shape[-1], right.shape[-1])
    for one, other in zip(left.unbind(0), right.unbind(0), strict=True):
        total.baddbmm_(one.mT, other)
    return total
