"""The product of layers of Givens rotations, with a backward pass that takes the layers off again.

Autograd would keep a matrix for every layer, 25 GB for 1024 layers of 1024 units; a rotation can be undone, so that two
matrices are enough. The naive twin is `naive_rotations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function

from mnemoscope.nn.ops.scan import forward_mode, tracing

__all__ = ["Layers", "naive_rotations", "rotations"]

Layers = tuple[tuple[int, int], ...]
"""First unit and number of pairs of every layer, the front one first."""


def rotations(angles: Float[Tensor, "*batch angles"], layers: Layers, size: int) -> Float[Tensor, "*batch n n"]:
    """Return F_1 F_2 .. F_m; layer k turns the pairs of rows (i, i+1), (i+2, i+3), .. from its first unit on."""
    if forward_mode() or tracing() or torch.compiler.is_compiling():
        return naive_rotations(angles, layers, size)
    out: Tensor = _Rotations.apply(angles, layers, size)  # type: ignore[no-untyped-call]
    return out


def naive_rotations(angles: Float[Tensor, "*batch angles"], layers: Layers, size: int) -> Float[Tensor, "*batch n n"]:
    """Return the same by operations that autograd follows."""
    matrix = torch.eye(size, dtype=angles.dtype, device=angles.device).expand(*angles.shape[:-1], size, size)
    for (first, pairs), angle in reversed(_by_layer(angles, layers)):
        last = first + 2 * pairs
        cos, sin = angle.cos()[..., None], angle.sin()[..., None]
        x, y = matrix[..., first:last:2, :], matrix[..., first + 1 : last : 2, :]
        turned = torch.stack([cos * x - sin * y, sin * x + cos * y], dim=-2).flatten(-3, -2)
        matrix = torch.cat([matrix[..., :first, :], turned, matrix[..., last:, :]], dim=-2)
    return matrix


def _by_layer(angles: Tensor, layers: Layers) -> list[tuple[tuple[int, int], Tensor]]:
    return list(zip(layers, torch.split(angles, [pairs for _, pairs in layers], dim=-1), strict=True))


def _turn(matrix: Tensor, first: int, pairs: int, cos: Tensor, sin: Tensor) -> None:
    """Turn the pairs of rows of a matrix, in its place."""
    last = first + 2 * pairs
    x, y = matrix[..., first:last:2, :], matrix[..., first + 1 : last : 2, :]
    turned = cos * x - sin * y
    y.copy_(sin * x + cos * y)
    x.copy_(turned)


class _Rotations(Function):
    @staticmethod
    def forward(angles: Tensor, layers: Layers, size: int) -> Tensor:
        matrix = torch.eye(size, dtype=angles.dtype, device=angles.device)
        matrix = matrix.repeat(*angles.shape[:-1], 1, 1)
        for (first, pairs), angle in reversed(_by_layer(angles, layers)):
            _turn(matrix, first, pairs, angle.cos()[..., None], angle.sin()[..., None])
        return matrix

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)
        ctx.layers = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _RotationsBackward.apply(g, *ctx.saved_tensors, ctx.layers), None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], angles: Tensor, layers: Layers, size: int) -> tuple[Tensor, int]:
        return rotations(angles.movedim(in_dims[0], 0), layers, size), 0


class _RotationsBackward(Function):
    """With M_k = F_k .. F_m, from the front: dL/dt sums -g_x M_y + g_y M_x over a pair of rows; then F_k comes off."""

    @staticmethod
    def forward(g: Tensor, angles: Tensor, product: Tensor, layers: Layers) -> Tensor:
        matrix, gradient = product.clone(), g.clone()
        found = []
        for (first, pairs), angle in _by_layer(angles, layers):
            even, odd = slice(first, first + 2 * pairs, 2), slice(first + 1, first + 2 * pairs, 2)
            along = gradient[..., odd, :] * matrix[..., even, :] - gradient[..., even, :] * matrix[..., odd, :]
            found.append(along.sum(-1))
            cos, sin = angle.cos()[..., None], -angle.sin()[..., None]
            _turn(matrix, first, pairs, cos, sin)
            _turn(gradient, first, pairs, cos, sin)
        return torch.cat(found, dim=-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])
        ctx.layers = inputs[3]

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> Any:
        def gradient(g: Tensor, angles: Tensor) -> Tensor:
            def product(own: Tensor) -> Tensor:
                return naive_rotations(own, ctx.layers, g.shape[-1])

            part: Tensor = torch.func.vjp(product, angles)[1](g)[0]
            return part

        return (*torch.func.vjp(gradient, *ctx.saved_tensors)[1](outer), None, None)

    @staticmethod
    def vmap(info: Any, in_dims: Sequence[Any], *given: Any) -> tuple[Tensor, int]:
        *tensors, layers = given
        moved = [t if d is None else t.movedim(d, 0) for t, d in zip(tensors, in_dims[:3], strict=True)]
        if in_dims[0] is None:
            moved[0] = moved[0].expand(info.batch_size, *moved[0].shape)
        if in_dims[2] is None:  # more gradients of one matrix
            moved[1:] = [t.expand(info.batch_size, *t.shape) for t in moved[1:]]
        out: Tensor = _RotationsBackward.apply(*moved, layers)  # type: ignore[no-untyped-call]
        return out, 0
