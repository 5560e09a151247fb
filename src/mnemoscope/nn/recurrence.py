"""The fused first-order recurrence h_t = phi(V h_{t-1} + U x_t + b), with a backward pass written by hand.

One buffer (T, B, n) holds what the input contributes; each step adds V h_{t-1} to its slice and applies phi there, in
place (`mnemoscope.nn.kernel`). Nothing else is kept for the backward pass, since phi' is a function of the output. The
gradients of V and U are one product over all steps at the end. The naive twin is `naive_recurrence`.

Inside, every tensor has an axis K for a population of networks of one shape: x (T, K, B, d), U (K, n, d), b and c
(K, 1, n), V (K, n, n), h_0 (K, B, n). A single network is K = 1; `torch.vmap` over weights becomes a part of K, and
over inputs alone a part of B.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from mnemoscope.nn import kernel
from mnemoscope.nn.activation import activate, modrelu
from mnemoscope.nn.kernel import Plan
from mnemoscope.nn.scan import forward_mode

__all__ = ["Plan", "alive_at_steps", "can_fuse", "last_alive", "naive_recurrence", "recurrence"]

_POPULATION = (1, 0, 0, 0, 0, 0)
_BATCH = (2, None, None, None, 1, None)
_WEIGHTS = (1, 2, 3, 5)


def can_fuse(w: dict[str, Any]) -> bool:
    """Say whether the fused recurrence can serve these weights here.

    It needs V as a matrix. It has no forward-mode derivative, and torch.compile would trace into its loops: under
    `torch.func.jvp`, `jacfwd`, `hessian` and `torch.compile` the plain loop runs.
    """
    return "weight_hh" in w and not torch.compiler.is_compiling() and not forward_mode()


def alive_at_steps(lengths: Tensor | None, steps: int) -> tuple[int, ...] | None:
    """Return how many of the sequences, longest first, are alive at each step."""
    if lengths is None:
        return None
    return tuple((lengths.cpu()[None] > torch.arange(steps)[:, None]).sum(1).tolist())


def last_alive(states: Tensor, lengths: Tensor) -> Tensor:
    """Return the state of each sequence at its own end."""
    ends = lengths.to(states.device) - 1
    return states[ends, torch.arange(states.shape[1], device=states.device)]


def recurrence(
    x: Tensor, u: Tensor | None, b: Tensor | None, v: Tensor, h0: Tensor, c: Tensor | None, plan: Plan
) -> Tensor:
    """Return h_1 .. h_T, (T, B, n), of one network; steps after the end of a sequence are zero.

    x is (T, B, d), U (n, d) or None when x is what the input contributes, V (n, n), h_0 (B, n), b and c (n) or None:
    the bias that is added, and that of modReLU.
    """
    rows = (x, u, _row(b), v, h0, _row(c))
    single = [None if t is None else t.unsqueeze(axis) for t, axis in zip(rows, _POPULATION, strict=True)]
    out: Tensor = _Recurrence.apply(*single, plan)  # type: ignore[no-untyped-call]
    return out.squeeze(1)


def naive_recurrence(x: Tensor, u: Any, b: Any, v: Tensor, h0: Tensor, c: Any, plan: Plan) -> Tensor:
    """Return the same by the definition; b and c are rows (1, n), and all may have the axis K."""
    h, outputs = h0, []
    for t in range(x.shape[0]):
        a = x[t] if u is None else x[t] @ u.mT
        z = h @ v.mT + (a if b is None else a + b)
        if plan.phi == "complex-modrelu":
            turned = modrelu(torch.complex(*z.chunk(2, dim=-1)), c)
            h = torch.cat([turned.real, turned.imag], dim=-1)
        else:
            h = activate(plan.phi, z, c)
        if plan.sizes is not None:
            alive = torch.arange(h.shape[-2], device=h.device) < plan.sizes[t]
            h = torch.where(alive.unsqueeze(-1), h, torch.zeros_like(h))
        outputs.append(h)
    return torch.stack(outputs)


def _row(vector: Tensor | None) -> Tensor | None:
    return None if vector is None else vector.unsqueeze(-2)


class _Recurrence(Function):
    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        *tensors, plan = inputs
        single = tensors[3].shape[0] == 1
        x, u, b, v, h0, c = _squeeze(tensors, _POPULATION, single)
        out = kernel.run(x, u, b, v, h0, c, plan)
        return out.unsqueeze(1) if single else out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, plan = inputs
        every = plan.checkpoint
        ctx.save_for_backward(output if every is None else output[every - 1 : -1 : every].clone(), *tensors)
        ctx.plan = plan

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        wanted = tuple(ctx.needs_input_grad[:6])
        parts = _Backward.apply(g, *ctx.saved_tensors, ctx.plan, wanted)  # type: ignore[no-untyped-call]
        return (*_spread(parts, wanted), None)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Tensor, int]:
        *tensors, plan = inputs
        fold = all(in_dims[i] is None for i in _WEIGHTS)
        axes = _BATCH if fold else _POPULATION
        merged = [_merge(t, d, info.batch_size, a, fold) for t, d, a in zip(tensors, in_dims, axes, strict=False)]
        plan = _folded(plan, info.batch_size) if fold else plan
        out: Tensor = _Recurrence.apply(*merged, plan)  # type: ignore[no-untyped-call]
        return _unmerge(out, info.batch_size, 2 if fold else 1, fold)


class _Backward(Function):
    """The gradients that are wanted, in order: a function of its own, so that it can be mapped and differentiated."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, ...]:
        g, kept, *tensors, plan, wanted = inputs
        single = tensors[3].shape[0] == 1
        g, kept = _squeeze((g, kept), (1, 1), single)
        parts = kernel.pull_back(g, kept, tuple(_squeeze(tensors, _POPULATION, single)), plan, wanted)
        found = [(part, axis) for part, axis in zip(parts, _POPULATION, strict=True) if part is not None]
        return tuple(part.unsqueeze(axis) if single else part for part, axis in found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        g, _, *tensors, plan, wanted = inputs
        ctx.save_for_backward(g, *tensors)
        ctx.plan, ctx.wanted = plan, wanted

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Any:
        g, *tensors = ctx.saved_tensors
        given = tuple(tensor is not None for tensor in tensors)

        def gradients(g: Tensor, *some: Tensor) -> tuple[Tensor, ...]:
            def states(*some: Tensor) -> Tensor:
                x, u, b, v, h0, c = _spread(some, given)
                return naive_recurrence(x, u, b, v, h0, c, ctx.plan)

            parts = _spread(torch.func.vjp(states, *some)[1](g), given)
            return tuple(part for part, want in zip(parts, ctx.wanted, strict=True) if want)

        pull: Any = torch.func.vjp(gradients, g, *(tensor for tensor in tensors if tensor is not None))[1]
        g_part, *parts = pull(outer)
        return (g_part, None, *_spread(tuple(parts), given), None, None)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Any, Any]:
        *tensors, plan, wanted = inputs
        size = info.batch_size
        # The gradient of a weight belongs to one mapped element, and a folded batch would add all of them up.
        fold = all(in_dims[2 + i] is None and not wanted[i] for i in _WEIGHTS)
        axes = (2, 2, *_BATCH) if fold else (1, 1, *_POPULATION)
        merged = [_merge(t, d, size, a, fold) for t, d, a in zip(tensors, in_dims, axes, strict=False)]
        plan = _folded(plan, size) if fold else plan
        parts = _Backward.apply(*merged, plan, wanted)  # type: ignore[no-untyped-call]
        places = [axis for axis, want in zip(axes[2:], wanted, strict=True) if want and axis is not None]
        split = [_unmerge(part, size, axis, fold) for part, axis in zip(parts, places, strict=True)]
        return tuple(part for part, _ in split), tuple(axis for _, axis in split)


