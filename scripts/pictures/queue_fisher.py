"""Draw docs/measures/queue-fisher.svg: where a slot of memory moves information, and the published series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.measures.fisher.queue import queue_fisher_memory
from mnemoscope.report.chart import beside, lines, save

U = V = np.diag([0.8, 0.6, 0.4, 0.2])
W = np.ones((4, 4))


def moved() -> Any:
    """Curves of one network with slots of several weights, and of the last two states."""
    series = {}
    for weight in (0.0, 0.15, 0.3):
        found = queue_fisher_memory(U, V, W, weights=(weight,))
        series[f"weight {weight}: total {found.total:.0f}"] = (np.arange(25), found.curve[:25])
    series[f"two states, weight 0.3: total {found.joint_total:.0f}"] = (np.arange(25), found.joint_curve[:25])
    return lines(series, x="lag k (steps)", y="Fisher information J(k)", title="One slot, 4 x 4 normal", log_y=True)


def diverging() -> Any:
    """Terms of the published series."""
    found = queue_fisher_memory(U, V, W, form="published", m_max=30)
    orders = np.arange(31)
    names = ("trace of row covariance", "trace of column covariance", "norm of mean at lag 0")
    shown = dict(zip(names, found.terms, strict=True))
    del shown[names[1]]  # U = V: the same line
    series = {name: (orders, values) for name, values in shown.items()}
    return lines(series, x="order m of the term", y="size of the term", title="Published series", log_y=True)


if __name__ == "__main__":
    save(beside(moved(), diverging(), columns=1), Path(__file__).parents[2] / "docs/measures/queue-fisher.svg")
