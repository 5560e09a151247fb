"""Kerg, Figure 3.3, appendix A Figures 2 and 3: what nnRNN has learned on three tasks."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from mnemoscope.studies import SCALES, STUDIES
from mnemoscope.studies.machinery import (
    CurvesOf,
    HeatMapOf,
    Holds,
    Outcome,
    Ranked,
    Row,
    RunSpec,
    Study,
    TableOf,
    declared,
)
from mnemoscope.studies.machinery.kerg import orthogonal_run

__all__ = ["STUDY"]

_TASKS = {"copy": "copy", "pmnist": "digits"}


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    own = {**scale["text"], "task_settings": {"length": scale["text"]["windows"][0]}}
    copied = [orthogonal_run("nnRNN", task, scale[task]) for task in ("copy", "pmnist")]
    return [*copied, orthogonal_run("nnRNN", "150", own)]


def _rows(outcome: Outcome) -> list[Row]:
    found = outcome.summary["theta"]
    task = _TASKS.get(outcome.spec.settings["task"], "text")
    facts, seeds = {"task": task, "network": task}, found["every"]
    gamma = mean(seeds["gamma"])
    rows: list[Row] = [{**facts, "kind": "result", "lower": seeds["lower"], "narrow": seeds["narrow"], "gamma": gamma,
                        "off": abs(gamma - 1), "delay_line": found["subdiagonals"][0]}]  # fmt: skip
    rows.append({**facts, "kind": "map", "cell": found["cell"], "theta": found["map"]})
    rows.append({**facts, "kind": "angles", "angle": found["angle_middles"], "share": found["angles"]})
    below = found["subdiagonals"]
    rows.append({**facts, "kind": "subdiagonals", "k": list(range(1, len(below) + 1)), "mean": below})
    if "gradients" in outcome.summary:
        norms = outcome.summary["gradients"]
        rows.append({**facts, "kind": "gradients", "back": norms["back"], "log_norm": norms["log_norms"]})
    return rows


_NAMES = {"lower": "root mean square of the lower triangle", "off": "distance of the mean gamma from 1",
          "task": "the task",
          "narrow": "alignment of the angles", "network": "the task", "kind": ""}  # fmt: skip
_RESULT = {"kind": "result"}


def _map(task: str, title: str, **more: Any) -> HeatMapOf:
    return HeatMapOf(name=f"theta-{task}", title=title, x="cell", y="cell", value="theta", x_title="column",
                     y_title="row",
                     value_title="|Theta|", where={"kind": "map", "task": task}, alt=f"{title}: |Theta| as colours.",
                     how="Theta of the Schur form that is trained; where cells hold several entries, the largest.",
                     **more)  # fmt: skip


def _of(name: str, scale: str) -> Mapping[str, Any]:
    return STUDIES[name].settings(scale)


STUDY = declared(Study(
    name="kerg-fig-3-3",
    title="Where nnRNN stays normal and where it does not", source="Kerg, Figure 3.3; appendix A Figures 2 and 3",
    references=("kerg2019",),
    claim="Trained to copy, Theta has its weight on the diagonal; trained on text, in the lower triangle too, with "
    "aligned angles; permuted digits are between.",
    scales={scale: {**_of("kerg-fig-3-2", scale), "text": _of("kerg-table-3-1", scale)} for scale in SCALES},
    minutes={"smoke": 0.2, "laptop": 2.5, "paper": 30000}, trained=True, runs=_runs, rows=_rows,
    rules=(
        Ranked(claim="The lower triangle is empty for copying and filled for text", column="lower", by="network",
               groups=("copy", "text"), where=_RESULT, names=_NAMES),
        Ranked(claim="Permuted digits are between copying and text", column="lower", by="network",
               groups=("copy", "digits", "text"), where=_RESULT, names=_NAMES),
        Holds(claim="The mean gamma is about 1 for copying", left="off", relation="<", right=0.01, names=_NAMES,
              scaled=True,
              where=_RESULT | {"task": "copy"}),
        Ranked(claim="Angles are aligned for text and near uniform for copying", column="narrow", by="network",
               groups=("copy", "text"), where=_RESULT, margin=0.1, names=_NAMES),
    ),
    displays=(
        CurvesOf(name="subdiagonals", title="Mean size of the k-th subdiagonal", x="k", y="mean", by="network",
                 x_title="k",
                 y_title="mean |entry|", log_y=True, decades=6, where={"kind": "subdiagonals"},
                 section="Below the diagonal",
                 alt="Mean absolute entry of each subdiagonal of Theta against its number, one curve for each task.",
                 how="The first subdiagonal holds the sines of the 2 x 2 blocks in every second entry, as published."),
        _map("copy", "Copying", section="Theta"), _map("text", "Text"), _map("digits", "Permuted digits"),
        CurvesOf(name="angles", title="Angles of the rotations", x="angle", y="share", by="network", x_title="|theta|",
                 y_title="share of the blocks", where={"kind": "angles"}, section="Angles",
                 alt="Histogram of the angles of the 2 x 2 blocks, one curve for each task.", how="16 bins from 0 to "
                 "pi."),
        CurvesOf(name="gradients", title="Gradients through a window of text", x="back", y="log_norm", by="network",
                 x_title="steps back", y_title="ln |dL/dh|", where={"kind": "gradients"}, section="Gradients",
                 alt="Logarithm of the gradient's norm at the state against steps back, after training on text.",
                 how="Mean over four windows of the training text, after training."),
        TableOf(name="table", title="Learned forms", section="All tasks", words=("task",), where=_RESULT, columns={
            "task": "task", "lower triangle, root mean square": lambda row: mean(row["lower"]), "mean gamma": "gamma",
            "alignment of the angles": lambda row: mean(row["narrow"]), "first subdiagonal": "delay_line"}),
    ),
    entries={"text": "text", "digits": "permuted digits", "copy": "copy"}, subjects=3,
    cut="the nnRNNs of kerg-fig-3-2 and kerg-table-3-1 at this scale",
    methods="The nnRNNs of kerg-fig-3-2 (copy, permuted digits) and kerg-table-3-1 (text), with T within the 2 x 2 "
    "blocks as published. Alignment is |mean exp(2i|theta|)|: 0 for angles uniform on 0..pi, 1 for one angle. "
    "Published mean gamma: 0.958 (text), 1 (copy).",
    caveats=("T starts at zero, and its penalty is 100 times stronger for text than for copying.",
             "The text is Penn Treebank where its files are there, else Tiny Shakespeare."),
))  # fmt: skip
