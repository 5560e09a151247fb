"""Draw docs/measures/mode-parity.svg: how far the fastest form of four networks is from their steps."""

from __future__ import annotations

from pathlib import Path

import mnemoscope as ms
from mnemoscope.report.chart import lines, save

LENGTHS = (1, 4, 16, 64, 256, 1024)


def main() -> None:
    """Write the picture."""
    series = {}
    for name in ("lru", "gla", "deltanet", "mamba"):
        network = ms.nn.NetworkSpec(name, input_size=2, hidden_size=16).build()
        found = ms.measures.mode_parity(network, lengths=LENGTHS, dtypes=("float32",))
        print(name, found)
        series[f"{name}, {found.forms[-1]}"] = (found.lengths, found.outputs[0, -1].clip(1e-9))
    picture = lines(
        series, x="steps", y="largest difference", title="Forms and steps, float32", log_x=True, log_y=True, points=True
    )
    save(picture, Path(__file__).parents[2] / "docs/measures/mode-parity.svg")


if __name__ == "__main__":
    main()
