"""The fused first-order recurrence h_t = phi(V h_{t-1} + U x_t + b), with a backward pass written by hand.

One buffer (T, B, n) holds what the input contributes; each step adds V h_{t-1} to its slice and applies phi there, in
place (`nn/ops/kernel.py`). Nothing else is kept for the backward pass, since phi' is a function of the output. The
gradients of V and U are one product over all steps at the end. The naive twin is `naive_recurrence`.

For a population of K networks of one shape, the axis K stands in front of all: x (K, T, B, d), U (K, n, d), b and c
(K, n), V (K, n, n), h_0 (K, B, n). `torch.vmap` over weights becomes a part of K, and over inputs alone a part of B.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from mnemoscope.nn.activation import activate, modrelu
from mnemoscope.nn.ops import kernel, planes
from mnemoscope.nn.ops.kernel import Plan, below_autograd
from mnemoscope.nn.ops.scan import forward_mode

__all__ = ["Plan", "alive_at_steps", "can_fuse", "last_alive", "naive_recurrence", "recurrence"]

_WEIGHTS = (1, 2, 3, 5)
"""Where U, b, V and c stand among x, U, b, V, h_0, c."""

_BATCHED = torch._C._dispatch_key_parse("Batched")
"""The mark of a tensor in the vmap of `torch.autograd`, which is not that of `torch.func`."""


def can_fuse(w: dict[str, Any]) -> bool:
    """Say whether the fused recurrence can serve these weights here.

    It needs V as a matrix, of a type with more range than float16. It has no forward-mode derivative, and compiling or
    tracing would look into its loops: under `torch.func.jvp`, `jacfwd`, `hessian`, `torch.compile` and
    `torch.jit.trace` the plain loop runs.
    """
    if "weight_hh" not in w or w["weight_hh"].dtype == torch.float16:
        return False
    return not torch.compiler.is_compiling() and torch._C._get_tracing_state() is None and not forward_mode()


def alive_at_steps(lengths: Tensor | None, steps: int) -> tuple[int, ...] | None:
    """Return how many of the sequences, longest first, are alive at each step."""
    if lengths is None:
        return None
    return tuple((lengths.cpu()[None] > torch.arange(steps, device="cpu")[:, None]).sum(1).tolist())


def last_alive(states: Tensor, lengths: Tensor) -> Tensor:
    """Return the state of each sequence at its own end."""
    ends = lengths.to(states.device) - 1
    return states[ends, torch.arange(states.shape[1], device=states.device)]


def recurrence(
    x: Tensor, u: Tensor | None, b: Tensor | None, v: Tensor, h0: Tensor | None, c: Tensor | None, plan: Plan
) -> Tensor:
    """Return h_1 .. h_T, (T, B, n), of one network; steps after the end of a sequence are zero.

    x is (T, B, d), U (n, d) or None when x is what the input contributes, V (n, n), h_0 (B, n) or None for
    zeros, b and c (n) or None: the bias that is added, and that of modReLU. V may be complex, (n/2, n/2): states are
    then n/2 real parts and n/2 imaginary parts.
    """
    out: Tensor = _Recurrence.apply(x, u, b, v, h0, c, plan)
    return out


def naive_recurrence(x: Tensor, u: Any, b: Any, v: Tensor, h0: Any, c: Any, plan: Plan) -> Tensor:
    """Return the same by the definition."""
    v = _real_form(v)
    *members, steps, batch, _ = x.shape
    h, outputs = x.new_zeros(*members, batch, v.shape[-1]) if h0 is None else h0, []
    b, c = (None if row is None else row.unsqueeze(-2) for row in (b, c))
    for t in range(steps):
        now = x.select(-3, t)
        a = now if u is None else now @ u.mT
        z = h @ v.mT + (a if b is None else a + b)
        alive = None if plan.sizes is None else torch.arange(h.shape[-2], device=h.device)[:, None] < plan.sizes[t]
        z = z if alive is None else torch.where(alive, z, 1.0)  # phi may have no second derivative at zero
        if plan.phi == "complex-modrelu":
            turned = modrelu(torch.complex(*z.chunk(2, dim=-1)), c)
            h = torch.cat([turned.real, turned.imag], dim=-1)
        else:
            h = activate(plan.phi, z, c)
        h = h if alive is None else torch.where(alive, h, 0.0)
        outputs.append(h)
    return torch.stack(outputs, -3)


class _Quick(Function):
    """A Function whose `apply` leaves out what torch does for transforms of `torch.func` where there is none.

    Matching the arguments with forward's signature alone takes as long as a step of a small network.
    """

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        """Call the function."""
        if torch._C._are_functorch_transforms_active():
            return super().apply(*arguments)  # type: ignore[no-untyped-call]
        return super(Function, cls).apply(*arguments)  # type: ignore[misc]


class _Recurrence(_Quick):
    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        x, u, b, v, h0, c, plan = inputs
        with below_autograd():
            if planes.fits(inputs[:6], plan):
                return planes.run(x, u, v, h0, c)
            return kernel.run(x, u, b, _real_form(v), h0, c, plan)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, plan = inputs
        every = plan.checkpoint
        ctx.save_for_backward(output if every is None else output[..., every - 1 : -1 : every, :, :].clone(), *tensors)
        ctx.plan = plan

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (kept, *tensors), wanted = ctx.saved_tensors, ctx.needs_input_grad[:6]
        if torch.is_grad_enabled() or torch._C._are_functorch_transforms_active():
            return (*_spread(_Backward.apply(g, kept, *tensors, ctx.plan, wanted), wanted), None)
        pull_back = _naive_pull_back if _in_batched_gradient(g) else _pull_back
        return (*pull_back(g, kept, tensors, ctx.plan, wanted), None)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Tensor, int]:
        *tensors, plan = inputs
        fold = all(in_dims[i] is None for i in _WEIGHTS)
        mapped = _Mapped(info.batch_size, fold, single=_is_single(tensors[3], in_dims[3]))
        merged = [mapped.merge(t, d, a) for t, d, a in zip(tensors, in_dims, mapped.axes, strict=False)]
        return mapped.split(_Recurrence.apply(*merged, mapped.plan(plan)), mapped.axes[0])


class _Backward(_Quick):
    """The gradients that are wanted, in order: a function of its own, so that it can be mapped and differentiated."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, ...]:
        g, kept, *tensors, plan, wanted = inputs
        return tuple(part for part in _pull_back(g, kept, tensors, plan, wanted) if part is not None)

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

        pull_vjp: Any = torch.func.vjp(gradients, g, *(tensor for tensor in tensors if tensor is not None))[1]
        g_part, *parts = pull_vjp(outer)
        return (g_part, None, *_spread(tuple(parts), given), None, None)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Any, Any]:
        *tensors, plan, wanted = inputs
        # The gradient of a weight belongs to one mapped element, and a folded batch would add all of them up.
        fold = all(in_dims[2 + i] is None and not wanted[i] for i in _WEIGHTS)
        mapped = _Mapped(info.batch_size, fold, single=_is_single(tensors[5], in_dims[5]))
        axes = (mapped.axes[0], mapped.axes[0], *mapped.axes)
        merged = [mapped.merge(t, d, a) for t, d, a in zip(tensors, in_dims, axes, strict=False)]
        parts = _Backward.apply(*merged, mapped.plan(plan), wanted)
        places = [axis for axis, want in zip(mapped.axes, wanted, strict=True) if want]
        split = [mapped.split(part, axis) for part, axis in zip(parts, places, strict=True)]
        return tuple(part for part, _ in split), tuple(axis for _, axis in split)


