"""An affine readout with the classes in front: W h^T + b, of one network or of K at once.

The softmax over few classes is twenty times as fast when they are not the last axis. The gradient of h goes into a
buffer that is kept from step to step, since a fresh one of this size costs as much as filling it.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from mnemoscope.nn.kernel import below_autograd

__all__ = ["Buffers", "class_major", "class_major_members"]


class Buffers:
    """Tensors that are used again at every step of the same shape."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Tensor, int]] = {}

    def get(self, name: str, like: Tensor, zeros: int) -> Tensor:
        """Return the buffer `name` in shape, type and place of `like`; its first `zeros` entries are 0.

        Whoever asks for it writes all the others, and leaves these as they are.
        """
        found, known = self._kept.get(name, (None, 0))
        if found is None or found.shape != like.shape or found.dtype != like.dtype or found.device != like.device:
            found, known = torch.empty_like(like, memory_format=torch.contiguous_format), 0
        if zeros > known:
            found[known:zeros] = 0
        self._kept[name] = found, zeros
        return found


def class_major(
    h: Float[Tensor, "time batch n"],
    weight: Float[Tensor, "classes n"],
    bias: Float[Tensor, " classes"] | None,
    buffers: Buffers,
    first: int = 0,
) -> Float[Tensor, "classes rows"]:
    """Return W h^T + b of the steps from `first` on, one row after the other.

    The gradient of h is written into a buffer: it must be used up before the next step.
    """
    made: Tensor = _ClassMajor.apply(h, weight, bias, buffers, first)  # type: ignore[no-untyped-call]
    return made


def class_major_members(
    h: Float[Tensor, "members time batch n"],
    weight: Float[Tensor, "members classes n"],
    bias: Float[Tensor, "members classes"] | None,
    buffers: Buffers,
    first: int = 0,
) -> Float[Tensor, "steps members classes batch"]:
    """Return the same of many networks; step by step, since the recurrence keeps the members after the time."""
    made: Tensor = _ClassMajorMembers.apply(h.movedim(0, 1), weight, bias, buffers, first)  # type: ignore[no-untyped-call]
    return made


class _ClassMajor(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor | None, buffers: Buffers, first: int) -> Tensor:
        ctx.save_for_backward(h, weight)
        ctx.buffers, ctx.biased, ctx.first = buffers, bias is not None, first
        rows = h[first:].flatten(0, 1).mT
        return weight @ rows if bias is None else torch.addmm(bias.unsqueeze(-1), weight, rows)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        h, weight = ctx.saved_tensors
        dh = ctx.buffers.get("dh", h, ctx.first) if ctx.needs_input_grad[0] else None
        if dh is not None:
            torch.mm(g.mT, weight, out=dh[ctx.first :].flatten(0, 1))
        return dh, g @ h[ctx.first :].flatten(0, 1), g.sum(-1) if ctx.biased else None, None, None


class _ClassMajorMembers(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor | None, buffers: Buffers, first: int) -> Tensor:
        ctx.save_for_backward(h, weight)
        ctx.buffers, ctx.biased, ctx.first = buffers, bias is not None, first
        steps, members, batch, _ = h[first:].shape
        out = h.new_empty(steps, members, weight.shape[1], batch)
        with below_autograd():
            column = None if bias is None else bias.unsqueeze(-1)
            for rows, target in zip(h[first:].mT.unbind(0), out.unbind(0), strict=True):
                if column is None:
                    torch.bmm(weight, rows, out=target)
                else:
                    torch.baddbmm(column, weight, rows, out=target)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Any:
        h, weight = ctx.saved_tensors
        dh = ctx.buffers.get("dh", h, ctx.first) if ctx.needs_input_grad[0] else None
        dw = torch.zeros_like(weight, memory_format=torch.contiguous_format)
        with below_autograd():
            parts = g.contiguous().unbind(0)
            for part, rows in zip(parts, h[ctx.first :].unbind(0), strict=True):
                dw.baddbmm_(part, rows)
            if dh is not None:
                for part, target in zip(parts, dh[ctx.first :].unbind(0), strict=True):
                    torch.bmm(part.mT, weight, out=target)
        # A sum over both axes at once takes five times as long.
        return dh, dw, g.sum(0).sum(-1) if ctx.biased else None, None, None
