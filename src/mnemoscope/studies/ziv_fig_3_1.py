"""Ziv, Figure 3.1: the longest delay and the most bits that networks of depths 1 to 3 copy, at equal parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.studies.machinery import BarsOf, CurvesOf, Outcome, Ranked, Row, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.ziv import early, limits, ziv_training

__all__ = ["STUDY"]

_DEPTHS = (1, 2, 3)
_HARD = {"delay": 0, "symbols": 30, "alphabet": 32}
_EASY = {"delay": 0, "symbols": 10, "alphabet": 8}
_NAMES = {"L": "depth", "limits": "limit", "early": "accuracy after a quarter of the iterations", "size": "parameters"}


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    common = ziv_training(scale, task="copying", target=0.995)
    first = scale["sizes"][0]
    fits = [
        RunSpec("fit", {**common, "task_settings": task, "parameters": first, "count": count, "num_layers": depth})
        for task, counts in ((_HARD, scale["counts"]), (_EASY, ("all",)))
        for count in counts
        for depth in _DEPTHS
        if count == "all" or depth > 1
    ]
    limits = [
        RunSpec("capacity", {**common, "task_settings": _HARD, "parameters": size, "count": "all", "num_layers": depth,
                             "axis": axis, "grid": list(scale[axis]), "criterion": 0.99, "failures": scale["failures"]})
        for size in scale["sizes"]
        for depth in _DEPTHS
        for axis in ("delay", "symbols")
    ]  # fmt: skip
    return [*fits, *limits]


def _rows(outcome: Outcome) -> list[Row]:
    given, found = outcome.spec.settings, outcome.summary
    row = {"L": given["num_layers"], "size": given["parameters"], "n": found["width"], "count": given["count"]}
    row |= {"parameters": found["parameters"]}
    if outcome.spec.kind == "fit":
        easy = given["task_settings"]["symbols"] == _EASY["symbols"]
        more = {"accuracy": found["curve_score"], "steps": found["curve_steps"], "early": early(given, found)}
        return [row | more | {"what": "easy" if easy else "hard", "score": found["test_score"], "took": found["steps"]}]
    panel, unit = ("longest delay", 1) if given["axis"] == "delay" else ("most bits", 5)
    each = [None if own is None else unit * own for own in limits(given, found)]
    limit = None if found["limit"] is None else unit * found["limit"]
    shown = {"limit": limit, "limits": each, "shown": limit or 0, "tried": ", ".join(found["levels"])}
    return [row | {"what": panel} | shown]


def _more(panel: str, words: str) -> Ranked:
    return Ranked(claim=f"A deeper network of as many parameters copies {words}", column="limits", by="L",
                  groups=_DEPTHS, cases=("size",), where={"what": panel}, names=_NAMES)  # fmt: skip


def _curves(what: str, title: str) -> CurvesOf:
    return CurvesOf(
        name=f"accuracy-{what}", title=title, where={"what": what, "count": "all"}, x="steps", y="accuracy", by="L",
        key="L{}", x_title="steps of the optimiser", y_title="data accuracy on validation", points=False,
        alt="Accuracy on validation along training, one curve for each depth.",
        how="Equal numbers of parameters, all counted; a training ends at 99.5% and keeps that value.",
    )  # fmt: skip


STUDY = declared(Study(
    name="ziv-fig-3-1",
    title="What depth adds to copying at equal parameters", source="Ziv, Figure 3.1", references=("ziv2020",),
    claim="Of networks with equally many parameters the deeper ones copy through longer delays, and copy more bits.",
    scales={
        "smoke": {"sizes": (2**13,), "counts": ("all",), "delay": (0,), "symbols": (30,), "rates": (1e-3,), "seeds": 1,
                  "iterations": 2, "validate_every": 1, "held_out": (10, 10), "failures": 1},
        "laptop": {"sizes": (2**13,), "counts": ("all",), "delay": (0, 50), "symbols": (30, 40), "rates": (1e-3,),
                   "seeds": 1, "iterations": 7000, "validate_every": 500, "held_out": (1000, 2000), "failures": 1},
        "paper": {"sizes": (2**13, 2**14, 2**15, 2**16), "counts": ("all", "published"),
                  "delay": (*range(0, 1000, 50), *range(1000, 1501, 100)), "symbols": tuple(range(30, 201, 5)),
                  "rates": (1e-3, 1e-4, 1e-5), "seeds": 3, "iterations": 200_000, "validate_every": 1000,
                  "held_out": (5000, 10_000), "failures": 2},
    },
    minutes={"smoke": 0.3, "laptop": 13, "paper": 500_000}, trained=True, runs=_runs, rows=_rows,
    rules=(
        _more("longest delay", "through a longer delay (30 symbols of 32 letters)"),
        _more("most bits", "more bits (no delay)"),
        Ranked(claim="Ours: it also learns the same task in fewer steps", column="early", by="L", groups=_DEPTHS,
               where={"what": "hard", "count": "all"}, names=_NAMES),
    ),
    displays=(
        _curves("hard", "30 symbols of 32 letters, no delay"),
        _curves("easy", "10 symbols of 8 letters, no delay"),
        BarsOf(name="limits", title="Longest delay and most bits", group="what", y="shown", by="L", key="L{}",
               select=lambda rows: [row for row in rows if "limit" in row and row["size"] == 2**13], section="Limits",
               x_title="", y_title="steps, bits", alt="Longest delay and most bits, one bar for each depth.",
               how="The hardest level of the grid with an accuracy above 99% on test; 0 also where no level had it."),
        TableOf(name="table", title="Limits of every network", words=("what", "levels tried"), columns={
            "what": "what", "parameters": "parameters", "depth": "L", "width": "n", "limits": "limit",
            "levels tried": "tried"}, select=lambda rows: [row for row in rows if "limit" in row]),
    ),
    entries={f"L{depth}": f"depth {depth}" for depth in _DEPTHS}, subjects=3,
    methods="scoRNNs of depths 1, 2, 3 with {sizes} parameters (all of them counted, readout included) learned to copy "
    "30 symbols of 32 letters: RMSprop with decay 0.9, fresh batches of 128, rates {rates} by validation, a tenth of "
    "it for recurrent matrices, at most {iterations} iterations (published: 200,000), {seeds} seeds. Delays "
    "{delay} and lengths {symbols} were tried in ascending order; a level is mastered above 99% data accuracy on test.",
    cut="sizes {sizes} of 2^13 to 2^16; {iterations} iterations of 200,000; rates {rates}; delays {delay}, lengths "
    "{symbols}; {seeds} seed(s)",
    caveats=(
        "A limit is that of learning within these iterations, not of what a network can express.",
        "Where the hardest level tried was mastered, the limit is at least that.",
    ),
))  # fmt: skip
