"""Kerg, Figure 3.1 with Table 5: transients and Fisher memory of lower triangular networks, exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.measures import fisher_memory
from mnemoscope.report import Headline
from mnemoscope.studies.machinery import CurvesOf, Holds, Row, RunSpec, Study, TableOf, declared, executor
from mnemoscope.theory.formulas.fisher import TABLE_5, kerg_matrix

__all__ = ["STUDY", "measure_matrix"]

_SIZE, _LAGS, _STARTS = 100, 150, 1000


@executor("kerg-triangular")
def measure_matrix(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return the memory curve of the first unit as source, and the size of states from starts on the unit sphere."""
    W = kerg_matrix(_SIZE, settings["alpha"], settings["beta"], settings["d"])
    found = fisher_memory(W, np.eye(_SIZE)[0])
    curve = np.zeros(_LAGS)
    curve[: min(_LAGS, len(found.curve))] = found.curve[:_LAGS]
    starts = np.random.default_rng(0).standard_normal((_SIZE, _STARTS))
    state, norms = starts / np.linalg.norm(starts, axis=0), []
    for _ in range(_LAGS):
        norms.append(float(np.linalg.norm(state, axis=0).mean()))
        state = W @ state
    return {"total": found.total, "digits": found.digits, "curve": curve.tolist(), "norms": norms}


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    return [RunSpec("kerg-triangular", dict(zip(("alpha", "beta", "d"), row, strict=True))) for row in TABLE_5]


def _rows(outcome: Any) -> list[Row]:
    given = outcome.spec.settings
    published = TABLE_5[given["alpha"], given["beta"], given["d"]]
    name = f"{given['alpha']:g}/{given['beta']:g}"
    half = 0.05 if published >= 10 else 0.005  # half a unit of the last digit that is printed
    more = {"network": name, "published": published, "half": half, "lags": list(range(_LAGS))}
    return [{**given, **outcome.summary, **more, "peak": max(outcome.summary["norms"])}]


def _headlines(rows: Sequence[Row]) -> tuple[Headline, ...]:
    right = sum(abs(row["total"] - row["published"]) <= row["half"] for row in rows)
    largest = max((row["total"] for row in rows), default=0.0)
    return (
        Headline(value=f"{right} of {len(rows)}", unit="rows", meaning="of Table 5 agree to the digits printed"),
        Headline(value=f"{largest:.4g}", unit="", meaning="largest total; a normal network has 1"),
    )


def _curves(name: str, title: str, y: str, y_title: str, d: float, **more: Any) -> CurvesOf:
    return CurvesOf(
        name=name, title=title, where={"d": d}, x="lags", y=y, by="network", x_title="steps t", y_title=y_title,
        log_y=True, points=False, decades=6,
        alt=f"{y_title} against time for six lower triangular matrices with diagonal {d:g}, by alpha and beta.",
        how="N = 100, noise 1, source the first unit; the memory curve is exact, also where the covariance has a "
        "condition "
        "number of 1e24. Norms: mean over 1000 starts on the unit sphere.", **more,
    )  # fmt: skip


_PAIRS = [f"{alpha:g}/{beta:g}" for beta in (0.0, 0.005) for alpha in (1.05, 1.0, 0.95)]

STUDY = declared(Study(
    name="kerg-fig-3-1",
    title="Memory that non-normal networks gain", source="Kerg, Figure 3.1 and Table 5 (app. A)",
    claim="Lower triangular interactions amplify states before they die out, and give a network with a single source "
    "far "
    "more Fisher memory than a normal one, whose total is 1; Table 5 lists the totals.",
    references=("kerg2019", "ganguli2008"),
    minutes={"smoke": 0.1, "laptop": 0.1, "paper": 0.1},
    runs=_runs, rows=_rows, headlines=_headlines,
    rules=(
        Holds(claim="A non-normal network holds more than a normal one: a total above 1", left="total", relation=">",
              right=1.0),
        Holds(claim="With alpha = 1.05 states grow before they die out", where={"alpha": 1.05}, left="peak",
              relation=">", right=1.0, names={"peak": "largest mean norm from starts of norm 1"}),
        Holds(claim="Table 5, diagonal 0: total Fisher memory", where={"d": 0.0}, left="total", relation="=",
              right="published", within="half", otherwise="published value wrong",
              names={"half": "half a unit of the last digit printed"}),
        Holds(claim="Table 5, diagonal 0.2: total Fisher memory", where={"d": 0.2}, left="total", relation="=",
              right="published", within="half", otherwise="published value wrong",
              names={"half": "half a unit of the last digit printed"}),
    ),
    displays=(
        _curves("memory-d0", "A chain remembers by its gain", "curve", "Fisher information J(t)", 0.0,
                section="Memory curves and transients",
                text=("Curves are named alpha/beta: below the diagonal, and in the rest of the lower triangle.",)),
        _curves("memory-d02", "With a diagonal it remembers more", "curve", "Fisher information J(t)", 0.2),
        _curves("transients", "States grow before they die out", "norms", "mean norm of the state", 0.0),
        TableOf(
            name="table-5", title="Total Fisher memory", section="Table 5, published and exact",
            columns={"alpha": "alpha", "beta": "beta", "diagonal": "d", "published": "published", "exact": "total",
                     "digits": "digits"},
            note="Where the diagonal is 0.2 the covariance is too ill-conditioned for the solver that was used.",
        ),
    ),
    entries={pair: pair for pair in _PAIRS},
    methods="Lower triangular matrices of 100 units with alpha below the diagonal, beta in the rest of the lower "
    "triangle "
    "and d on the diagonal; noise of variance 1 on every unit, source the first unit. Totals over all lags come from a "
    "square root of the covariance, in extended precision where digits are lost.",
    caveats=("Table 5 has alpha below the diagonal, Proposition 3.4.1 its square root: the letter has two meanings.",),
))  # fmt: skip
