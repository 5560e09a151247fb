"""Spectra: the circle of orthogonal matrices, the blocks of nnRNN, the Kreiss matrix theorem."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
import torch

from mnemoscope import measures, nn
from mnemoscope.core.errors import UserError
from mnemoscope.core.numbers import number
from mnemoscope.nn.maps.schur import Schur
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.view import NetworkView

_MOST = 128
"""Units up to which the Kreiss constant is computed here."""


def _one_layer(s: NetworkView) -> bool:
    return s.first_order and s.layers == 1


@theorem("spectrum-orthogonal", "trefethen2005", "")
def on_the_circle(seed: int) -> Verdict:
    """An orthogonal or unitary matrix has its eigenvalues on the unit circle, is normal, and amplifies nothing.

    Check: five parametrisations of 6 units: moduli, Henrici's departure, Kreiss constant and powers of their matrices.
    """
    worst, names = 0.0, ("scornn", "exprnn", "full-urnn", "ornn", "eurnn")
    for name in names:
        generator = torch.Generator().manual_seed(seed)
        layer = nn.create(name, input_size=2, hidden_size=6, dtype=torch.float64, generator=generator)
        found = measures.spectrum(layer)
        moduli = float(np.abs(np.abs(found.eigenvalues) - 1).max())
        worst = max(worst, moduli, found.henrici**2, abs(found.kreiss - 1), abs(found.amplification - 1))
    return Verdict(worst < 1e-8, len(names), f"off the values of an orthogonal matrix by at most {worst:.1e}")


@on_the_circle.about("spectrum", lambda s: _one_layer(s) and s.orthogonal)
def _(s: NetworkView) -> Instance:
    kept = "by construction" if s.stays_orthogonal else "with these weights; training may leave it"
    group = "unitary" if s.complex else "orthogonal"
    text = (
        f"V is {group} {kept}: all {len(s.V)} eigenvalues lie on the unit circle, Henrici's departure from normality "
        f"is 0, the Kreiss constant and the largest transient amplification are 1."
    )
    return Instance(text, 1.0, "exact")


@theorem("kerg-nnrnn-moduli", "kerg2022thesis", "Eq. 3.5.1", severity="wrong result")
def nnrnn_moduli(seed: int) -> Verdict:
    """The matrix Lambda + T of nnRNN, T strictly lower triangular, has eigenvalues of modulus gamma.

    Right: T must leave out the entry within each 2 x 2 block: blocks gamma R(theta), or gamma [[cos, -r sin], [sin / r,
    cos]], have moduli exactly gamma.
    Check: one block by hand with an entry within it, and six random matrices without: moduli of their eigenvalues.
    """
    block = np.array([[math.cos(0.7), -math.sin(0.7)], [math.sin(0.7) + 0.5, math.cos(0.7)]])
    witness = float(np.abs(np.linalg.eigvals(block)).max())
    worst, cases = 0.0, [(kind, n) for kind in ("rotation", "balanced") for n in (4, 9, 16)]
    for kind, n in cases:
        generator = torch.Generator().manual_seed(seed + n)
        schur = Schur(n, kind, "regularised", 0.0, 0.0)
        parameters = [torch.randn(shape, generator=generator, dtype=torch.float64) * 0.3 for shape in schur.shapes]
        gamma = schur.named(parameters)["gamma"]
        gamma.copy_(torch.rand(gamma.shape, generator=generator, dtype=torch.float64) + 0.5)
        wanted = torch.cat([gamma[: n // 2].repeat_interleave(2), gamma[n // 2 :]]).numpy()
        found = np.abs(np.linalg.eigvals(schur.form(*parameters).numpy()))
        worst = max(worst, float(np.abs(np.sort(found) - np.sort(wanted)).max()))
    return Verdict(
        abs(witness - 1) > 0.1 and worst < 1e-6,
        len(cases) + 1,
        f"gamma = 1, theta = 0.7, t = 0.5: largest modulus {witness:.4f}; "
        f"without the entry moduli are gamma to {worst:.1e}",
    )


@nnrnn_moduli.about("spectrum", lambda s: s.is_a(nn.NNRNN) and _one_layer(s))
def _(s: NetworkView) -> Instance:
    values = np.abs(np.linalg.eigvals(s.V))
    top = float(values.max())
    if s.option("block") == "published":
        text = (
            f"With the published blocks the moduli of its eigenvalues are not its gammas once the triangle is learned; "
            f"with these weights the largest is {number(top)}. block='rotation' repairs that."
        )
        return Instance(text, top, "exact")
    clamped = ", and stay so in training" if s.option("gamma") == "clamped" else ""
    text = (
        f"The moduli of its eigenvalues are its gammas whatever stands in the triangle below them: from "
        f"{number(float(values.min()))} to {number(top)} with these weights{clamped}."
    )
    return Instance(text, top, "exact")


@theorem("kerg-nnrnn-reach", "kerg2022thesis", "§3.5", severity="wrong result")
def nnrnn_reach(seed: int) -> Verdict:
    """NnRNN with plain rotations reaches every real matrix with pairs of non-real eigenvalues on the unit circle.

    Right: a real Schur block is not always a rotation; blocks gamma [[cos, -r sin], [sin / r, cos]], r > 0, reach them
    all.
    Check: one 2 x 2 matrix by hand and three random ones: whether the maps reach them and give them back.
    """
    witness = torch.tensor([[0.0, -4.0], [0.25, 0.0]], dtype=torch.float64)
    moduli = torch.linalg.eigvals(witness).abs()
    refused = not Schur(2, "rotation", "regularised", 0.0, 0.0).contains(witness)
    generator = torch.Generator().manual_seed(seed)
    reached, targets = 0, [witness]
    for n in (2, 4, 6):
        change = torch.eye(n, dtype=torch.float64) + 0.3 * torch.randn(n, n, generator=generator, dtype=torch.float64)
        angles = torch.rand(n // 2, generator=generator, dtype=torch.float64) * 2 + 0.5
        rows = [torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])]) for a in angles]
        turns = torch.from_numpy(scipy.linalg.block_diag(*(row.numpy() for row in rows)))
        targets.append(change @ turns @ torch.linalg.inv(change))
    for target in targets:
        schur = Schur(len(target), "balanced", "regularised", 0.0, 0.0).double()
        try:
            back = schur.map(*schur.right_inverse(target))
        except UserError:
            continue
        reached += bool(torch.allclose(back, target, atol=1e-7))
    return Verdict(
        refused and reached == len(targets),
        len(targets),
        f"[[0, -4], [1/4, 0]] has moduli {moduli[0]:.4f}, {moduli[1]:.4f} and singular values 4, 0.25; "
        f"block='rotation' refuses it, block='balanced' reaches {reached} of {len(targets)} targets",
    )


@nnrnn_reach.about("reach", lambda s: s.is_a(nn.NNRNN))
def _(s: NetworkView) -> Instance:
    if s.option("block") == "balanced":
        return Instance("Its blocks reach every real matrix whose eigenvalues come in non-real pairs.", None, "exact")
    text = (
        "Its plain rotations do not reach every real matrix with non-real pairs of eigenvalues, as [[0, -4], [1/4, "
        "0]]; block='balanced' does."
    )
    return Instance(text, None, "exact")


@theorem("kreiss-matrix-theorem", "spijker1991", "after Kreiss 1962")
def kreiss_theorem(seed: int) -> Verdict:
    """K(W) <= max_k ||W^k|| <= e N K(W), and K(W) = 1 exactly when the numerical radius is at most 1.

    Check: sixteen matrices of numerical radius 0.8, 0.99, 1.05 and 1.5: powers, and the resolvent at 1,200 points.
    """
    random = np.random.default_rng(seed)
    exceptions, tightest, ones = 0, math.inf, 0
    matrices = []
    for n in (2, 5, 8, 12):
        full, triangle = random.normal(size=(n, n)), 0.2 * np.eye(n) + np.tril(random.uniform(0.2, 1, (n, n)), -1)
        matrices += [full * (wanted / _numerical_radius(full)) for wanted in (0.8, 0.99)]
        matrices += [triangle * (wanted / _numerical_radius(triangle)) for wanted in (1.05, 1.5)]
    for place, W in enumerate(matrices):
        found = measures.spectrum(W, tolerance=1e-2, horizon=1)
        inside = found.kreiss <= found.amplification * (1 + 1e-10) <= math.e * len(W) * found.kreiss * (1 + 1e-9)
        one = place % 4 < 2
        ones += found.kreiss == 1
        seen = _resolvent_peak(W)  # (|z| - 1) ||(z - W)^-1|| on a grid: above 1 somewhere, or nowhere
        exceptions += not inside or (found.kreiss == 1) != one or (seen > 1 + 1e-9) == one
        tightest = min(tightest, math.e * len(W) * found.kreiss / found.amplification)
    return Verdict(
        exceptions == 0,
        len(matrices),
        f"{exceptions} exceptions, {ones} of {len(matrices)} with K = 1; e N K is at least {tightest:.2f} times the "
        f"largest power",
    )


def _numerical_radius(W: np.ndarray) -> float:
    turns = np.exp(2j * np.pi * np.arange(720) / 720)[:, None, None] * W
    return float(np.linalg.eigvalsh((turns + turns.conj().swapaxes(1, 2)) / 2).max())


def _resolvent_peak(W: np.ndarray) -> float:
    radii = np.array([1.001, 1.01, 1.05, 1.2, 1.5, 2.0, 4.0, 10.0, 100.0, 1000.0])
    z = (radii[:, None] * np.exp(2j * np.pi * np.arange(120) / 120)).ravel()
    smallest = np.linalg.svd(z[:, None, None] * np.eye(len(W)) - W, compute_uv=False)[:, -1]
    return float(((np.abs(z) - 1) / smallest).max())


def _kreiss_applies(s: NetworkView) -> bool:
    return _one_layer(s) and not s.orthogonal and s.n <= _MOST and float(np.abs(np.linalg.eigvals(s.V)).max()) < 1


@kreiss_theorem.about("spectrum", _kreiss_applies)
def _(s: NetworkView) -> Instance:
    K = float(measures.kreiss_constant(s.V, tolerance=1e-3).value)
    top = math.e * len(s.V) * K
    text = (
        f"The powers of V reach a norm between its Kreiss constant K = {number(K)} and e n K = {number(top)} before "
        f"they decay, with these weights."
    )
    return Instance(text, top, "bound")
