"""Ziv, Figure 3.2: the longest sequences whose two halves networks of depths 1 to 3 compare, at equal parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.studies.machinery import BarsOf, CurvesOf, Outcome, Ranked, Row, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.ziv import early, limits, ziv_training

__all__ = ["STUDY"]

_DEPTHS = (1, 2, 3)
_NAMES = {"L": "depth", "limits": "length", "size": "parameters", "early": "accuracy after a quarter of the iterations"}


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    common = ziv_training(scale, task="start-end-similarity", target=0.995, count="all")
    task = {"symbols": scale["symbols"], "alphabet": scale["alphabet"]}
    search = {"axis": "length", "grid": list(scale["lengths"]), "criterion": 0.99, "failures": scale["failures"]}
    first = {**task, "length": scale["lengths"][0]}
    size = scale["sizes"][0]
    fits = [
        RunSpec("fit", {**common, "task_settings": first, "parameters": size, "num_layers": depth}) for depth in _DEPTHS
    ]
    return fits + [
        RunSpec("capacity", {**common, **search, "task_settings": first, "parameters": size, "num_layers": depth})
        for size in scale["sizes"]
        for depth in _DEPTHS
    ]


def _rows(outcome: Outcome) -> list[Row]:
    given, found = outcome.spec.settings, outcome.summary
    row = {"L": given["num_layers"], "size": given["parameters"], "n": found["width"]}
    row |= {"parameters": found["parameters"]}
    if outcome.spec.kind == "fit":
        curve = {"accuracy": found["curve_score"], "steps": found["curve_steps"], "early": early(given, found)}
        return [row | curve | {"what": "training", "score": found["test_score"], "took": found["steps"]}]
    shown = {"shown": found["limit"] or 0, "tried": ", ".join(found["levels"]), "group": f"{given['parameters']:,}"}
    row |= {"ended": found["limit"] == given["grid"][-1]}
    return [row | shown | {"what": "limit", "limit": found["limit"], "limits": limits(given, found),
                           "scores": found["levels"]}]  # fmt: skip


STUDY = declared(Study(
    name="ziv-fig-3-2",
    title="What depth adds to comparing start and end", source="Ziv, Figure 3.2", references=("ziv2020",),
    claim="Of networks with equally many parameters the deeper ones say how alike start and end are of longer "
    "sequences: depth 3 of 1350 steps, depth 1 of 270.",
    scales={
        "smoke": {"sizes": (2**10,), "symbols": 2, "alphabet": 4, "lengths": (8,), "rates": (1e-3,), "seeds": 1,
                  "iterations": 2, "validate_every": 1, "held_out": (10, 10), "failures": 1},
        "laptop": {"sizes": (2**12,), "symbols": 4, "alphabet": 4, "lengths": (16, 32, 64, 128), "rates": (1e-3,),
                   "seeds": 1, "iterations": 8000, "validate_every": 500, "held_out": (1000, 2000), "failures": 1},
        "paper": {"sizes": (2**14, 2**15, 2**16, 2**17), "symbols": 30, "alphabet": 32,
                  "lengths": tuple(range(60, 1501, 30)), "rates": (1e-3, 1e-4, 1e-5), "seeds": 3,
                  "iterations": 200_000, "validate_every": 1000, "held_out": (5000, 10_000), "failures": 2},
    },
    minutes={"smoke": 0.2, "laptop": 10, "paper": 500_000}, trained=True, runs=_runs, rows=_rows,
    rules=(
        Ranked(claim="A deeper network of as many parameters compares longer sequences", column="limits", by="L",
               groups=_DEPTHS, cases=("size",), where={"what": "limit"}, ended="ended", names=_NAMES),
        Ranked(claim="Ours: it also learns the shortest ones in fewer steps", column="early", by="L",
               groups=_DEPTHS, where={"what": "training"}, names=_NAMES),
    ),
    displays=(
        CurvesOf(name="accuracy", title="The shortest sequences, along training", where={"what": "training"},
                 x="steps", y="accuracy", by="L", key="L{}", x_title="steps of the optimiser",
                 y_title="accuracy on validation", points=False, section="Start and end",
                 alt="Accuracy on validation along training, one curve for each depth.",
                 how="Equal numbers of parameters, all counted; a training ends at 99.5% and keeps that value."),
        BarsOf(name="limits", title="Longest sequences compared", where={"what": "limit"}, group="group", y="shown",
               by="L", key="L{}", x_title="parameters", y_title="longest length T",
               alt="Longest sequence length with over 99% accuracy, one bar for each depth.",
               how="The longest of the grid with an accuracy above 99% on test; 0: none of them."),
        TableOf(name="table", title="Limits of every network", where={"what": "limit"}, words=("lengths tried",),
                columns={"parameters": "parameters", "depth": "L", "width": "n", "longest": "limit",
                         "lengths tried": "tried", "last accuracy": lambda row: min(list(row["scores"].values())[-1])}),
    ),
    entries={f"L{depth}": f"depth {depth}" for depth in _DEPTHS}, subjects=3,
    methods="scoRNNs of depths 1, 2, 3 with {sizes} parameters (all of them counted) learned to tell whether none, "
    "half or all of {symbols} letters of {alphabet} are the same in both halves of a sequence: RMSprop with decay 0.9, "
    "fresh batches of 128, rates {rates} by validation, at most {iterations} iterations (published: 200,000), {seeds} "
    "seeds. Lengths {lengths} were tried in ascending order; one is mastered above 99% accuracy on test.",
    cut="{symbols} symbols of {alphabet} letters instead of 30 of 32, {sizes} parameters instead of 2^14 to 2^17, "
    "lengths {lengths}, {iterations} iterations of 200,000, rates {rates}, {seeds} seed(s)",
    caveats=(
        "A limit is that of learning within these iterations, not of what a network can express.",
        "Where the longest length tried was mastered, the limit is at least that.",
        ("The ranking here is one of speed: 4 letters of 4 are 8 bits, for which no depth lacks channels, and the "
         "wider network of one layer learns them first. The published 30 letters of 32 are 150 bits."),
    ),
))  # fmt: skip
