"""Draw docs/measures/remembrance.svg: how far back the predictions of five networks look."""

from __future__ import annotations

from pathlib import Path

import mnemoscope as ms
from mnemoscope.report.chart import lines, save

NETWORKS = ("rnn", "lstm", "mamba", "lru", "orth-rnn")


def main() -> None:
    """Write the picture."""
    series = {}
    for name in NETWORKS:
        found = ms.measures.effective_remembrance(ms.nn.NetworkSpec(name, hidden_size=32).build())
        print(name, found)
        series[name] = (found.lengths, found.curve / found.unrelated)
    picture = lines(
        series,
        x="steps k of the past that are left",
        y="total variation, as a share of unrelated",
        title="How far back predictions look, 32 units, initial weights",
        log_x=True,
    )
    save(picture, Path(__file__).parents[2] / "docs/measures/remembrance.svg")


if __name__ == "__main__":
    main()