def _squeeze(tensors: Any, axes: tuple[int, ...], single: bool) -> list[Any]:
    if not single:
        return list(tensors)
    return [None if t is None else t.squeeze(axis) for t, axis in zip(tensors, axes, strict=True)]


def _spread(parts: tuple[Any, ...], wanted: tuple[bool, ...]) -> list[Any]:
    source = iter(parts)
    return [next(source) if want else None for want in wanted]


def _merge(tensor: Any, dim: int | None, size: int, axis: int | None, fold: bool) -> Any:
    """Make the mapped axis a part of the population (before it) or of the batch (after it: the alive stay in front)."""
    if tensor is None or axis is None:
        return tensor
    place = axis + 1 if fold else axis
    if dim is None:
        shape = list(tensor.shape)
        shape.insert(place, size)
        tensor = tensor.unsqueeze(place).expand(shape)
    else:
        tensor = tensor.movedim(dim, place)
    return tensor.flatten(axis, axis + 1)


def _unmerge(tensor: Tensor, size: int, axis: int, fold: bool) -> tuple[Tensor, int]:
    parts = (tensor.shape[axis] // size, size) if fold else (size, tensor.shape[axis] // size)
    return tensor.reshape(*tensor.shape[:axis], *parts, *tensor.shape[axis + 1 :]), axis + 1 if fold else axis


def _folded(plan: Plan, size: int) -> Plan:
    return plan if plan.sizes is None else plan._replace(sizes=tuple(size * alive for alive in plan.sizes))
