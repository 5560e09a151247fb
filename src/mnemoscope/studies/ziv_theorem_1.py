"""Ziv, Theorem 1 and Conjecture 1: Start-End separation ranks of recurrent arithmetic circuits, exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mnemoscope.report import Headline, Mark
from mnemoscope.studies.machinery import CurvesOf, Holds, Outcome, Row, RunSpec, Study, TableOf, declared, grid
from mnemoscope.theory.formulas.separation import (
    conjecture_bound,
    separation_lower,
    separation_theorem,
    separation_upper,
)

__all__ = ["STUDY"]


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    axes = {"M": scale["sizes"], "R": scale["sizes"], "T": scale["horizons"], "L": (1, 2, 3), "seed": scale["seeds"]}
    specs = grid("separation-rank", **axes)
    return sorted(specs, key=lambda spec: (spec.settings["M"] ** spec.settings["T"], spec.settings["L"]))


def _rows(outcome: Outcome) -> list[Row]:
    M, R, T, L = (outcome.spec.settings[name] for name in "MRTL")
    bounds = {"lower": separation_lower(M, R, T, L), "shallow": min(R, M ** (T // 2))}
    bounds |= {"upper": min(separation_upper(M, R, T, L), *outcome.summary["shape"])}
    bounds |= {"theorem": separation_theorem(M, R, T, 1), "formula": conjecture_bound(M, R, T, 1)}
    return [{**outcome.spec.settings, **outcome.summary, **bounds}]


def _widest(rows: list[Row]) -> list[Row]:
    size = max((row["M"] for row in rows), default=0)
    return [row for row in rows if row["M"] == size == row["R"]]


def _bounds(rows: Sequence[Row]) -> tuple[Mark, ...]:
    names = {2: "Theorem 1, depth 2", 3: "Conjecture 1, depth 3"}
    found = {depth: sorted({(row["T"], row["lower"]) for row in rows if row["L"] == depth}) for depth in names}
    return tuple(
        Mark(kind="xy", label=names[depth], x=[T for T, _ in points], y=[bound for _, bound in points])
        for depth, points in found.items()
    )


def _headlines(rows: Sequence[Row]) -> tuple[Headline, ...]:
    counts = (
        (len(rows), "circuits", "measured in exact arithmetic"),
        (sum(row["rank"] < row["lower"] for row in rows), "exceptions", "to Theorem 1 and Conjecture 1"),
        (sum(row["float_rank"] != row["rank"] for row in rows), "wrong", "ranks when computed in float64 instead"),
    )
    return tuple(Headline(value=f"{count:,}", unit=unit, meaning=meaning) for count, unit, meaning in counts)


def _holds(claim: str, left: str, relation: Any, right: str, **more: Any) -> Holds:
    names = {"lower": "the bound", "upper": "the bound", "shallow": "min(R, M^(T/2))", "L": "depth"}
    names |= {"formula": "the formula at depth 1", "theorem": "Theorem 1"}
    return Holds(claim=claim, left=left, relation=relation, right=right, names=names, **more)


STUDY = declared(Study(
    name="ziv-theorem-1",
    title="Depth and the memory of arithmetic circuits",
    source="Ziv, Theorem 1 and Conjecture 1",
    claim="The Start-End separation rank of a recurrent arithmetic circuit is min(R, M^(T/2)) at depth 1, at least "
    "mc(min(M, R), T/2) at depth 2, and by conjecture at least min(mc(min(M, R), mc(T/2, L-1)), M^(T/2)) beyond, "
    "for almost all weights.",
    references=("levine2017", "ziv2020"),
    scales={
        "smoke": {"sizes": (2,), "horizons": (2, 4), "seeds": (0,)},
        "laptop": {"sizes": (2, 3, 4), "horizons": (2, 4, 6, 8), "seeds": (0, 1, 2)},
        "paper": {"sizes": (2, 3, 4), "horizons": (2, 4, 6, 8, 10, 12), "seeds": (0, 1, 2)},
    },
    minutes={"smoke": 0.05, "laptop": 0.5, "paper": 90},
    runs=_runs, rows=_rows, headlines=_headlines,
    rules=(
        _holds("Theorem 1, depth 2: at least mc(min(M, R), T/2)", "rank", ">=", "lower", where={"L": 2}),
        _holds("Theorem 1, depth 1: exactly min(R, M^(T/2))", "rank", "=", "shallow", where={"L": 1}),
        _holds("Conjecture 1, depth 3: at least the printed bound", "rank", ">=", "lower", where={"L": 3}),
        _holds("The formula of Conjecture 1 coincides with Theorem 1 at depth 1", "formula", "=", "theorem",
               where={"L": 1}, otherwise="published value wrong"),
        _holds("Ours: at most prod mc(R, mc(T/2, L-l)) and prod mc(min(M, R), mc(j, L-1)), capped by the grid",
               "rank", "<=", "upper"),
    ),
    displays=(
        CurvesOf(
            name="rank-by-horizon", title="Deeper circuits tie the start of a sequence to its end in more ways",
            select=_widest, x="T", y="rank", by="L", key="L{}", x_title="horizon T", y_title="separation rank",
            log_y=True, middle="median", marks=_bounds, section="Rank against the horizon",
            text=("Depth 1 stays at rank R; deeper circuits grow with T, up to the M^(T/2) starts of the grid.",),
            alt="Exact separation rank against the horizon for the widest circuits, one curve per depth.",
            how="Rank of the grid of outputs, starts by ends, over all one-hot sequences, computed modulo large primes "
            "with the weights as exact rational numbers. Dotted: the lower bounds of Theorem 1 and Conjecture 1.",
        ),
        TableOf(
            name="ranks", title="Start-End separation ranks", section="Every case", group=("M", "R", "T", "L"),
            columns={"M": "M", "R": "R", "T": "T", "depth": "L", "lower bound": "lower", "rank": "rank",
                     "upper bound": "upper", "float64 rank": "float_rank"},
            note="Ranks over the seeds: one number where all agree. Bounds: Theorem 1 to depth 2, Conjecture 1 at 3.",
        ),
    ),
    entries={"L3": "depth 3", "L2": "depth 2", "L1": "depth 1"},
    methods="Recurrent arithmetic circuits with M and R of {sizes}, T of {horizons} and depths 1 to 3 were drawn with "
    "seeds {seeds} from the default initialisation; the rank of the matrix of outputs at the last step, first half of "
    "the inputs by second half, over all one-hot input sequences was computed modulo primes of 61 bits or more, the "
    "weights taken as the exact rational values of their floats.",
    caveats=(
        "Templates are one-hot vectors, which cap every rank at M^(T/2); more templates can only raise it.",
        "A conjecture that holds on all cases tried is not proved.",
    ),
))  # fmt: skip
