"""Claims on training orthogonal matrices: directions of descent, gradients through Cayley transform and exponential."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from mnemoscope.nn.maps.functions import cayley
from mnemoscope.studies.claims.base import Verdict, claim

__all__: list[str] = []


@claim(
    "kerg-scornn-gradient",
    "Kerg app. D.3, Ziv §1.2.2",
    "for W = Cay(A) D the gradient by A is V^T - V, V = (I + A)^-T G (D + W^T)",
    "proved",
)
def scornn_gradient(seed: int) -> Verdict:
    """Compare the formula with autograd along skew-symmetric directions."""
    generator = torch.Generator().manual_seed(seed)
    worst, cases = 0.0, 6
    for case in range(cases):
        n = 3 + case
        A = _skew(n, generator)
        signs = torch.where(torch.arange(n) < n // 2, -1.0, 1.0).double()
        G = torch.randn(n, n, generator=generator, dtype=torch.float64)
        direction = _skew(n, generator)
        W = cayley(A) * signs
        V = torch.linalg.solve((torch.eye(n, dtype=torch.float64) + A).mT, G @ (torch.diag(signs) + W.mT))
        stated = float(((V.mT - V) * direction).sum())
        # Along a skew direction E the loss <G, W(A + e E)> has this slope; as A_ij and A_ji move together, the gradient
        # of the entries above the diagonal is the whole matrix counted half.
        exact = 2 * _slope(G * signs, cayley, A, direction)
        worst = max(worst, abs(stated - exact) / max(1.0, abs(exact)))
    return Verdict(worst < 1e-9, cases, f"largest relative difference from autograd {worst:.1e}")


@claim(
    "kerg-exprnn-gradient",
    "Kerg app. D.4",
    "the gradient of f(exp(A)) by A is B (d exp)_{-A}(1/2 (G^T B - B^T G)), B = exp(A), G the gradient of f at B",
    "false",
    "it has the opposite sign",
)
def exprnn_gradient(seed: int) -> Verdict:
    """Compare the formula, and its negative, with autograd along skew-symmetric directions."""
    generator = torch.Generator().manual_seed(seed)
    as_printed, negated, cases = 0.0, 0.0, 6
    for case in range(cases):
        n = 3 + case
        A, direction = _skew(n, generator), _skew(n, generator)
        G = torch.randn(n, n, generator=generator, dtype=torch.float64)
        B = torch.linalg.matrix_exp(A)
        inner = (G.mT @ B - B.mT @ G) / 2
        moved = scipy.linalg.expm_frechet(-A.numpy(), inner.numpy(), compute_expm=False)
        stated = float(((B @ torch.from_numpy(moved)) * direction).sum())
        exact = _slope(G, torch.linalg.matrix_exp, A, direction)
        as_printed = max(as_printed, abs(stated - exact) / abs(exact))
        negated = max(negated, abs(-stated - exact) / abs(exact))
    return Verdict(
        as_printed > 1.9 and negated < 1e-9,
        cases,
        f"relative difference from autograd {as_printed:.4f} as printed, {negated:.1e} with the sign turned",
    )


@claim(
    "ziv-cayley-signs",
    "Ziv §1.2.2",
    "scoRNN's W = Cay(A) D, D diagonal with entries 0 and 1, is orthogonal",
    "false",
    "the entries of D are -1 and 1, which reach every orthogonal matrix: with a 0 the product is singular",
)
def cayley_signs(seed: int) -> Verdict:
    """Show that a zero makes the product singular, and that signs reach random orthogonal matrices."""
    generator = torch.Generator().manual_seed(seed)
    eye = torch.eye(4, dtype=torch.float64)
    singular = float(
        torch.linalg.svdvals(cayley(_skew(4, generator)) * torch.tensor([1.0, 0.0, 1.0, 1.0]).double())[-1]
    )
    reached, cases = 0, 10
    for _ in range(cases):
        W = _orthogonal(4, generator)
        choices = torch.cartesian_prod(*[torch.tensor([1.0, -1.0]).double()] * 4)
        margins = [float(torch.linalg.svdvals(eye + W * signs)[-1]) for signs in choices]
        best = choices[int(np.argmax(margins))]
        A = cayley(W * best)
        reached += bool(torch.allclose(A, -A.mT, atol=1e-9) and torch.allclose(cayley(A) * best, W, atol=1e-9))
    return Verdict(
        singular < 1e-12 and reached == cases,
        cases,
        f"D = diag(1, 0, 1, 1) gives smallest singular value {singular:.1e}; signs reach {reached} of {cases} matrices",
    )


def _skew(n: int, generator: torch.Generator) -> Tensor:
    upper = torch.randn(n, n, generator=generator, dtype=torch.float64).triu(1)
    return upper - upper.mT


def _orthogonal(n: int, generator: torch.Generator) -> Tensor:
    q: Tensor = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))[0]
    return q


def _slope(G: Tensor, map: Callable[[Tensor], Tensor], A: Tensor, direction: Tensor) -> float:
    """Return the derivative of <G, map(A + e E)> by e at 0, E the direction."""
    e = torch.zeros((), dtype=torch.float64, requires_grad=True)
    return float(torch.autograd.grad((G * map(A + e * direction)).sum(), e)[0])