def _is_single(v: Tensor, dim: int | None) -> bool:
    return v.dim() - (dim is not None) == 2


class _Mapped:
    """Where a mapped axis goes: into the population, or folded into the batch when no weight is mapped."""

    def __init__(self, size: int, fold: bool, single: bool) -> None:
        self.size, self.fold, self.single = size, fold, single
        batch = 1 if single else 2
        self.axes: tuple[Any, ...] = (batch, None, None, None, batch - 1, None) if fold else (0,) * 6

    def merge(self, tensor: Any, dim: int | None, axis: int | None) -> Any:
        """Put the mapped axis before the population's (or as it) or after the batch: the alive stay in front."""
        if tensor is None or axis is None:
            return tensor
        place = axis + 1 if self.fold else axis
        if dim is None:
            shape = list(tensor.shape)
            shape.insert(place, self.size)
            tensor = tensor.unsqueeze(place).expand(shape)
        else:
            tensor = tensor.movedim(dim, place)
        return tensor if self.single and not self.fold else tensor.flatten(axis, axis + 1)

    def split(self, tensor: Tensor, axis: int) -> tuple[Tensor, int]:
        """Undo `merge` of an output, and say where the mapped axis is."""
        if self.single and not self.fold:
            return tensor, axis
        others = tensor.shape[axis] // self.size
        parts = (others, self.size) if self.fold else (self.size, others)
        return tensor.reshape(*tensor.shape[:axis], *parts, *tensor.shape[axis + 1 :]), axis + self.fold

    def plan(self, plan: Plan) -> Plan:
        """Return the plan with the numbers of the alive multiplied by the folded axis."""
        if not self.fold or plan.sizes is None:
            return plan
        return plan._replace(sizes=tuple(self.size * alive for alive in plan.sizes))


