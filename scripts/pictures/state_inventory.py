"""Draw docs/measures/state-inventory.svg: what five networks carry, and what of it is read."""

from __future__ import annotations

from pathlib import Path

import mnemoscope as ms
from mnemoscope.report import Bars, Figure, Series
from mnemoscope.report.chart import save
from mnemoscope.report.vega import chart

NETWORKS = ("rnn", "lstm", "lru", "slstm", "mlstm")


def main() -> None:
    """Write the picture."""
    found = {name: ms.measures.state_inventory(ms.nn.NetworkSpec(name, hidden_size=16).build()) for name in NETWORKS}
    for name, each in found.items():
        print(name, each)
    places = [float(i) for i in range(len(NETWORKS))]
    rows = {
        "carried": [each.size for each in found.values()],
        "ever read": [each.ever_read for each in found.values()],
        "not droppable": [each.size - len(each.droppable) for each in found.values()],
    }
    series = [Series(entry=name, x=places, y=[float(n) for n in row]) for name, row in rows.items()]
    bars = Bars(groups=NETWORKS, series=series, x_title="network of 16 units", y_title="real numbers")
    figure = Figure(title="What is carried, and what of it is needed", drawing=bars)
    save(chart(figure), Path(__file__).parents[2] / "docs/measures/state-inventory.svg")


if __name__ == "__main__":
    main()
