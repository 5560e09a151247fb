"""Claims about gradients on their way back through time (Kerg §3.4.3, Ziv §1.2)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch
from jaxtyping import Float

from mnemoscope.measures.gradients import gradient_norms
from mnemoscope.nn.networks.elman import IRNN, LinearRNN
from mnemoscope.studies.claims.base import Verdict, claim
from mnemoscope.theory.formulas.gradients import orthogonal_relu_bound, triangular_power_entry

__all__: list[str] = []


@claim(
    "kerg-polynomial-powers",
    "Kerg Prop. 3.4.2",
    "with ones on the diagonal and x above it, (A^t)_ij is a polynomial in x of degree j - i without constant term, "
    "whose coefficient of x^l is O(C(t, l)); in exact form C(t, l) C(k-1, l-1), k = j - i",
    "proved",
)
def polynomial_powers(seed: int) -> Verdict:
    """Compare the exact form with powers in rational arithmetic."""
    random = np.random.default_rng(seed)
    cases, wrong = 0, 0
    for _ in range(12):
        size, power = int(random.integers(2, 7)), int(random.integers(1, 12))
        x = Fraction(int(random.integers(-9, 10)), int(random.integers(1, 8)))
        row = [Fraction(int(j == 0)) for j in range(size)]
        for _ in range(power):  # the first row of the next power: each entry gains x times all before it
            row = [row[j] + x * sum(row[:j], Fraction(0)) for j in range(size)]
        wrong += sum(row[k] != triangular_power_entry(k, power, x) for k in range(1, size))
        cases += size - 1
    return Verdict(
        wrong == 0, cases, f"{wrong} of {cases} entries of A^t differ from the exact form, in exact arithmetic"
    )


@claim(
    "kerg-polynomial-gradients",
    "Kerg §3.4.3",
    "gradients of a triangular network with unit eigenvalues grow polynomially, not exponentially",
    "measured",
)
def polynomial_gradients(seed: int) -> Verdict:
    """Fit both laws to the gradients of such networks, and of the same ones with eigenvalues 1.1."""
    random = np.random.default_rng(seed)
    laws, orders = [], []
    still = torch.zeros(120, 1, 1)
    for size in (2, 3, 4):
        above = np.triu(random.uniform(0.2, 1.0, size=(size, size)), 1)
        for diagonal, law in ((1.0, "polynomial"), (1.1, "exponential")):
            layer = _linear(above + diagonal * np.eye(size))
            found = gradient_norms(layer, inputs=still, loss=lambda y: y[-1, 0, 0])
            laws.append(found.law == law)
            if diagonal == 1:
                orders.append(found.order)
    shown = ", ".join(f"{order:.2f}" for order in orders)
    return Verdict(all(laws), len(laws), f"orders {shown} for n = 2, 3, 4 (at most n - 1 in the limit)")


@claim(
    "ziv-orthogonal-relu",
    "Ziv §1.2.1",
    "with V orthogonal and ReLU, the gradient at an earlier state is never larger than the gradient at the last",
    "proved",
)
def orthogonal_relu(seed: int) -> Verdict:
    """Measure gradients of random orthogonal networks, one of them with a step at which all units are off."""
    generator = torch.Generator().manual_seed(seed)
    worst, cases = 0.0, 6
    for case in range(cases):
        layer = IRNN(2, 8, dtype=torch.float64, generator=generator)
        layer.weight_hh_l0 = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64)).Q
        x = torch.randn(60, 1, 2, generator=generator, dtype=torch.float64)
        if case == 0:
            layer.bias_l0 = torch.full((8,), -100.0)
        with torch.no_grad():
            active = (layer(x)[0] > 0)[:, 0].numpy()
        norms = gradient_norms(layer, inputs=x, seed=seed + case).norms
        worst = max(worst, float((norms / norms[0] - orthogonal_relu_bound(active)).max()))
    return Verdict(worst < 1e-12, cases, f"the largest excess over the bound is {max(worst, 0.0):.1e} of |dL/dh_T|")


@claim(
    "ziv-cayley-direction",
    "Ziv §1.2.2",
    "W moves downhill along the Cayley curve W(s) = (I + s/2 A)^-1 (I - s/2 A) W of A = G^T W - W^T G, G the gradient",
    "false",
    "A = G W^T - W G^T goes downhill: dL/ds = -|A|_F^2 / 2",
)
def cayley_direction(seed: int) -> Verdict:
    """Differentiate the loss tr(G^T W) along both curves; the witness is a matrix whose printed curve goes uphill."""
    random = np.random.default_rng(seed)
    cases, uphill, witness, error = 40, 0, 0.0, 0.0
    for _ in range(cases):
        W = np.linalg.qr(random.normal(size=(3, 3)))[0]
        G = random.normal(size=(3, 3))
        right = G @ W.T - W @ G.T
        error = max(error, abs(_slope(right, W, G) + np.sum(right**2) / 2))
        printed = _slope(G.T @ W - W.T @ G, W, G)
        uphill += int(printed > 1e-9)
        witness = max(witness, printed)
    shift, ones = np.eye(3)[[1, 2, 0]], np.diag([1.0, 1.0, 0.0])
    by_hand = _slope(ones.T @ shift - shift.T @ ones, shift, ones)
    evidence = (
        f"printed A goes uphill in {uphill} of {cases} random cases (dL/ds up to {witness:.3g}); by hand: "
        f"W = [[0,1,0],[0,0,1],[1,0,0]], G = diag(1,1,0) gives dL/ds = {by_hand:+.3g}; "
        f"the corrected slope is off by {error:.0e}"
    )
    return Verdict(uphill > 0 and by_hand == 1 and error < 1e-9, cases, evidence)


def _slope(A: Float[np.ndarray, "n n"], W: Float[np.ndarray, "n n"], G: Float[np.ndarray, "n n"]) -> float:
    """Return dL/ds at s = 0 for dL = tr(G^T dW), dW = -A W ds."""
    return -float(np.sum(G * (A @ W)))


def _linear(W: Float[np.ndarray, "n n"]) -> LinearRNN:
    layer = LinearRNN(1, len(W), bias=False, dtype=torch.float64)
    layer.weight_hh_l0 = torch.from_numpy(W)
    return layer
