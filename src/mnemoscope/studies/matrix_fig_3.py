"""Matrix, Figure 3: Fisher memory of a matrix network with one slot of state memory, exact beside published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.measures import queue_fisher_memory
from mnemoscope.report import Headline
from mnemoscope.studies.machinery import (
    CurvesOf,
    Holds,
    Outcome,
    Row,
    RunSpec,
    Study,
    TableOf,
    declared,
    executor,
    grid,
)
from mnemoscope.studies.matrix_fig_2 import LAGS, SIZES, normal_network, padded

__all__ = ["ENTRIES", "STUDY", "measure_queue", "queue_rows", "queue_runs"]

ENTRIES = {"published": "slot, published", "without": "no slot", "slot": "slot, exact", "both": "last two states"}
_TERMS = 20
_WEIGHT = 0.03  # the slot stays stable with every network drawn here; with weight 1 none is


@executor("matrix-queue-normal")
def measure_queue(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return totals and curves with one slot: the published series, and exactly with a weight that is stable."""
    U, V, W = normal_network(settings["N"], settings["seed"])
    found = queue_fisher_memory(U, V, W, weights=(_WEIGHT,))
    without = queue_fisher_memory(U, V, W, weights=(0.0,))
    published = queue_fisher_memory(U, V, W, weights=(1.0,), form="published", m_max=_TERMS)
    curves = {"published": published.curve, "without": without.curve, "slot": found.curve, "both": found.joint_curve}
    totals = {"published": published.total, "without": without.total, "slot": found.total, "both": found.joint_total}
    told = {"stable": published.stable, "diverges": published.diverges, "radius": published.radius}
    forms = {name: {"total": totals[name], "curve": padded(curve)} for name, curve in curves.items()}
    return {"forms": forms, **told}


def queue_runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    """Return a run for every size of the figure and three networks."""
    return grid("matrix-queue-normal", N=SIZES, seed=(0, 1, 2))


def queue_rows(outcome: Outcome) -> list[Row]:
    """Return a row for every form of the network."""
    given, found = outcome.spec.settings, outcome.summary
    common = {
        **given,
        "neurons": given["N"] ** 2,
        "lags": list(range(LAGS)),
        "plain": found["forms"]["without"]["total"],
    }
    common |= {"radius": found["radius"], "first": found["forms"]["without"]["curve"][0]}
    return [
        {**common, "form": form, **one, "at_zero": one["curve"][0], "sums": np.cumsum(one["curve"]).tolist()}
        for form, one in found["forms"].items()
    ]


def _headlines(rows: Sequence[Row]) -> tuple[Headline, ...]:
    published = [row["total"] for row in rows if row["form"] == "published"]
    return (
        Headline(value=f"{min(published, default=0):.2f} to {max(published, default=0):.2f}", unit="",
                 meaning="by the published formula, of 1 without memory"),
        Headline(value=f"{min((row['radius'] for row in rows), default=0):.2f}", unit="",
                 meaning="least spectral radius with a slot of weight 1: all are unstable"),
    )  # fmt: skip


STUDY = declared(Study(
    name="matrix-fig-3",
    title="What one slot of memory does to the memory curve", source="Matrix, Figure 3, Theorem 4",
    claim="One slot of state memory with weight 1 raises the Fisher memory curve of a normal matrix network.",
    references=("renanse2021", "ganguli2008"),
    minutes={"smoke": 0.1, "laptop": 0.1, "paper": 0.1},
    runs=queue_runs, rows=queue_rows, headlines=_headlines,
    rules=(
        Holds(claim="The slot raises the curve (the published formula at lag 0)", where={"form": "published"},
              left="at_zero", relation=">", right="first", otherwise="published value wrong",
              names={"at_zero": "J(0) with the slot", "first": "J(0) without memory"}),
        Holds(claim="The network with a slot of weight 1 has a stationary state", where={"form": "published"},
              left="radius", relation="<", right=1.0, otherwise="published value wrong",
              names={"radius": "spectral radius with the slot"}),
        Holds(claim="Ours: a slot only moves information between lags, the sum stays", where={"form": "slot"},
              left="total", relation="=", right="plain", within=1e-9, names={"plain": "the total without memory"}),
    ),
    displays=(
        CurvesOf(
            name="curves", title="One slot moves memory between lags", where={"N": 14, "seed": 0}, x="lags", y="curve",
            by="form", x_title="lag k (steps)", y_title="Fisher information J(k)", log_y=True, points=False, decades=6,
            section="Memory curves", text=("N = 14, 196 neurons: MAT-196 of the figure.",),
            alt="Fisher information against the lag with and without a slot of memory, by form.",
            how="Normal U and V with eigenvalues uniform on +-0.95, input of norm 1, unit noise. Published: Theorem 4 "
            "with its series summed to order 20. Exact: the stationary covariance of the companion network.",
        ),
        TableOf(name="totals", title="Capacities", section="Every network", words=("form",),
                columns={"N": "N", "seed": "seed", "form": lambda row: ENTRIES[row["form"]], "capacity": "total",
                         "J(0)": "at_zero"}),
    ),
    entries=ENTRIES,
    methods="Normal matrices of sizes 4 to 15 with eigenvalues uniform on +-0.95, three seeds. The published form is "
    "Theorem 4 (Eq. 40, reconstructed from Eq. 39) with one slot of weight 1; as that network has no stationary state, "
    "the exact curves have a slot of weight 0.03.",
    caveats=(
        "Equation 42 drops a time shift and its series diverges: what Figure 3 shows does not follow from the formula.",
        "The document's matrices are not given: sizes are those of its figure, eigenvalues are ours.",
    ),
))  # fmt: skip
