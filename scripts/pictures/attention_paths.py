"""Draw docs/measures/attention-paths.svg: the growth laws of uniform attention, and one gradient split by path."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mnemoscope.measures.gradient_paths import attention_paths
from mnemoscope.report.chart import Chart, beside, lines, save
from mnemoscope.theory import uniform_attention, uniform_attention_constant, uniform_attention_gradient

LENGTH = 4096
SHOWN = np.unique(np.geomspace(1, LENGTH, 60).round().astype(int))


def laws() -> Chart:
    """Exact gradients under uniform attention, and the law with its constant."""
    series = {}
    for value in (0.8, 0.5, -0.5):
        exact = np.abs(uniform_attention_gradient(value, LENGTH))
        series[f"λ = {value}"] = (SHOWN, exact[SHOWN - 1])
    power = 0.8 / 0.2 - 1
    series["law, λ = 0.8"] = (SHOWN, abs(uniform_attention_constant(0.8)) * SHOWN.astype(float) ** power)
    series["printed law, λ = 0.8"] = (SHOWN, SHOWN ** (0.8 - 1.0))
    return lines(
        series,
        x="sequence length T (steps)",
        y="gradient of s(T) by h(1)",
        title="Uniform attention, V = λ",
        log_x=True,
        log_y=True,
    )


def parts() -> Chart:
    """One gradient by the number of states that it passes."""
    found = attention_paths(0.5, uniform_attention(200))
    lags = np.arange(200)
    series = {"all paths": (lags, found.totals)}
    series |= {f"through {s}": (lags[max(s, 1) :], found.norms[max(s, 1) :, s]) for s in (0, 1, 3, 6, 12)}
    return lines(
        series,
        x="lag k (steps)",
        y="norm of the gradient",
        title="λ = 0.5: gradient by states passed",
        log_y=True,
    )


if __name__ == "__main__":
    save(beside(laws(), parts()), Path(__file__).parents[2] / "docs/measures/attention-paths.svg")
