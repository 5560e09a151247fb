"""Draw docs/measures/fisher.svg: memory curves of a delay line, of Kerg's matrices and of a normal network."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from mnemoscope import theory
from mnemoscope.measures.fisher.vector import fisher_memory
from mnemoscope.report import chart

FOLDER = Path(__file__).parents[2] / "docs" / "measures"
SIZE, LAGS, FLOOR = 100, 160, 1e-5


def visible(curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lags and values that a logarithmic axis has room for."""
    lags = np.flatnonzero(curve > FLOOR)
    return lags, curve[lags]


def main() -> None:
    """Measure and draw; another ending than .svg may be named."""
    source = np.eye(SIZE)[0]
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((SIZE, SIZE)))[0]
    networks = {
        "delay line, 1.05": theory.kerg_matrix(SIZE, 1.05),
        "the same, diagonal 0.2": theory.kerg_matrix(SIZE, 1.05, d=0.2),
        "delay line, 0.95": theory.kerg_matrix(SIZE, 0.95),
        "0.98 orthogonal": 0.98 * turn,
    }
    found = {name: fisher_memory(W, source, lags=LAGS) for name, W in networks.items()}
    for name, one in found.items():
        print(name, "|", one)
    curves = chart.lines(
        {f"{name}: {one.total:.3g}": visible(one.curve) for name, one in found.items()},
        x="lag k (steps)",
        y="Fisher information J(k), noise 1",
        title=f"Memory of the input k steps back, N = {SIZE}",
        log_y=True,
    )
    low, high = theory.feedback_interval(0.9)
    line = theory.feedback_delay_line(SIZE, 0.9, (0.5 * (low + high)) ** 2)
    pairs = chart.heat_map(
        fisher_memory(line.W, line.v).overlap(24),
        x="lag l (steps)",
        y="lag k (steps)",
        value="overlap",
        title="Overlap of inputs, delay line with feedback",
        diverging=True,
    )
    ending = sys.argv[1] if len(sys.argv) > 1 else ".svg"
    chart.save(chart.beside(curves, pairs), FOLDER / f"fisher{ending}")


if __name__ == "__main__":
    main()
