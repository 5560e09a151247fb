"""The loops of the fused recurrence, forward and backward, in place on one buffer. No autograd in here.

Tensors: x (T, *K, B, d), U (*K, n, d), b and c (*K, 1, n), V (*K, n, n), h_0 (*K, B, n), where *K is nothing for one
network and one axis for a population.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["PHIS", "Plan", "pull_back", "run"]

PHIS = ("identity", "tanh", "relu", "modrelu", "complex-modrelu")

Tensors = tuple[Any, ...]
"""x, U, b, V, h_0, c; U, b and c may be None."""


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
    bend, previous = _BEND[plan.phi], h0
    for t, h in enumerate(out.unbind(0)):
        if plan.sizes is not None and plan.sizes[t] < h.shape[-2]:
            alive = plan.sizes[t]
            h[..., alive:, :] = 0
            h, previous = h[..., :alive, :], previous[..., :alive, :]
        if h.dim() == 2:
            h.addmm_(previous, weight)
        else:
            h.baddbmm_(previous, weight)
        bend(h, c)
        previous = h
    return out


def pull_back(
    g: Tensor, kept: Tensor, tensors: Tensors, plan: Plan, wanted: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    """Return the gradients of x, U, b, V, h_0, c that are wanted.

    `g` is that of the output; `kept` is the output, or its states before each chunk but the first. Steps are taken back
    in chunks, those of the plan's checkpoints or a few whose gradients stay in the processor's cache.
    """
    x, u, b, v, h0, c = tensors
    steps = x.shape[0]
    every = plan.checkpoint or max(1, min(steps, _CHUNK // max(1, g[0].numel())))
    sums = _Sums(tensors, wanted, plan.phi)
    dx = torch.empty_like(x) if wanted[0] else None
    weight, later = v.contiguous(), None
    buffer = g.new_empty((min(every, steps) + 1, *g.shape[1:]))  # one more: the step after the chunk stays readable
    for start in reversed(range(0, steps, every)):
        part = slice(start, min(start + every, steps))
        if plan.checkpoint is None:
            out, before = kept[part], h0 if start == 0 else kept[start - 1]
        else:
            before = h0 if start == 0 else kept[start // every - 1]
            out = run(x[part], u, b, v, before, c, plan.part(part))
        if later is not None:
            buffer[-1].copy_(later)
        da = _chain(g[part], out, weight, c, plan.part(part), buffer, later is not None, sums)
        sums.add(da, x[part], before, out)
        if dx is not None:
            torch.matmul(da, u, out=dx[part]) if u is not None else dx[part].copy_(da)
        later = da[0]
    return dx, sums.u, sums.b, sums.v, (later @ weight if wanted[4] else None), sums.c_row()  # type: ignore[operator]


_CHUNK = 2**18
"""Numbers in a chunk of gradients: 1 MiB in float32."""


class _Sums:
    """The gradients of the weights, added up chunk by chunk."""

    def __init__(self, tensors: Tensors, wanted: tuple[bool, ...], phi: str) -> None:
        _, u, b, v, h0, c = tensors
        self.u = torch.zeros_like(u, memory_format=torch.contiguous_format) if wanted[1] else None
        self.b = torch.zeros_like(b, memory_format=torch.contiguous_format) if wanted[2] else None
        self.v = torch.zeros_like(v, memory_format=torch.contiguous_format) if wanted[3] else None
        self.c = h0.new_zeros(*h0.shape[:-1], c.shape[-1]) if wanted[5] else None

    def add(self, da: Tensor, x: Tensor, before: Tensor, out: Tensor) -> None:
        """Add the part of one chunk."""
        single = da.dim() == 3
        rows = da.flatten(0, 1) if single else _member_first(da)
        if self.u is not None:
            flat = x.reshape(-1, x.shape[-1]) if single else _member_first(x)
            self.u += (flat.mT @ rows).mT  # with a narrow x ten times as fast as rows^T x
        if self.b is not None:
            self.b += rows.sum(-2, keepdim=True)
        if self.v is None:
            return
        if single:
            self.v.addmm_(da[0].T, before)
            if len(da) > 1:
                self.v.addmm_(rows[da.shape[1] :].T, out[:-1].flatten(0, 1))
        else:
            for t in range(len(da)):
                self.v.baddbmm_(da[t].mT, out[t - 1] if t else before)

    def c_row(self) -> Tensor | None:
        """Return the gradient of modReLU's bias, summed over the batch."""
        return None if self.c is None else self.c.sum(-2, keepdim=True)


