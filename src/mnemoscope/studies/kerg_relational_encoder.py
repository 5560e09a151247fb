"""Kerg, chapter 5 Figures 4 and 6, appendix C Figures 4, 8, 11, 12: random encoders, and colours that say nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.studies.machinery import BarsOf, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.relational import ahead, relational_rows, relational_runs

__all__ = ["STUDY"]

_TASKS = {"same-different": 98, "rmts": 95, "dist3": 95, "identity-rules": 95}
_UNSEEN = ("rmts-3", "identity-rules-4")
_NETWORKS = (
    "CoRelNet",
    "CoRelNet random encoder",
    "ESBN",
    "ESBN random encoder",
    "CoRelNet-T",
    "CoRelNet-T random encoder",
)


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    names = tuple(_TASKS)[: scale["tasks"]]
    plain: list[tuple[str, Mapping[str, Any]]] = [(task, {"held_out": _TASKS[task]}) for task in names]
    plain += [(task, {}) for task in _UNSEEN[: scale["unseen"]]]
    coloured = [(task, {"held_out": _TASKS[task], "colour": "spurious"}) for task in names]
    separated: list[tuple[str, Mapping[str, Any]]] = [("separated-inputs", {})]
    learned = scale["networks"][::2] if len(scale["networks"]) > 1 else scale["networks"]
    return relational_runs(scale, plain, scale["networks"]) + relational_runs(scale, coloured + separated, learned)


STUDY = declared(Study(
    name="kerg-relational-encoder",
    title="Encoders that never learn, and colours that say nothing",
    source="Kerg, ch. 5 Figures 4, 6; app. C Figures 4, 8, 11, 12", references=("kerg2022",),
    claim="A random encoder is nearly as good as a learned one; a spurious colour on every panel hurts.",
    scales={
        "smoke": {"tasks": 1, "unseen": 0, "networks": ("CoRelNet", "CoRelNet random encoder"), "iterations": 3,
                  "seeds": 1, "test_size": 50},
        "laptop": {"tasks": 4, "unseen": 2, "networks": _NETWORKS[:2], "iterations": 500, "seeds": 3,
                   "test_size": 1000},
        "paper": {"tasks": 4, "unseen": 2, "networks": _NETWORKS, "iterations": 5000, "seeds": 10,
                  "test_size": 10000},
    },
    minutes={"smoke": 0.3, "laptop": 14, "paper": 6000},
    trained=True, runs=_runs, rows=relational_rows,
    rules=(
        ahead("A random encoder is close to a learned one", network="CoRelNet random encoder",
              other="CoRelNet", margin=-5.0),
    ),
    displays=(
        BarsOf(name="accuracy", title="Learned and random encoders", group="task", y="accuracy", by="network",
               x_title="task", y_title="test accuracy (%)",
               alt="Test accuracy with learned and random encoders, plain and coloured.",
               how="Mean over seeds, lines from the least to the largest, at the hardest split.", section="Encoders"),
        TableOf(name="table", title="Test accuracies", section="Every network", words=("task", "network"), columns={
            "task": "task", "network": "network", "accuracy, mean": "mean",
            "least": lambda row: min(row["accuracy"]), "largest": lambda row: max(row["accuracy"])}),
    ),
    entries={name: name for name in _NETWORKS}, subjects=len(_NETWORKS),
    cut="{iterations} steps of 5000, {seeds} seeds of 10, fewer networks",
    methods="Networks were trained for {iterations} steps (published: 5000), Adam at 5e-4, {seeds} seeds (published: "
    "10), at the hardest split. A random encoder is drawn once and never trained; gain and shift of the normalisation "
    "are.",
    caveats=("Below paper scale training is shorter than published, with fewer networks.",),
))  # fmt: skip
