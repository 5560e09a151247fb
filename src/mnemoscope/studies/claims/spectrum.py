"""Claims on spectra: the blocks of nnRNN, parameter counts, the Kreiss matrix theorem."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from mnemoscope.core.errors import UserError
from mnemoscope.measures.spectral.matrix import spectrum
from mnemoscope.nn.maps.schur import Schur
from mnemoscope.nn.registry import create
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