def _drive(x: Tensor, u: Tensor | None, b: Tensor | None) -> Tensor:
    """Return U x + b in a new buffer."""
    if u is None:
        return x.clone(memory_format=torch.contiguous_format)
    if x.dim() == 3:
        flat = x.reshape(-1, x.shape[-1])
        a = flat @ u.T if b is None else torch.addmm(b, flat, u.T)
        return a.view(*x.shape[:-1], -1)
    flat = _member_first(x)
    a = torch.bmm(flat, u.mT) if b is None else torch.baddbmm(b, flat, u.mT)
    return a.view(x.shape[1], x.shape[0], x.shape[2], -1).transpose(0, 1).contiguous()


def _member_first(x: Tensor) -> Tensor:
    """Return (K, T B, ..) of a population's (T, K, B, ..)."""
    return x.transpose(0, 1).reshape(x.shape[1], -1, x.shape[-1])


def _chain(
    g: Tensor, out: Tensor, v: Tensor, c: Any, plan: Plan, buffer: Tensor, has_later: bool, sums: _Sums
) -> Tensor:
    """Return the gradients before phi of some steps, in `buffer`, after whose end that of the next step may stand."""
    steps = len(out)
    targets, product = buffer.unbind(0), torch.addmm if v.dim() == 2 else torch.baddbmm
    later = targets[-1] if has_later else None
    pull, sources, outputs = _PULL[plan.phi], g.contiguous().unbind(0), out.unbind(0)
    for t in reversed(range(steps)):
        target = targets[t]
        if later is None:
            target.copy_(sources[t])
        else:
            product(sources[t], later, v, out=target)
        if plan.sizes is not None:
            target[..., plan.sizes[t] :, :] = 0
        pull(target, outputs[t], c, sums.c)
        later = target
    return buffer[:steps]


# phi, in place -----------------------------------------------------------------------------------


def _bend_modrelu(h: Tensor, c: Any) -> None:
    sign = h.sign()
    h.abs_().add_(c).relu_().mul_(sign)


def _bend_complex_modrelu(h: Tensor, c: Any) -> None:
    pair = h.unflatten(-1, (2, -1))
    radius = _radius(h)
    scale = (radius + c).relu_().div_(radius.clamp_min_(torch.finfo(h.dtype).tiny))
    pair.mul_(scale.unsqueeze(-2))


def _radius(h: Tensor) -> Tensor:
    real, imaginary = h.chunk(2, dim=-1)
    return torch.addcmul(real * real, imaginary, imaginary).sqrt_()


_BEND: dict[str, Callable[[Tensor, Any], object]] = {
    "identity": lambda h, c: None,
    "tanh": lambda h, c: h.tanh_(),
    "relu": lambda h, c: h.relu_(),
    "modrelu": _bend_modrelu,
    "complex-modrelu": _bend_complex_modrelu,
}

# The gradient passing phi, in place, from the output alone ---------------------------------------------


def _pull_modrelu(g: Tensor, y: Tensor, c: Any, total: Tensor | None) -> None:
    torch.ops.aten.hardshrink_backward.grad_input(g, y, 0.0, grad_input=g)  # zero where y is
    if total is not None:
        total.addcmul_(g, y.sign())


def _pull_complex_modrelu(g: Tensor, y: Tensor, c: Any, total: Tensor | None) -> None:
    """With y = s z and u = y / |y|, the gradient g becomes s g + (1 - s) (u . g) u, and that of the bias is u . g."""
    radius = _radius(y).unsqueeze(-2)
    scale = (radius / (radius - c.unsqueeze(-2))).nan_to_num_(nan=0.0)
    unit = y.unflatten(-1, (2, -1)) / radius.clamp_min_(torch.finfo(y.dtype).tiny)
    pair = g.unflatten(-1, (2, -1))
    along = (pair * unit).sum(-2, keepdim=True)
    pair.mul_(scale).addcmul_(along * (1 - scale), unit)
    if total is not None:
        total += along.squeeze(-2)


_PULL: dict[str, Callable[[Tensor, Tensor, Any, Tensor | None], object]] = {
    "identity": lambda g, y, c, total: None,
    "tanh": lambda g, y, c, total: torch.ops.aten.tanh_backward.grad_input(g, y, grad_input=g),
    "relu": lambda g, y, c, total: torch.ops.aten.threshold_backward.grad_input(g, y, 0, grad_input=g),
    "modrelu": _pull_modrelu,
    "complex-modrelu": _pull_complex_modrelu,
}