def _pull_back(g: Tensor, kept: Tensor, tensors: Any, plan: Plan, wanted: tuple[bool, ...]) -> tuple[Any, ...]:
    with below_autograd():
        if planes.fits(tensors, plan):
            return planes.pull_back(g, kept, tensors, wanted)
        x, u, b, v, h0, c = tensors
        dx, du, db, dv, dh0, dc = kernel.pull_back(g, kept, (x, u, b, _real_form(v), h0, c), plan, wanted)
        return dx, du, db, _complex_form(dv) if v.is_complex() and wanted[3] else dv, dh0, dc


def _in_batched_gradient(g: Tensor) -> bool:
    """Say whether g stands for many: in `torch.autograd.grad(is_grads_batched=True)`."""
    return bool(torch._C._dispatch_keys(g).has(_BATCHED))


def _naive_pull_back(g: Tensor, kept: Tensor, tensors: Any, plan: Plan, wanted: tuple[bool, ...]) -> list[Any]:
    """Return the gradients that are wanted, by autograd through the naive twin."""
    with torch.enable_grad():
        leaves: Any = [t if t is None else t.detach().requires_grad_(w) for t, w in zip(tensors, wanted, strict=True)]
        x, u, b, v, h0, c = leaves
        out = naive_recurrence(x, u, b, v, h0, c, plan)
    asked = [leaf for leaf, want in zip(leaves, wanted, strict=True) if want]
    return _spread(torch.autograd.grad(out, asked, g), wanted)


def _real_form(v: Tensor) -> Tensor:
    """Return V as it acts on [Re h, Im h]: [[Re V, -Im V], [Im V, Re V]]."""
    if not v.is_complex():
        return v
    return torch.cat([torch.cat([v.real, -v.imag], -1), torch.cat([v.imag, v.real], -1)], -2)


def _complex_form(gradient: Any) -> Tensor:
    """Return the gradient of V from that of its real form."""
    (a, b), (c, d) = (half.chunk(2, dim=-1) for half in gradient.chunk(2, dim=-2))
    return torch.complex(a + d, c - b)


def _spread(parts: tuple[Any, ...], wanted: tuple[bool, ...]) -> list[Any]:
    source = iter(parts)
    return [next(source) if want else None for want in wanted]
