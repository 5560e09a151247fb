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

    `g` is that of the output; `kept` is the output, or its states before each chunk but the first.
    """
    x, u, b, v, h0, c = tensors
    every = plan.checkpoint or x.shape[0]
    starts = range(0, x.shape[0], every)
    weight = v.contiguous()
    dx = torch.empty_like(x) if wanted[0] else None
    sums: list[Any] = [None] * 4
    later = None
    for i in reversed(range(len(starts))):
        steps = slice(starts[i], starts[i] + every)
        before = h0 if i == 0 else kept[i - 1]
        part = plan.part(steps)
        out = kept if plan.checkpoint is None else run(x[steps], u, b, v, before, c, part)
        da = _chain(g[steps], out, weight, c, part, later)
        later = da[0]
        if dx is not None:
            torch.matmul(da, u, out=dx[steps]) if u is not None else dx[steps].copy_(da)
        new = _weight_gradients(da, x[steps], before, out, c, plan.phi, (wanted[1], wanted[2], wanted[3], wanted[5]))
        sums = [old if part is None else part if old is None else old + part for old, part in zip(sums, new, strict=True)]
    du, db, dv, dc = sums
    return dx, du, db, dv, (later @ weight if wanted[4] else None), dc  # type: ignore[operator]


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


def _chain(g: Tensor, out: Tensor, v: Tensor, c: Tensor | None, plan: Plan, later: Tensor | None) -> Tensor:
    """Return the gradients before phi; `later` is that of the step after the last."""
    da, product = torch.empty_like(out), torch.addmm if v.dim() == 2 else torch.baddbmm
    pull = _PULL[plan.phi]
    slopes = [slope.unbind(0) for slope in _SLOPES[plan.phi](out, c)]
    sources, targets = g.contiguous().unbind(0), da.unbind(0)
    for t in reversed(range(len(targets))):
        target = targets[t]
        if later is None:
            target.copy_(sources[t])
        else:
            product(sources[t], later, v, out=target)
        if plan.sizes is not None:
            target[..., plan.sizes[t] :, :] = 0
        pull(target, *(slope[t] for slope in slopes))
        later = target
    return da


def _weight_gradients(
    da: Tensor, x: Tensor, before: Tensor, out: Tensor, c: Tensor | None, phi: str, wanted: tuple[bool, ...]
) -> list[Tensor | None]:
    """Return the gradients of U, b, V and c."""
    du = db = dv = dc = None
    if da.dim() == 3:
        rows = da.flatten(0, 1)
        if wanted[0]:
            # Written so, the product with a narrow x is ten times as fast as da^T x.
            du = (x.reshape(-1, x.shape[-1]).T @ rows).T.contiguous()
        if wanted[2]:
            dv = torch.addmm(da[0].T @ before, da[1:].flatten(0, 1).T, out[:-1].flatten(0, 1))
    else:
        rows = _member_first(da)
        if wanted[0]:
            du = torch.bmm(_member_first(x).mT, rows).mT.contiguous()
        if wanted[2]:
            dv = torch.bmm(da[0].mT, before)
            for t in range(1, len(da)):
                dv.baddbmm_(da[t].mT, out[t - 1])
    if wanted[1]:
        db = rows.sum(-2, keepdim=True)
    if wanted[3]:
        dc = _BIAS_GRADIENT[phi](da, out)
    return [du, db, dv, dc]


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

# What the gradient passing phi needs, from the outputs of all steps at once -------------------------


def _slopes_complex_modrelu(out: Tensor, c: Any) -> tuple[Tensor, ...]:
    """Return s, u and (1 - s) u: with y = s z and u = y / |y|, the gradient g becomes s g + (1 - s) (u . g) u."""
    radius = _radius(out)
    tiny = torch.finfo(out.dtype).tiny
    scale = (radius / (radius - c)).where(radius > 0, 0.0).unsqueeze(-2)
    unit = out.unflatten(-1, (2, -1)) / radius.clamp_min(tiny).unsqueeze(-2)
    return scale, unit, unit * (1 - scale)


_SLOPES: dict[str, Callable[[Tensor, Any], tuple[Tensor, ...]]] = {
    "identity": lambda out, c: (),
    "tanh": lambda out, c: (torch.addcmul(torch.ones((), dtype=out.dtype, device=out.device), out, out, value=-1),),
    "relu": lambda out, c: ((out > 0).to(out.dtype),),
    "modrelu": lambda out, c: ((out != 0).to(out.dtype),),
    "complex-modrelu": _slopes_complex_modrelu,
}


def _pull_complex_modrelu(g: Tensor, scale: Tensor, unit: Tensor, rest: Tensor) -> None:
    pair = g.unflatten(-1, (2, -1))
    along = (pair * unit).sum(-2, keepdim=True)
    pair.mul_(scale).addcmul_(along, rest)


_PULL: dict[str, Callable[..., object]] = {
    "identity": lambda g: None,
    "tanh": lambda g, slope: g.mul_(slope),
    "relu": lambda g, slope: g.mul_(slope),
    "modrelu": lambda g, slope: g.mul_(slope),
    "complex-modrelu": _pull_complex_modrelu,
}


def _sum_over_steps(parts: Tensor) -> Tensor:
    return parts.sum(0).sum(-2, keepdim=True)


def _bias_gradient_complex_modrelu(da: Tensor, out: Tensor) -> Tensor:
    unit = out.unflatten(-1, (2, -1)) / _radius(out).clamp_min_(torch.finfo(out.dtype).tiny).unsqueeze(-2)
    return _sum_over_steps((da.unflatten(-1, (2, -1)) * unit).sum(-2))


_BIAS_GRADIENT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "modrelu": lambda da, out: _sum_over_steps(da * out.sign()),
    "complex-modrelu": _bias_gradient_complex_modrelu,
}
