"""The Cayley transform and the exponential of skew matrices, with backward passes written by hand.

Both take a batch of matrices in front, (.., n, n), real or complex, so that `torch.vmap` becomes a batch. The naive
twins are `naive_cayley` and `naive_exponential`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Inexact
from torch import Tensor
from torch.autograd import Function

from mnemoscope.nn.ops.scan import forward_mode, tracing

__all__ = ["cayley", "exponential", "naive_cayley", "naive_exponential", "polar"]


def cayley(skew: Inexact[Tensor, "*batch n n"]) -> Inexact[Tensor, "*batch n n"]:
    """Return (I + A)^-1 (I - A) = 2 (I + A)^-1 - I."""
    if forward_mode() or tracing():  # the function below has no forward-mode derivative, and no place in a trace
        return naive_cayley(skew)
    out: Tensor = _Cayley.apply(skew)  # type: ignore[no-untyped-call]
    return out


def naive_cayley(skew: Inexact[Tensor, "*batch n n"]) -> Inexact[Tensor, "*batch n n"]:
    """Return the same by the definition."""
    identity = _identity_like(skew)
    solution: Tensor = torch.linalg.solve(identity + skew, identity - skew)
    return solution


def exponential(skew: Inexact[Tensor, "*batch n n"]) -> Inexact[Tensor, "*batch n n"]:
    """Return exp(A), orthogonal (unitary) to rounding.

    A Pade approximant of degree 7 of A / 2^s, squared s times, then one Newton-Schulz step back to orthogonality. s
    comes from ||A^4||_1^(1/4), which bounds the spectral norm of A from above; each matrix of a batch has its own.
    """
    # The function below has no forward-mode derivative, looks at values, and cannot be saved in a trace. torch's
    # exponential has fewer digits, over the complex numbers most of all.
    if tracing():
        return naive_exponential(skew.to(torch.complex128 if skew.is_complex() else torch.float64)).to(skew.dtype)
    if forward_mode() or (torch.compiler.is_compiling() and not skew.is_complex()):
        return naive_exponential(skew)
    out: Tensor = _Exponential.apply(skew)[0]  # type: ignore[no-untyped-call]
    return out


def naive_exponential(skew: Inexact[Tensor, "*batch n n"]) -> Inexact[Tensor, "*batch n n"]:
    """Return the same by torch."""
    power: Tensor = torch.linalg.matrix_exp(skew)
    return power


def polar(matrix: Inexact[Tensor, "*batch n n"]) -> Inexact[Tensor, "*batch n n"]:
    """Return the orthogonal matrix nearest to one that is nearly orthogonal.

    One Newton-Schulz step, V (3 I - V* V) / 2: it squares the distance from orthogonality, and costs two products.
    """
    wide = matrix.float() if matrix.dtype.itemsize < 4 else matrix
    return (1.5 * wide - 0.5 * wide @ (wide.mH @ wide)).to(matrix.dtype)


def _identity_like(matrix: Tensor) -> Tensor:
    return torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


class _Cayley(Function):
    @staticmethod
    def forward(skew: Tensor) -> Tensor:
        identity = _identity_like(skew)
        inverse: Tensor = torch.linalg.inv(identity + skew)
        return inverse.mul_(2).sub_(identity)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        # dV = -2 M dA M with M = (I + A)^-1 = (V + I) / 2; plain operations of V, so this differentiates again.
        (v,) = ctx.saved_tensors
        double_inverse = (v + _identity_like(v)).mH
        gradient: Tensor = -0.5 * (double_inverse @ g @ double_inverse)
        return gradient

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int], skew: Tensor) -> tuple[Tensor, int]:
        return cayley(skew.movedim(in_dims[0], 0)), 0


class _Exponential(Function):
    """Returns exp(A), and (I - ..)^-1 of the Pade approximant, which the backward pass uses again."""

    @staticmethod
    def forward(skew: Tensor) -> tuple[Tensor, Tensor]:
        _, scaling, even, odd = _pade(skew)
        inverse = torch.linalg.inv(even - odd)
        power = inverse @ (even + odd)
        for i in range(scaling.most):
            power = scaling.choose(i, power @ power, power)
        return polar(power), inverse

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(inputs[0], output[1])

    @staticmethod
    def backward(ctx: Any, g: Tensor, _: Any) -> Tensor:
        out: Tensor = _ExponentialBackward.apply(g, *ctx.saved_tensors)  # type: ignore[no-untyped-call]
        return out

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int], skew: Tensor) -> tuple[Any, Any]:
        return _Exponential.apply(skew.movedim(in_dims[0], 0)), (0, 0)  # type: ignore[no-untyped-call]


class _ExponentialBackward(Function):
    """The adjoint of the derivative of exp at A is its derivative at A*, here -A, applied to g."""

    @staticmethod
    def forward(g: Tensor, skew: Tensor, inverse: Tensor) -> Tensor:
        return _derivative(skew, inverse, g)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> Any:
        def gradient(g: Tensor, skew: Tensor) -> Tensor:
            part: Tensor = torch.func.vjp(naive_exponential, skew)[1](g)[0]
            return part

        return (*torch.func.vjp(gradient, *ctx.saved_tensors)[1](outer), None)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *tensors: Tensor) -> tuple[Tensor, int]:
        moved = [t if d is None else t.movedim(d, 0) for t, d in zip(tensors, in_dims, strict=True)]
        out: Tensor = _ExponentialBackward.apply(*moved)  # type: ignore[no-untyped-call]
        return out, 0


_COEFFICIENTS = (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)
_LARGEST = {torch.float32: 1.88, torch.float64: 0.95}
"""Norm up to which the approximant is exact to rounding; in float32 half of what the error alone would allow."""


class _Scaling:
    """How often each matrix A of a batch is halved, so that its approximant is exact, and squared after that.

    Attributes
    ----------
    most
        The largest number of halvings.
    factor
        2^-s, of all or of each.
    """

    def __init__(self, skew: Tensor, fourth: Tensor) -> None:
        norms = fourth.abs().sum(-2).amax(-1).flatten().tolist() if fourth.numel() and not fourth.is_meta else []
        limit = _LARGEST[skew.real.dtype if skew.is_complex() else skew.dtype]
        counts = [_halvings(norm**0.25 / limit) for norm in norms]
        self.least, self.most = min(counts, default=0), max(counts, default=0)
        self.factor: Any = 2.0**-self.most
        if self.least < self.most:
            self.counts = torch.tensor(counts, device=skew.device).view(*skew.shape[:-2], 1, 1)
            self.factor = torch.exp2(-self.counts.to(skew.real.dtype))

    def choose(self, i: int, squared: Tensor, before: Tensor) -> Tensor:
        """Return what squaring number i leaves: of a matrix that has had all of its own, the one before."""
        return squared if i < self.least else torch.where(i < self.counts, squared, before)


def _halvings(ratio: float) -> int:
    """Return how often a norm is halved until it is at most 1; one that is infinite or no number: never."""
    return max(0, math.ceil(math.log2(ratio))) if 0 < ratio < math.inf else 0


def _pade(skew: Tensor) -> tuple[tuple[Tensor, ...], _Scaling, Tensor, Tensor]:
    """Return the powers of the scaled matrix (1, 2, 4, 6), its scaling, and the even and odd part."""
    second = skew @ skew
    fourth = second @ second
    scaling = _Scaling(skew, fourth)
    if scaling.most:
        factor = scaling.factor
        skew, second, fourth = skew * factor, second * factor**2, fourth * factor**4
    sixth = fourth @ second
    b = _COEFFICIENTS
    identity = b[0] * _identity_like(skew)
    even = b[6] * sixth + b[4] * fourth + b[2] * second + identity
    odd = skew @ _odd_factor(second, fourth, sixth)
    return (skew, second, fourth, sixth), scaling, even, odd


def _odd_factor(second: Tensor, fourth: Tensor, sixth: Tensor) -> Tensor:
    b = _COEFFICIENTS
    return b[7] * sixth + b[5] * fourth + b[3] * second + b[1] * _identity_like(second)


def _derivative(skew: Tensor, inverse: Tensor, direction: Tensor) -> Tensor:
    """Return the derivative of exp at -A along `direction`: that of the approximant, then of the squarings.

    At -A = A* all that was computed at A is there, conjugate transposed: even parts unchanged, odd ones with their sign
    turned, and the inverse and the powers transposed.
    """
    (first, second, fourth, sixth), scaling, even, odd = _pade(skew)
    b, e = _COEFFICIENTS, direction * scaling.factor
    d2 = -(first @ e + e @ first)
    d4 = second @ d2 + d2 @ second
    d6 = fourth @ d2 + d4 @ second
    d_even = b[6] * d6 + b[4] * d4 + b[2] * d2
    d_odd = e @ _odd_factor(second, fourth, sixth) - first @ (b[7] * d6 + b[5] * d4 + b[3] * d2)
    turned = inverse.mH
    power = turned @ (even - odd)
    change = turned @ (d_even + d_odd - (d_even - d_odd) @ power)
    for i in range(scaling.most):
        change = scaling.choose(i, power @ change + change @ power, change)
        power = scaling.choose(i, power @ power, power)
    result: Tensor = change
    return result
