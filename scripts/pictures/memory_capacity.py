"""Draw docs/measures/memory-capacity.svg: linear memory by lag, and what large inputs do to it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

import mnemoscope as ms
from mnemoscope.measures.capacity.memory import memory_capacity
from mnemoscope.report import chart

FOLDER = Path(__file__).parents[2] / "docs" / "measures"


def by_lag() -> chart.Chart:
    """Draw the curves of four networks of 50 units."""
    random = np.random.default_rng(0)
    torch.manual_seed(0)
    Q = np.linalg.qr(random.normal(size=(50, 50)))[0]
    found = {
        "delay line": memory_capacity((np.diag(np.ones(49), -1), np.eye(50)[0]), lag=150),
        "orthogonal, radius 0.99": memory_capacity((0.99 * Q, Q[0]), lag=150),
        "symmetric, radius 0.9": memory_capacity((Q @ np.diag(np.linspace(-0.9, 0.9, 50)) @ Q.T, Q.sum(1)), lag=150),
        "gru (estimate)": memory_capacity(ms.nn.create("gru", input_size=1, hidden_size=50), lag=150),
    }
    for name, each in found.items():
        print(name, each)
    return chart.lines(
        {name: (np.arange(151), np.clip(each.curve, 0, None)) for name, each in found.items()},
        x="lag k (steps)",
        y="share of u(t-k) recovered",
        title="50 units, four ways to remember",
    )


def by_scale() -> chart.Chart:
    """Draw how a tanh network exchanges linear for nonlinear memory."""
    random = np.random.default_rng(1)
    network = ms.nn.create("rnn", input_size=1, hidden_size=12, dtype=torch.float64)
    with torch.no_grad():
        network.weight_hh_l0.copy_(torch.as_tensor(0.8 * np.linalg.qr(random.normal(size=(12, 12)))[0]))
        network.weight_ih_l0.copy_(torch.as_tensor(random.uniform(-1, 1, size=(12, 1))))
    scales = tuple(float(each) for each in np.geomspace(0.03, 10, 9))
    found = memory_capacity(network, degree=4, lag=16, scales=scales, threshold=True, samples=16_384)
    print(found)
    names = ["linear", "degree 2", "degree 3", "degree 4"]
    series = {name: (scales, found.totals_by_degree[:, d]) for d, name in enumerate(names)}
    return chart.lines(
        {**series, "all": (scales, found.totals)},
        x="input scale",
        y="capacity (units)",
        title="tanh network of 12 units",
        log_x=True,
        points=True,
    )


def main() -> None:
    """Measure and draw; another ending than .svg may be named."""
    chart.save(
        chart.beside(by_lag(), by_scale(), columns=1),
        FOLDER / f"memory-capacity{sys.argv[1] if len(sys.argv) > 1 else '.svg'}",
    )


if __name__ == "__main__":
    main()
