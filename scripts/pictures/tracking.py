"""Draw docs/measures/tracking.svg: eigenvalues of the transitions of four networks along driven trajectories."""

from __future__ import annotations

from pathlib import Path

import mnemoscope as ms
from mnemoscope.report import Figure, Mark, Plane
from mnemoscope.report.chart import save
from mnemoscope.report.vega import chart

NETWORKS = {
    "mamba": ("mamba", {"hidden_size": 8, "order": 4}),
    "deltanet, negative eigenvalues": ("deltanet", {"hidden_size": 16, "heads": 2, "negative_eigenvalues": True}),
    "lru": ("lru", {"hidden_size": 32}),
    "birnn": ("birnn", {"hidden_size": 16}),
}


def main() -> None:
    """Write the picture."""
    points = {}
    for label, (name, options) in NETWORKS.items():
        found = ms.measures.tracking_gate(ms.nn.NetworkSpec(name, input_size=2, **options).build())
        print(label, found)
        points[label] = found.eigenvalues.ravel()[:400].tolist()
    rim = Mark(kind="circle", value=1.0, label="unit circle")
    figure = Figure(
        title="Eigenvalues of the transitions", drawing=Plane(points=points, title="eigenvalues", marks=(rim,))
    )
    save(chart(figure), Path(__file__).parents[2] / "docs/measures/tracking.svg")


if __name__ == "__main__":
    main()
