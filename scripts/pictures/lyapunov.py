"""Draw docs/measures/lyapunov.svg: spectra of a tanh network as its recurrent matrix grows."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

import mnemoscope as ms
from mnemoscope.measures.lyapunov import lyapunov_exponents
from mnemoscope.report import chart

FOLDER = Path(__file__).parents[2] / "docs" / "measures"
UNITS = 64


def main() -> None:
    """Measure and draw; another ending than .svg may be named."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(UNITS, UNITS, generator=generator) / UNITS**0.5
    index = np.arange(1, UNITS + 1)
    series = {}
    for gain in (0.5, 1.0, 2.0):
        layer = ms.nn.RNN(1, UNITS, bias=False, generator=generator)
        layer.weight_hh_l0 = gain * start
        found = lyapunov_exponents(layer, scale=0.1, horizon=600)
        print(gain, found)
        series[f"g = {gain:g}"] = (index, found.exponents)
    series["zero"] = (index[[0, -1]], np.zeros(2))
    drawn = chart.lines(
        series,
        x="index i",
        y="Lyapunov exponent (nats per step)",
        title="Lyapunov spectra of 64 tanh units, V = g N(0, 1/n)",
    )
    chart.save(drawn, FOLDER / f"lyapunov{sys.argv[1] if len(sys.argv) > 1 else '.svg'}")


if __name__ == "__main__":
    main()
