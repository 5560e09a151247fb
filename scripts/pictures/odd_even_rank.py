"""Draw docs/measures/odd-even-rank.svg: exact ranks of random equal cores by length, and TT-ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mnemoscope.measures.tensor_train.odd_even import odd_even_rank
from mnemoscope.report.chart import Chart, beside, lines, save
from mnemoscope.theory import attaining_cores, odd_even_bound


def cores(n: int, r: int, d: int) -> list[np.ndarray]:
    """Return random cores, the inner ones equal."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal((n, r)), *[rng.standard_normal((r, n, r))] * (d - 2), rng.standard_normal((r, n))]


def by_length() -> Chart:
    """Exact odd-even ranks for n = 4 features and r = 3, beside the construction and the published bound."""
    n, r, lengths = 4, 3, [2, 4, 6, 8, 10]
    series = {
        "random equal cores": (lengths, [odd_even_rank(cores(n, r, d)).rank for d in lengths]),
        "construction": (lengths, [odd_even_rank(attaining_cores(n, r, d)).rank for d in lengths]),
        "theorem's bound": (lengths, [odd_even_bound(n, r, d) for d in lengths]),
    }
    return lines(
        series,
        x="length d (vectors)",
        y="odd-even rank",
        title="Width that a shallow network needs, n = 4, r = 3",
        log_y=True,
        points=True,
    )


def main() -> None:
    """Write the picture."""
    ranks = odd_even_rank(cores(2, 9, 12)).plot()
    save(beside(by_length(), ranks), Path(__file__).parents[2] / "docs/measures/odd-even-rank.svg")


if __name__ == "__main__":
    main()
