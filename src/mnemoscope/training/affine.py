"""An affine readout with the classes in front: W h^T + b, (C, R), of R rows h, or of K networks at once.

The softmax over few classes is twenty times as fast when they are not the last axis. The gradient of h goes into a
buffer that is kept from step to step, since a fresh one of this size costs as much as filling it.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function

__all__ = ["Buffers", "class_major"]


class Buffers:
    """Tensors that are used again at every step of the same shape."""

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}

    def get(self, name: str, like: Tensor) -> Tensor:
        """Return the buffer `name` in the shape, type and place of a contiguous `like`."""
        found = self._kept.get(name)
        if found is None or found.shape != like.shape or found.dtype != like.dtype or found.device != like.device:
            found = self._kept[name] = torch.empty_like(like, memory_format=torch.contiguous_format)
        return found


def class_major(
    h: Float[Tensor, "*members rows n"],
    weight: Float[Tensor, "*members classes n"],
    bias: Float[Tensor, "*members classes"] | None,
    buffers: Buffers,
) -> Float[Tensor, "*members classes rows"]:
    """Return W h^T + b. The gradient of h is written into a buffer: it must be used up before the next step."""
    made: Tensor = _ClassMajor.apply(h, weight, bias, buffers)  # type: ignore[no-untyped-call]
    return made


class _ClassMajor(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor | None, buffers: Buffers) -> Tensor:
        ctx.save_for_backward(h, weight)
        ctx.buffers, ctx.biased = buffers, bias is not None
        if bias is None:
            return weight @ h.mT
        product = torch.addmm if h.dim() == 2 else torch.baddbmm
        return product(bias.unsqueeze(-1), weight, h.mT)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        h, weight = ctx.saved_tensors
        dh = torch.matmul(g.mT, weight, out=ctx.buffers.get("dh", h)) if ctx.needs_input_grad[0] else None
        return dh, g @ h, g.sum(-1) if ctx.biased else None, None
