"""Claims on spectra: the blocks of nnRNN, gradients on the orthogonal group, parameter counts, the Kreiss theorem."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from mnemoscope.core.errors import UserError
from mnemoscope.measures.spectrum import spectrum
from mnemoscope.nn.registry import create
from mnemoscope.nn.transition.maps import cayley
from mnemoscope.nn.transition.schur import Schur
from mnemoscope.studies.claims.base import Verdict, claim

__all__: list[str] = []


# nnRNN's blocks -------------------------------------------------------------------------------------------------------


@claim(
    "kerg-nnrnn-moduli",
    "Kerg Eq. 3.5.1",
    "the matrix Lambda + T of nnRNN, T strictly lower triangular, has eigenvalues of modulus gamma",
    "false",
    "T must leave out the entry within each 2 x 2 block: blocks gamma R(theta), or "
    "gamma [[cos, -r sin], [sin / r, cos]], have moduli exactly gamma",
)
def nnrnn_moduli(seed: int) -> Verdict:
    """Show moduli off gamma with one entry in a block, and exactly gamma without."""
    block = np.array([[math.cos(0.7), -math.sin(0.7)], [math.sin(0.7) + 0.5, math.cos(0.7)]])
    witness = float(np.abs(np.linalg.eigvals(block)).max())
    worst, cases = 0.0, 0
    for kind in ("rotation", "balanced"):
        for n in (4, 9, 16):
            form, gamma = _random_form(n, kind, seed + n)
            found = np.sort(np.abs(np.linalg.eigvals(form)))
            worst = max(worst, float(np.abs(found - np.sort(gamma)).max()))
            cases += 1
    return Verdict(
        abs(witness - 1) > 0.1 and worst < 1e-6,
        cases + 1,
        f"gamma = 1, theta = 0.7, t = 0.5: largest modulus {witness:.4f}; "
        f"without the entry moduli are gamma to {worst:.1e}",
    )


def _random_form(n: int, block: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = torch.Generator().manual_seed(seed)
    schur = Schur(n, block, "regularised", 0.0, 0.0)
    parameters = [torch.randn(shape, generator=generator, dtype=torch.float64) * 0.3 for shape in schur.shapes]
    named = schur.named(parameters)
    named["gamma"].copy_(torch.rand(named["gamma"].shape, generator=generator, dtype=torch.float64) + 0.5)
    gamma = named["gamma"]
    moduli = torch.cat([gamma[: n // 2].repeat_interleave(2), gamma[n // 2 :]]).numpy()
    return schur.form(*parameters).numpy(), moduli


@claim(
    "kerg-nnrnn-reach",
    "Kerg §3.5",
    "nnRNN with plain rotations reaches every real matrix with conjugate pairs of eigenvalues on the unit circle",
    "false",
    "a real Schur block is not always a rotation; blocks gamma [[cos, -r sin], [sin / r, cos]], r > 0, reach them all",
)
def nnrnn_reach(seed: int) -> Verdict:
    """Ask the maps for a matrix of moduli 1 that no rotation block is."""
    witness = torch.tensor([[0.0, -4.0], [0.25, 0.0]], dtype=torch.float64)
    moduli = torch.linalg.eigvals(witness).abs()
    refused = not Schur(2, "rotation", "regularised", 0.0, 0.0).contains(witness)
    generator = torch.Generator().manual_seed(seed)
    reached, cases = True, 0
    targets = [witness]
    for n in (2, 4, 6):
        change = torch.eye(n, dtype=torch.float64) + 0.3 * torch.randn(n, n, generator=generator, dtype=torch.float64)
        angles = torch.rand(n // 2, generator=generator, dtype=torch.float64) * 2 + 0.5
        turns = torch.zeros(n, n, dtype=torch.float64)
        for i, angle in enumerate(angles.tolist()):
            turns[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = _turn(angle)
        targets.append(change @ turns @ torch.linalg.inv(change))
    for target in targets:
        schur = Schur(len(target), "balanced", "regularised", 0.0, 0.0).double()
        try:
            back = schur.map(*schur.right_inverse(target))
        except UserError:
            reached = False
            continue
        reached &= bool(torch.allclose(back, target, atol=1e-7))
        cases += 1
    return Verdict(
        refused and reached,
        len(targets),
        f"[[0, -4], [1/4, 0]] has moduli {moduli[0]:.4f}, {moduli[1]:.4f} and singular values 4, 0.25; "
        f"block='rotation' refuses it, block='balanced' reaches {cases} of {len(targets)} targets",
    )


def _turn(angle: float) -> Tensor:
    c, s = math.cos(angle), math.sin(angle)
    return torch.tensor([[c, -s], [s, c]], dtype=torch.float64)


# Gradients on the orthogonal group ------------------------------------------------------------------------------------


@claim(
    "kerg-full-capacity-descent",
    "Ziv §1.2.2, Kerg app. D.2",
    "W <- Cay(rate/2 A) W with A = G^T W - W^T G descends, G the gradient of the loss",
    "false",
    "A = G W^T - W G^T does, applied from the left",
)
def descent(seed: int) -> Verdict:
    """Compare the slope of random losses along both directions."""
    generator = torch.Generator().manual_seed(seed)
    printed, corrected, witness = 0, 0, 0.0
    cases = 40
    for _ in range(cases):
        W = _orthogonal(5, generator)
        G = torch.randn(5, 5, generator=generator, dtype=torch.float64)
        wrong = -float((G * ((G.mT @ W - W.mT @ G) @ W)).sum())  # the slope: Cay(e A) W = W - 2 e A W + ..
        right = -float((G * ((G @ W.mT - W @ G.mT) @ W)).sum())
        printed += wrong > 0
        corrected += right < 0
        witness = max(witness, wrong)
    return Verdict(
        printed > 0 and corrected == cases,
        cases,
        f"the loss rises along the printed direction in {printed} of {cases} cases (slope up to {witness:.2f}), "
        f"and falls along the corrected one in {corrected}",
    )


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


# Counts and theorems --------------------------------------------------------------------------------------------------

_COUNTS = {
    ("nnrnn", 10, 128, 9): 18_953,
    ("exprnn", 10, 176, 9): 18_929,
    ("nnrnn", 1, 512, 10): 268_298,
    ("exprnn", 1, 722, 10): 268_955,
}


@claim(
    "kerg-parameter-counts",
    "Kerg app. A, tables of copy and psMNIST",
    "nnRNN n=128 and expRNN n=176 (copy), n=512 and n=722 (psMNIST), are equal in parameters to within 0.3%",
    "proved",
)
def counts(seed: int) -> Verdict:
    """Count the trainable numbers of layer and linear readout."""
    generator = torch.Generator().manual_seed(seed)
    found = {}
    for name, inputs, hidden, outputs in _COUNTS:
        options = {"block": "published"} if name == "nnrnn" else {}
        layer = create(name, input_size=inputs, hidden_size=hidden, generator=generator, **options)
        own = sum(p.numel() for p in layer.parameters() if p.requires_grad)
        found[name, inputs, hidden, outputs] = own + outputs * (hidden + 1)
    copy, pixels = found["nnrnn", 10, 128, 9], found["nnrnn", 1, 512, 10]
    gaps = [abs(found["exprnn", 10, 176, 9] / copy - 1), abs(found["exprnn", 1, 722, 10] / pixels - 1)]
    listed = ", ".join(f"{name} n={n}: {count:,}" for (name, _, n, _), count in found.items())
    return Verdict(found == _COUNTS and max(gaps) < 3e-3, len(found), listed)


@claim(
    "kreiss-matrix-theorem",
    "Kreiss 1962; Spijker 1991",
    "K(W) <= max_k ||W^k|| <= e N K(W), and K(W) = 1 exactly when the numerical radius is at most 1",
    "proved",
)
def kreiss_theorem(seed: int) -> Verdict:
    """Try it on random matrices and on the triangular ones of Kerg's Table 5, shortened."""
    random = np.random.default_rng(seed)
    matrices = []
    for n in (2, 5, 8, 12):
        W = random.normal(size=(n, n))
        matrices.append(W * random.uniform(0.5, 0.97) / np.abs(np.linalg.eigvals(W)).max())
        matrices.append(0.2 * np.eye(n) + np.diag(np.full(n - 1, 1.05), -1))
    exceptions, tightest = 0, math.inf
    for W in matrices:
        found = spectrum(W, tolerance=1e-2, horizon=1)
        inside = found.kreiss <= found.amplification * (1 + 1e-10) <= math.e * len(W) * found.kreiss * (1 + 1e-9)
        exceptions += not inside or (found.kreiss == 1) != (found.numerical_radius <= 1 + 1e-12)
        tightest = min(tightest, math.e * len(W) * found.kreiss / found.amplification)
    return Verdict(
        exceptions == 0,
        len(matrices),
        f"{exceptions} exceptions; e N K is at least {tightest:.2f} times the largest power",
    )
