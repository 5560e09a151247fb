"""Draw docs/measures/gradients.svg: gradients that vanish, stay, grow polynomially and explode."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import torch

import mnemoscope as ms
from mnemoscope.measures.gradients import gradient_norms
from mnemoscope.report import chart

FOLDER = Path(__file__).parents[2] / "docs" / "measures"


def linear(matrix: torch.Tensor) -> ms.nn.LinearRNN:
    """Return the linear network with this recurrent matrix."""
    layer = ms.nn.LinearRNN(1, len(matrix), bias=False)
    layer.weight_hh_l0 = matrix
    return layer


def main() -> None:
    """Measure and draw; another ending than .svg may be named."""
    generator = torch.Generator().manual_seed(0)
    networks = {
        "radius 1.1": linear(1.1 * torch.linalg.qr(torch.randn(4, 4, generator=generator)).Q),
        "unit triangular, n = 4": linear(torch.eye(4) + 0.5 * torch.triu(torch.ones(4, 4), 1)),
        "orthogonal": linear(torch.linalg.qr(torch.randn(4, 4, generator=generator)).Q),
        "tanh, n = 32": ms.nn.OrthRNN(1, 32, generator=generator),
    }
    series = {}
    for name, network in networks.items():
        found = gradient_norms(network, horizon=100)
        print(name, found)
        series[name] = (np.arange(len(found.norms)), found.log_norms / math.log(10))
    drawn = chart.lines(
        series,
        x="steps back from the end, k",
        y="log10 of the gradient norm",
        title="The gradient on its way back",
    )
    chart.save(drawn, FOLDER / f"gradients{sys.argv[1] if len(sys.argv) > 1 else '.svg'}")


if __name__ == "__main__":
    main()
