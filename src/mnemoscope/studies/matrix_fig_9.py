"""Matrix, Figure 9: the cost of a trained MatNTM by the length of a sequence and of an item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mnemoscope.studies import STUDIES
from mnemoscope.studies.machinery import CurvesOf, Holds, Outcome, Row, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.matrices import matrix_runs

__all__ = ["STUDY"]


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    return [*matrix_runs("matrix-copy", scale["copy"]), *matrix_runs("matrix-recall", scale["recall"])]


def _rows(outcome: Outcome) -> list[Row]:
    given, found = outcome.spec.settings, outcome.summary["longer"]
    name = {"matntm": "MatNTM", "matrixrnn": "MatrixRNN"}[given["network"]]
    copy = given["task"] == "matrix-copy"
    trained = given["task_settings"]["longest"] if copy else 2
    within = [loss for level, loss in zip(found["levels"], found["losses"], strict=True) if level <= trained]
    last = {"first": max(within), "last": found["losses"][-1]}
    return [{"task": given["task"], "network": name, "level": level, "loss": loss, "accuracy": 100 * score,
             "beyond": "yes" if level > trained else "no", "end": "yes" if level == found["levels"][-1] else "no",
             **last}
            for level, loss, score in zip(found["levels"], found["losses"], found["scores"], strict=True)]  # fmt: skip


_NAMES = {"last": "cost at the greatest length", "first": "the largest cost within the trained lengths",
          "network": "the network",
          "task": "the task", "end": "the greatest length"}  # fmt: skip


def _rises(task: str, claim: str) -> Holds:
    return Holds(claim=claim, left="last", relation=">", right="first", names=_NAMES, scaled=True,
                 where={"network": "MatNTM", "task": task, "end": "yes"})  # fmt: skip


def _panel(task: str, title: str, axis: str, **more: Any) -> CurvesOf:
    return CurvesOf(name=task, title=title, x="level", y="loss", by="network", x_title=axis,
                    y_title="binary cross entropy",
                    where={"task": task}, alt=f"{title}, one curve for each network.",
                    how="Mean over fresh sequences, all of that length; the network of the first seed, as trained.",
                    **more)  # fmt: skip


def _of(name: str, scale: str) -> Mapping[str, Any]:
    return STUDIES[name].settings(scale)


_SCALES: dict[str, dict[str, Any]] = {
    scale: {"copy": _of("matrix-fig-5", scale), "recall": _of("matrix-fig-7", scale)}
    for scale in ("smoke", "laptop", "paper")
}


def _table(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["network"] == "MatNTM"]


STUDY = declared(Study(
    name="matrix-fig-9",
    title="Longer sequences and items than were trained", source="Matrix, Figure 9", references=("renanse2021",),
    claim="The cost of a trained MatNTM grows with the length of the sequence to copy, and with the length of an item "
    "to recall.",
    scales=_SCALES, minutes={"smoke": 0.4, "laptop": 6, "paper": 13000}, trained=True, runs=_runs, rows=_rows,
    rules=(_rises("matrix-copy", "The cost grows with the length of the sequence"),
           _rises("matrix-recall", "The cost grows with the length of an item")),
    displays=(
        _panel("matrix-copy", "Cost by the length of the sequence", "matrices to copy", section="Copy"),
        _panel("matrix-recall", "Cost by the length of an item", "matrices of an item", section="Recall"),
        TableOf(name="table", title="MatNTM", section="Every length", words=("task", "beyond training"), select=_table,
                columns={
            "task": "task", "length": "level", "beyond training": "beyond", "cost": "loss",
            "right bits, %": "accuracy"}),
    ),
    entries={"MatNTM": "MatNTM", "MatrixRNN": "MatrixRNN"}, subjects=2,
    cut="the networks of matrix-fig-5 and matrix-fig-7 at this scale",
    methods="Networks as they were trained for matrix-fig-5 and matrix-fig-7, tested on {copy[tests]} fresh sequences "
    "of every length {copy[levels]} (copy) and with items of {recall[levels]} matrices (recall; trained with 2).",
    caveats=("Runs are those of matrix-fig-5 and matrix-fig-7: nothing is trained twice.",
             "MatrixRNN is not in the published figure.",
             ("Our rule counts an item of one matrix as within the trained lengths, though training has two alone. At "
              "laptop scale the cost is 0.77 at one, 0.17 at two, 0.93 and 0.61 at three and four: it grows beyond the "
              "trained length, and below it; the rule misses by the latter.")),
))  # fmt: skip
