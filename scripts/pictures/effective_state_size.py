"""Draw docs/measures/effective-state-size.svg: how much of the state of four networks is used, step by step."""

from __future__ import annotations

from pathlib import Path

import mnemoscope as ms
from mnemoscope.report.chart import lines, save

NETWORKS = ("rnn", "gru", "exprnn", "lru")


def main() -> None:
    """Write the picture."""
    series = {}
    for name in NETWORKS:
        found = ms.measures.effective_state_size(ms.nn.NetworkSpec(name, hidden_size=32).build(), horizon=64, cuts=21)
        print(name, found)
        series[name] = (found.steps, found.ranks)
    picture = lines(series, x="step i", y="effective state-size", title="Directions of the state in use, 32 units")
    save(picture, Path(__file__).parents[2] / "docs/measures/effective-state-size.svg")


if __name__ == "__main__":
    main()
