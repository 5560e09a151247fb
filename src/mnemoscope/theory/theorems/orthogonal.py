"""Orthogonal and unitary matrices in training: gradients through their maps, descent directions, reach."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope import nn
from mnemoscope.core.numbers import number
from mnemoscope.nn.maps.exponential import Exponential
from mnemoscope.nn.maps.fourier import Fourier
from mnemoscope.nn.maps.functions import cayley
from mnemoscope.nn.maps.givens import Givens
from mnemoscope.nn.maps.householder import Householder
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.view import NetworkView

_Square = Float[np.ndarray, "n n"]


def _skew(n: int, generator: torch.Generator) -> Tensor:
    upper = torch.randn(n, n, generator=generator, dtype=torch.float64).triu(1)
    return upper - upper.mT


def _slope(G: Tensor, map: Callable[[Tensor], Tensor], A: Tensor, direction: Tensor) -> float:
    """Return the derivative of <G, map(A + e E)> by e at 0, E the direction."""
    e = torch.zeros((), dtype=torch.float64, requires_grad=True)
    return float(torch.autograd.grad((G * map(A + e * direction)).sum(), e)[0])


@theorem("kerg-scornn-gradient", "helfrich2018", "restated in Kerg 2022, app. D.3, and Ziv 2020, §1.2.2")
def scornn_gradient(seed: int) -> Verdict:
    """For W = Cay(A) D the gradient by A is V^T - V, V = (I + A)^-T G (D + W^T).

    Check: six sizes: the formula against autograd along skew-symmetric directions.
    """
    generator = torch.Generator().manual_seed(seed)
    worst, sizes = 0.0, range(3, 9)
    for n in sizes:
        A, direction = _skew(n, generator), _skew(n, generator)
        signs = torch.where(torch.arange(n) < n // 2, -1.0, 1.0).double()
        G = torch.randn(n, n, generator=generator, dtype=torch.float64)
        W = cayley(A) * signs
        V = torch.linalg.solve((torch.eye(n, dtype=torch.float64) + A).mT, G @ (torch.diag(signs) + W.mT))
        stated = float(((V.mT - V) * direction).sum())
        # Along a skew direction E the loss <G, W(A + e E)> has this slope; as A_ij and A_ji move together, the gradient
        # of the entries above the diagonal is the whole matrix counted half.
        exact = 2 * _slope(G * signs, cayley, A, direction)
        worst = max(worst, abs(stated - exact) / max(1.0, abs(exact)))
    return Verdict(worst < 1e-9, len(sizes), f"largest relative difference from autograd {worst:.1e}")


@theorem("kerg-exprnn-gradient", "kerg2022thesis", "app. D.4", severity="wrong result")
def exprnn_gradient(seed: int) -> Verdict:
    """The gradient of f(exp(A)) by A is B (d exp)_{-A}(1/2 (G^T B - B^T G)), B = exp(A), G the gradient of f at B.

    Right: it has the opposite sign.
    Check: six sizes: the formula and its negative against autograd along skew-symmetric directions.
    """
    generator = torch.Generator().manual_seed(seed)
    as_printed, negated, sizes = 0.0, 0.0, range(3, 9)
    for n in sizes:
        A, direction = _skew(n, generator), _skew(n, generator)
        G = torch.randn(n, n, generator=generator, dtype=torch.float64)
        B = torch.linalg.matrix_exp(A)
        moved = scipy.linalg.expm_frechet(-A.numpy(), ((G.mT @ B - B.mT @ G) / 2).numpy(), compute_expm=False)
        stated = float(((B @ torch.from_numpy(moved)) * direction).sum())
        exact = _slope(G, torch.linalg.matrix_exp, A, direction)
        as_printed = max(as_printed, abs(stated - exact) / abs(exact))
        negated = max(negated, abs(-stated - exact) / abs(exact))
    return Verdict(
        as_printed > 1.9 and negated < 1e-9,
        len(sizes),
        f"relative difference from autograd {as_printed:.4f} as printed, {negated:.1e} with the sign turned",
    )


@theorem("ziv-cayley-signs", "ziv2020", "§1.2.2", severity="misprint")
def cayley_signs(seed: int) -> Verdict:
    """ScoRNN's W = Cay(A) D, D diagonal with entries 0 and 1, is orthogonal.

    Right: the entries of D are -1 and 1, which reach every orthogonal matrix: with a 0 the product is singular.
    Check: one product with a zero in D; and ten random orthogonal 4 x 4 matrices, reached with signs.
    """
    generator = torch.Generator().manual_seed(seed)
    eye, zero = torch.eye(4, dtype=torch.float64), torch.tensor([1.0, 0.0, 1.0, 1.0]).double()
    singular = float(torch.linalg.svdvals(cayley(_skew(4, generator)) * zero)[-1])
    reached, cases = 0, 10
    choices = torch.cartesian_prod(*[torch.tensor([1.0, -1.0]).double()] * 4)
    for _ in range(cases):
        W = torch.linalg.qr(torch.randn(4, 4, generator=generator, dtype=torch.float64))[0]
        best = choices[int(np.argmax([float(torch.linalg.svdvals(eye + W * signs)[-1]) for signs in choices]))]
        A = cayley(W * best)
        reached += bool(torch.allclose(A, -A.mT, atol=1e-9) and torch.allclose(cayley(A) * best, W, atol=1e-9))
    return Verdict(
        singular < 1e-12 and reached == cases,
        cases,
        f"D = diag(1, 0, 1, 1) gives smallest singular value {singular:.1e}; signs reach {reached} of {cases} matrices",
    )


@theorem("ziv-cayley-direction", "ziv2020", "§1.2.2", severity="wrong result")
def cayley_direction(seed: int) -> Verdict:
    """W moves downhill along the Cayley curve W(s) = (I + s/2 A)^-1 (I - s/2 A) W of A = G^T W - W^T G, G the gradient.

    Right: A = G W^T - W G^T goes downhill: dL/ds = -|A|_F^2 / 2.
    Check: forty random 3 x 3 cases and one by hand: the slope of tr(G^T W) along both curves.
    """
    random = np.random.default_rng(seed)
    cases, uphill, witness, error = 40, 0, 0.0, 0.0
    for _ in range(cases):
        W, G = np.linalg.qr(random.normal(size=(3, 3)))[0], random.normal(size=(3, 3))
        right = G @ W.T - W @ G.T
        error = max(error, abs(_along(right, W, G) + np.sum(right**2) / 2))
        printed = _along(G.T @ W - W.T @ G, W, G)
        uphill += int(printed > 1e-9)
        witness = max(witness, printed)
    shift, ones = np.eye(3)[[1, 2, 0]], np.diag([1.0, 1.0, 0.0])
    by_hand = _along(ones.T @ shift - shift.T @ ones, shift, ones)
    evidence = (
        f"printed A goes uphill in {uphill} of {cases} random cases (dL/ds up to {witness:.3g}); by hand: "
        f"W = [[0,1,0],[0,0,1],[1,0,0]], G = diag(1,1,0) gives dL/ds = {by_hand:+.3g}; "
        f"the corrected slope is off by {error:.0e}"
    )
    return Verdict(uphill > 0 and by_hand == 1 and error < 1e-9, cases, evidence)


def _along(A: _Square, W: _Square, G: _Square) -> float:
    """Return dL/ds at s = 0 for dL = tr(G^T dW), dW = -A W ds."""
    return -float(np.sum(G * (A @ W)))


def _dimension(s: NetworkView) -> tuple[int, int]:
    """Return the dimension of what the map can reach at most, and that of the whole group."""
    n, transition = len(s.V), s.map
    group = n * n if s.complex else n * (n - 1) // 2
    if isinstance(transition, Householder):
        m = transition.reflections
        return m * n - m * (m + 1) // 2, group
    assert transition is not None
    return min(group, sum(math.prod(shape) for shape in transition.shapes)), group


def _rank(layer: Any) -> int:
    """Return the rank of the Jacobian of the map that makes V, by its parameters."""
    own = next(iter(layer.parametrizations["weight_hh_l0"].parameters(recurse=False))).detach()
    jacobian = torch.func.jacrev(lambda p: layer.transition().map(p))(own)
    return int(torch.linalg.matrix_rank(jacobian.reshape(-1, own.numel()), rtol=1e-8))


@theorem("reach-part", "wisdom2016", "§3")
def part(seed: int) -> Verdict:
    """A map with fewer parameters than the orthogonal or unitary group has dimensions does not cover the group.

    Check: reflections and rotations, two to four of them on 6 units: the rank of the map's Jacobian against the group.
    """
    generator = torch.Generator().manual_seed(seed)
    made: list[Any] = [nn.ORNN(1, 6, reflections=m, dtype=torch.float64, generator=generator) for m in (2, 3, 4)]
    made += [nn.EURNN(1, 6, rotations=m, dtype=torch.float64, generator=generator) for m in (2, 3, 4)]
    found = [(_rank(layer), *_dimension(NetworkView(layer))) for layer in made]
    right = all(rank == reached < group for rank, reached, group in found)
    return Verdict(right, len(found), "ranks " + ", ".join(f"{rank} of {group}" for rank, _, group in found))


@part.about(
    "reach", lambda s: isinstance(s.map, Fourier | Givens | Householder) and _dimension(s)[0] < _dimension(s)[1]
)
def _(s: NetworkView) -> Instance:
    reached, group = _dimension(s)
    kind = "unitary" if s.complex else "orthogonal"
    text = (
        f"It cannot reach every {kind} matrix: those of size {len(s.V)} have {number(group)} dimensions, its V moves "
        f"in {number(reached)} of them at most, {number(100 * reached / group)}%."
    )
    return Instance(text, reached / group, "bound")


@theorem("reach-whole", "lezcano2019", "§4")
def whole(seed: int) -> Verdict:
    """Cayley transform, exponential and as many reflections as units move V in all n(n-1)/2 dimensions of the group.

    Check: three maps of 5 units: the rank of their Jacobian, and the determinant, which no small change can turn.
    """
    generator = torch.Generator().manual_seed(seed)
    made: list[Any] = [kind(1, 5, dtype=torch.float64, generator=generator) for kind in (nn.ExpRNN, nn.SCORNN)]
    made += [nn.ORNN(1, 5, reflections=5, dtype=torch.float64, generator=generator)]
    ranks = [_rank(layer) for layer in made]
    signs = [float(torch.linalg.det(layer.weight_hh_l0.detach())) for layer in made]
    right = ranks == [10] * len(made) and all(abs(abs(sign) - 1) < 1e-9 for sign in signs)
    return Verdict(right, len(made), f"ranks {ranks} of 10, determinants {', '.join(f'{sign:+.0f}' for sign in signs)}")


@whole.about("reach", lambda s: s.stays_orthogonal and _dimension(s)[0] == _dimension(s)[1])
def _(s: NetworkView) -> Instance:
    _, group = _dimension(s)
    if s.complex:
        side = "all unitary matrices, or all but a set of measure zero"
    elif isinstance(s.map, Exponential):
        side = "every rotation (determinant 1), no reflection"
    else:
        sign = round(float(np.linalg.slogdet(s.V)[0].real))
        side = f"the half of the orthogonal group with determinant {sign:+d}, or all of it but a set of measure zero"
    text = f"Its V moves in all {number(group)} dimensions of its group: training can reach {side}."
    return Instance(text, float(group), "exact")
