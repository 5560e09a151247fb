"""Draw docs/measures/separation-conjecture.svg: how often each bound is attained over 81 sizes."""

from __future__ import annotations

from pathlib import Path

from mnemoscope.measures.separation.conjecture import separation_conjecture
from mnemoscope.report.chart import save


def main() -> None:
    """Write the picture."""
    lab = separation_conjecture((2, 3, 4), (2, 3, 4), (2, 4, 6), (1, 2, 3), draws=2)
    save(lab.plot(), Path(__file__).parents[2] / "docs/measures/separation-conjecture.svg")


if __name__ == "__main__":
    main()
