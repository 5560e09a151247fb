"""Matrix, Figures 5 and 6: learning curves on the matrix copy task, and how the memory is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.report import Mark
from mnemoscope.studies.machinery import CurvesOf, HeatMapOf, Holds, Outcome, Row, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.kerg import curve_rows, result_row
from mnemoscope.studies.machinery.matrices import matrix_runs

__all__ = ["STUDY"]


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    return matrix_runs("matrix-copy", scale)


def _rows(outcome: Outcome) -> list[Row]:
    name = {"matntm": "MatNTM", "matrixrnn": "MatrixRNN"}[outcome.spec.settings["network"]]
    found = [*curve_rows(outcome, "loss", network=name), {**result_row(outcome, network=name)}]
    heads = outcome.summary.get("heads")
    if heads is None:
        return found
    found[-1] = {**found[-1], "same": heads["same"], "sharp": heads["sharp"], "distinct": heads["distinct"],
                 "length": outcome.spec.settings["task_settings"]["longest"]}  # fmt: skip
    found += [{"kind": head, "step_size": 1, "weights": heads[head]} for head in ("write", "read")]
    return found


_NAMES = {"share": "test loss over that of guessing", "network": "the network", "kind": "",
          "length": "the matrices",
          "same": "share of matrices read where they were written", "distinct": "slots written to"}  # fmt: skip


def _head(kind: str, title: str, **more: Any) -> HeatMapOf:
    return HeatMapOf(name=kind, title=title, x="step_size", y="step_size", value="weights", x_title="slot",
                     y_title="step",
                     value_title="weight", where={"kind": kind}, alt=f"{title}, over steps and slots, as colours.",
                     how="One sequence of the greatest length, the network of the first seed, its most used slots.",
                     **more)  # fmt: skip


STUDY = declared(Study(
    name="matrix-fig-5",
    title="A memory of matrices learns to copy", source="Matrix, Figures 5 and 6", references=("renanse2021",
        "graves2014"),
    claim="MatNTM learns the matrix copy task, MatrixRNN does not; MatNTM writes every matrix to a slot of its own and "
    "reads the slots in the same order.",
    scales={
        "smoke": {"iterations": 4, "validate_every": 2, "seeds": 1, "tests": 8, "memory": 8, "rate": 1e-3,
                  "task_settings": {"longest": 2}, "levels": (2, 3)},
        "laptop": {"iterations": 1200, "validate_every": 50, "seeds": 2, "tests": 100, "memory": 20, "rate": 1e-3,
                   "task_settings": {"longest": 5}, "levels": (1, 2, 3, 4, 5, 6, 8, 10, 15)},
        "paper": {"iterations": 200000, "validate_every": 1000, "seeds": 5, "tests": 1000, "memory": 120,
                  "task_settings": {"longest": 20}, "levels": (1, 5, 10, 15, 20, 25, 30, 40, 50)},
    },
    minutes={"smoke": 0.2, "laptop": 1, "paper": 5000}, trained=True, runs=_runs, rows=_rows,
    rules=(
        Holds(claim="MatNTM learns the copy task", left="share", relation="<", right=0.1, names=_NAMES, scaled=True,
              where={"kind": "result", "network": "MatNTM"}),
        Holds(claim="MatrixRNN fails to learn it", left="share", relation=">=", right=0.1, names=_NAMES, scaled=True,
              where={"kind": "result", "network": "MatrixRNN"}),
        Holds(claim="Every matrix is written to a slot of its own", left="distinct", relation="=", right="length",
              names=_NAMES,
              scaled=True, where={"kind": "result", "network": "MatNTM"}),
        Holds(claim="Matrices are read from where they were written, in the same order", left="same", relation=">=",
              right=0.9, names=_NAMES, scaled=True, where={"kind": "result", "network": "MatNTM"}),
    ),
    displays=(
        CurvesOf(name="curves", title="Learning to copy matrices", x="step", y="loss", by="network", x_title="updates",
                 y_title="binary cross entropy", points=False, where={"kind": "curve"}, section="Learning curves",
                 marks=lambda rows: (Mark(kind="y", value=0.5545, label="guessing"),),
                 alt="Binary cross entropy on the matrix copy task against updates, one curve for each network.",
                 how="Mean over the seeds on validation, band from the least to the largest."),
        _head("write", "Where MatNTM writes", section="Use of the memory"),
        _head("read", "Where MatNTM reads"),
        TableOf(name="table", title="Tests", section="Both networks", words=("network",), where={"kind": "result"},
                columns={
            "network": "network", "parameters": "parameters", "loss": "mean_loss", "loss / guessing": "share",
            "right bits, %": "mean_score", "read where written": "same"}),
    ),
    entries={"MatNTM": "MatNTM", "MatrixRNN": "MatrixRNN"}, subjects=2,
    cut="sequences of at most {task_settings[longest]} matrices (published: 20), {iterations} updates (200,000), "
    "{seeds} seeds (5), {memory} slots (120)",
    methods="Networks of Matrix's Table 1, batches of 16, gradients clipped at 10 entry by entry. At paper scale "
    "RMSprop at 1e-4 with momentum 0.9; below it Adam at 1e-3, as training is far shorter. {iterations} updates, "
    "{seeds} seeds, sequences {task_settings}, {memory} slots. MatNTM gives out logits; MatrixRNN's last state H in "
    "(-1, 1) is read as the probability (1 + H)/2 [o], so that it can be sure of a bit with the published number of "
    "parameters.",
    caveats=("Below paper scale sequences are shorter, so that MatrixRNN has less to remember.",
             "The published curves are pictures only: no published numbers stand beside ours."),
))  # fmt: skip
