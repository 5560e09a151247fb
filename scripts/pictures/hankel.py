"""Draw docs/measures/hankel.svg: Hankel singular values of linear networks with other recurrent matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mnemoscope as ms
from mnemoscope.report.chart import lines, save

SIZE = 24


def main() -> None:
    """Write the picture."""
    random = np.random.default_rng(0)
    free = random.standard_normal((SIZE, SIZE))
    matrices = {
        "random": 0.95 * free / np.abs(np.linalg.eigvals(free)).max(),
        "orthogonal, times 0.95": 0.95 * np.linalg.qr(free)[0],
        "delay line": np.diag(np.ones(SIZE - 1), -1),
    }
    first, last = np.eye(SIZE)[:, :1], np.eye(SIZE)[-1:]
    series = {}
    for name, W in matrices.items():
        found = ms.measures.hankel_singular_values(W, first, last)
        print(name, found)
        kept = found.values > 1e-14
        series[name] = (np.arange(1, SIZE + 1)[kept], found.values[kept])
    picture = lines(series, x="index i", y="singular value", title="Hankel singular values, 24 units", log_y=True)
    save(picture, Path(__file__).parents[2] / "docs/measures/hankel.svg")


if __name__ == "__main__":
    main()
