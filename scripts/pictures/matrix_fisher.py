"""Draw docs/measures/matrix-fisher.svg: exact and published curves, and how they part as memory gets longer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg

from mnemoscope.measures.fisher.matrix import matrix_fisher_memory
from mnemoscope.report.chart import beside, lines, save

SIZE = 8


def normal(random: np.random.Generator, radius: float) -> np.ndarray:
    """Return a symmetric matrix with eigenvalues up to `radius`."""
    frame = scipy.linalg.qr(random.standard_normal((SIZE, SIZE)))[0]
    return np.asarray(frame @ np.diag(np.linspace(-radius, radius, SIZE)) @ frame.T)


def curves() -> Any:
    """A normal network and one with a feed-forward chain on both sides."""
    random = np.random.default_rng(0)
    W = np.zeros((SIZE, SIZE))
    W[0, 0] = 1.0
    series = {}
    chain = 0.2 * np.eye(SIZE) + 1.1 * np.eye(SIZE, k=1)
    for name, U, V in (("normal", normal(random, 0.95), normal(random, 0.95)), ("chain", chain, chain)):
        found = matrix_fisher_memory(U, V, W)
        shown = np.arange(16)
        for form, curve in (("exact", found.curve), ("published", found.published_curve)):
            padded = np.zeros(16)
            padded[: min(16, len(curve))] = curve[:16]
            series[f"{name}, {form}"] = (shown, padded)
    return lines(series, x="lag k (steps)", y="Fisher information J(k)", title="Two networks, 8 x 8", log_y=True)


def totals() -> Any:
    """The relative capacity of normal networks as their spectral radius grows."""
    radii = np.linspace(0.05, 0.99, 40)
    series: dict[str, tuple[list[float], list[float]]] = {"exact": ([], []), "published": ([], [])}
    for radius in radii:
        random = np.random.default_rng(1)
        U, V = normal(random, radius), normal(random, radius)
        found = matrix_fisher_memory(U, V, np.eye(SIZE))
        for form, value in (("exact", found.relative), ("published", found.published_relative)):
            series[form][0].append(float(radius))
            series[form][1].append(float(value))
    return lines(
        series,
        x="spectral radius of U and of V",
        y="total over one input's information",
        title="Normal networks, W = I",
    )


if __name__ == "__main__":
    save(beside(curves(), totals(), columns=1), Path(__file__).parents[2] / "docs/measures/matrix-fisher.svg")
