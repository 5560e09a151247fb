"""Kerg, chapter 5 Figure 5, appendix C Figures 1, 2 and 10: relations that training never showed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.studies.machinery import BarsOf, Holds, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.relational import ahead, relational_rows, relational_runs

__all__ = ["STUDY"]

_TASKS = (
    "rmts-3",
    "same-different-6",
    "identity-rules-4",
    "identity-rules-4-missing",
    "identity-rules-4-flipped",
    "identity-rules-4-flipped-missing",
    "dist-n",
    "dist-n-restricted",
)
_NETWORKS = ("CoRelNet", "ESBN", "Transformer", "CoRelNet-T", "PrediNet")


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    return relational_runs(scale, [(task, {}) for task in scale["tasks"]], scale["networks"])


STUDY = declared(Study(
    name="kerg-relational-enhanced",
    title="Rules that training never showed",
    source="Kerg, ch. 5 Figure 5; app. C Figures 1, 2, 10", references=("kerg2022",),
    claim="CoRelNet generalises to unseen relations where the Transformer does not, and loses when two base rules are "
    "missing.",
    scales={
        "smoke": {"tasks": ("rmts-3",), "networks": ("CoRelNet", "Transformer"), "iterations": 3, "seeds": 1,
                  "test_size": 50},
        "laptop": {"tasks": _TASKS, "networks": _NETWORKS[:3], "iterations": 400, "seeds": 1, "test_size": 1000},
        "paper": {"tasks": _TASKS, "networks": _NETWORKS, "iterations": 5000, "seeds": 10, "test_size": 10000},
    },
    minutes={"smoke": 0.3, "laptop": 14, "paper": 5000},
    trained=True, runs=_runs, rows=relational_rows,
    rules=(
        ahead("CoRelNet is ahead of the Transformer on patterns of triplets", network="CoRelNet",
              other="Transformer", margin=20.0, task="rmts-3"),
        Holds(claim="CoRelNet completes rules of four that it never saw",
              where={"network": "CoRelNet", "task": "identity-rules-4"}, left="mean", relation=">", right=90.0,
              names={"mean": "mean accuracy"}, scaled=True),
        Holds(claim="Without ABAA and ABAB it loses", left="mean", relation="<", right=90.0,
              where={"network": "CoRelNet", "task": "identity-rules-4-missing"}, scaled=True,
              names={"mean": "mean accuracy"}),
    ),
    displays=(
        BarsOf(name="accuracy", title="Accuracy on unseen relations", group="task", y="accuracy", by="network",
               x_title="task", y_title="test accuracy (%)",
               alt="Test accuracy on tasks whose test has other relations than training, one bar for each network.",
               how="Mean over seeds, lines from the least to the largest, at the hardest split of the symbols.",
               section="Unseen relations"),
        TableOf(name="table", title="Test accuracies", section="Every network", words=("task", "network"), columns={
            "task": "task", "network": "network", "accuracy, mean": "mean",
            "least": lambda row: min(row["accuracy"]), "largest": lambda row: max(row["accuracy"])}),
    ),
    entries={name: name for name in _NETWORKS}, subjects=len(_NETWORKS),
    cut="{iterations} steps of 5000, seeds: {seeds} of 10, fewer networks",
    methods="Networks were trained for {iterations} steps (published: 5000) on fresh batches of the published sizes, "
    "Adam at 5e-4, {seeds} seeds (published: 10), at the hardest split; {test_size} test examples have new symbols and "
    "new rules.",
    caveats=(
        "Below paper scale training is shorter than published, with fewer networks.",
        ("At laptop scale rules of four are cut off while they are learned: the rule is met with more steps, as "
         "`mnemoscope study run kerg-relational-enhanced --set iterations=1600 --set \"tasks=('identity-rules-4',)\" "
         "--set \"networks=('CoRelNet',)\"` shows (97.6% at seed 0, 52.1% after 400). So it is the scale "
         "that is missed; one seed says nothing of the spread."),
    ),
))  # fmt: skip
