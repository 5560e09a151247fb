"""Draw docs/measures/cp-rank.svg: how well sums of products fit a tensor train, by their number."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mnemoscope.measures.tensor_train.cp import cp_rank
from mnemoscope.report.chart import save


def main() -> None:
    """Write the picture."""
    rng = np.random.default_rng(0)
    inner = [rng.standard_normal((2, 2, 2))] * 4
    cores = [rng.standard_normal((2, 2)), *inner, rng.standard_normal((2, 2))]
    save(cp_rank(cores, restarts=1).plot(), Path(__file__).parents[2] / "docs/measures/cp-rank.svg")


if __name__ == "__main__":
    main()
