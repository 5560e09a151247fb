"""Matrix, Figure 4: capacity of a matrix network with one slot of state memory, exact beside published."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.report import Headline
from mnemoscope.studies.machinery import CurvesOf, Holds, Row, Study, TableOf, declared
from mnemoscope.studies.matrix_fig_3 import ENTRIES, queue_rows, queue_runs

__all__ = ["STUDY"]


def _headlines(rows: Sequence[Row]) -> tuple[Headline, ...]:
    pairs = (("slot", "with a slot"), ("both", "of the last two states together"))
    totals = [(name, [row["total"] for row in rows if row["form"] == form]) for form, name in pairs]
    return tuple(
        Headline(value=f"{max(found, default=0):.6g}", unit="", meaning=f"largest exact capacity {name}")
        for name, found in totals
    )


STUDY = declared(Study(
    name="matrix-fig-4",
    title="Whether one slot multiplies a network's memory", source="Matrix, Figure 4",
    claim="With one slot of state memory the capacity of a normal matrix network, which is below 1 without it, grows "
    "several times.",
    references=("renanse2021", "ganguli2008"),
    minutes={"smoke": 0.1, "laptop": 0.1, "paper": 0.1},
    runs=queue_runs, rows=queue_rows, headlines=_headlines,
    rules=(
        Holds(claim="The slot raises the capacity (the published formula)", where={"form": "published"}, left="total",
              relation=">", right="plain", otherwise="published value wrong",
              names={"plain": "the capacity without memory"}),
        Holds(claim="The slot raises the capacity (exactly, where it is stable)", where={"form": "slot"}, left="total",
              relation=">", right=1.001, otherwise="published value wrong"),
        Holds(claim="Ours: the last two states together hold twice as much", where={"form": "both"}, left="total",
              relation="=", right=2.0, within=1e-9),
    ),
    displays=(
        CurvesOf(
            name="sums", title="The sum stays at 1 with a slot", where={"N": 14, "seed": 0}, x="lags", y="sums",
            by="form", x_title="lag k (steps)", y_title="sum of J up to lag k", points=False,
            section="Partial sums", text=("N = 14, 196 neurons: MAT-196 of the figure.",),
            alt="Sum of the Fisher information up to a lag, with and without a slot of memory, by form.",
            how="Normal U and V with eigenvalues uniform on +-0.95, input of norm 1, unit noise; see matrix-fig-3.",
        ),
        CurvesOf(
            name="by-size", title="No size changes it", x="neurons", y="total", by="form", x_title="neurons N^2",
            y_title="capacity", alt="Capacity against the number of neurons, by form.",
            how="Mean over three networks, band from the least to the largest.",
        ),
        TableOf(name="totals", title="Capacities", section="Every network", words=("form",),
                columns={"N": "N", "seed": "seed", "form": lambda row: ENTRIES[row["form"]], "capacity": "total"}),
    ),
    entries=ENTRIES,
    methods="The networks and formulas of matrix-fig-3, whose runs this study shares; capacities are sums over all "
    "lags.",
    caveats=("trace(J^s) is N^2 with or without a slot: what one input gains, another loses.",),
))  # fmt: skip
