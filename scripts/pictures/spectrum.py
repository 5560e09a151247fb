"""Draw docs/measures/spectrum.svg and docs/measures/pseudospectrum.svg from an nnRNN with a lower triangle."""

from __future__ import annotations

from pathlib import Path

import torch

import mnemoscope as ms
from mnemoscope.measures.spectral.matrix import spectrum
from mnemoscope.measures.spectral.pseudo import pseudospectrum
from mnemoscope.report.chart import save

FOLDER = Path(__file__).parents[2] / "docs/measures"


def network() -> ms.nn.NNRNN:
    """Return an nnRNN of 48 units with gamma = 0.95 and a random T that is strongest near the diagonal."""
    generator = torch.Generator().manual_seed(0)
    layer = ms.nn.NNRNN(2, 48, generator=generator, dtype=torch.float64)
    transition = layer.transition()
    named = transition.named(list(layer.parametrizations.weight_hh_l0.parameters(recurse=False)))
    with torch.no_grad():
        named["gamma"].fill_(0.95)
        rows, columns = transition._lower
        distance = (rows - columns).double()
        noise = torch.randn(distance.shape, generator=generator, dtype=torch.float64)
        named["lower"].copy_(0.35 * noise * torch.exp(-distance / 6))
    return layer


if __name__ == "__main__":
    layer = network()
    found = spectrum(layer)
    print(found)
    save(found.plot(), FOLDER / "spectrum.svg")
    near = pseudospectrum(layer, points=121, reach=1.5)
    print(near)
    save(near.plot(), FOLDER / "pseudospectrum.svg")
