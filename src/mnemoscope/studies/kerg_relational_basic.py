"""Kerg, chapter 5 Figure 3, appendix C Figures 6 and 13: the four basic relational tasks by held-out symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.studies.machinery import BarsOf, CurvesOf, Holds, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.relational import ahead, relational_rows, relational_runs

__all__ = ["STUDY"]

_TASKS = {"same-different": 98, "rmts": 95, "dist3": 95, "identity-rules": 95}
_NETWORKS = ("CoRelNet", "CoRelNet-T", "ESBN", "Transformer", "LSTM", "PrediNet", "RN", "MNM", "NTM")


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    cases = [(task, {"held_out": most if m == "most" else m}) for m in scale["m"] for task, most in _TASKS.items()]
    return relational_runs(scale, cases, scale["networks"])


def _hardest(row: Mapping[str, Any]) -> bool:
    return bool(row["m"] == _TASKS.get(row["task"]))


STUDY = declared(Study(
    name="kerg-relational-basic",
    title="Relations between symbols that training never showed",
    source="Kerg, ch. 5 Figure 3; app. C Figures 6, 13", references=("kerg2022", "webb2021"),
    claim="CoRelNet answers the four basic tasks for symbols it has not seen, where Transformer and LSTM fail.",
    scales={
        "smoke": {"m": ("most",), "networks": ("CoRelNet", "LSTM"), "iterations": 4, "seeds": 1, "test_size": 100},
        "laptop": {"m": ("most",), "networks": _NETWORKS, "iterations": 600, "seeds": 2, "test_size": 2000},
        "paper": {"m": (0, 50, 85, "most"), "networks": _NETWORKS, "iterations": 5000, "seeds": 10,
                  "test_size": 10000},
    },
    minutes={"smoke": 0.3, "laptop": 40, "paper": 5000},
    trained=True, runs=_runs, rows=relational_rows,
    rules=(
        Holds(claim="CoRelNet is above 95% on all four tasks", where={"network": "CoRelNet"}, left="mean",
              relation=">", right=95.0, names={"mean": "mean accuracy", "network": "the network"}, scaled=True),
        ahead("CoRelNet is far ahead of the Transformer", network="CoRelNet", other="Transformer", margin=20.0),
        ahead("CoRelNet is far ahead of the LSTM", network="CoRelNet", other="LSTM", margin=20.0),
    ),
    displays=(
        BarsOf(name="accuracy", title="Accuracy at the hardest split", group="task", y="accuracy", by="network",
               x_title="task", y_title="test accuracy (%)",
               select=lambda rows: [row for row in rows if _hardest(row)],
               alt="Test accuracy on four relational tasks, one bar for each network.",
               how="Mean over seeds, lines from the least to the largest. Every seed has its own split of the symbols.",
               section="Symbols that training never showed"),
        CurvesOf(name="held-out", title="Accuracy by the number of held-out symbols", x="m", y="accuracy", by="network",
                 x_title="held-out symbols m", y_title="test accuracy (%)", where={"task": "rmts"},
                 alt="Test accuracy on relational match to sample against the number of held-out symbols.",
                 how="Mean over seeds of match to sample, band from the least to the largest."),
        TableOf(name="table", title="Test accuracies", section="Every network", words=("task", "network"), columns={
            "task": "task", "held out": "m", "network": "network", "accuracy, mean": "mean",
            "least": lambda row: min(row["accuracy"]), "largest": lambda row: max(row["accuracy"]),
        }),
    ),
    entries={name: name for name in _NETWORKS}, subjects=1,
    cut="{iterations} steps of 5000, {seeds} seeds of 10, the hardest split alone",
    methods="Networks were trained for {iterations} steps (published: 5000) on fresh batches of 96 examples, Adam at "
    "5e-4, {seeds} seeds (published: 10), each with its own random split of 100 symbols; the test showed only symbols "
    "that training had not shown, {test_size} examples (published: 10,000).",
    caveats=(
        "Below paper scale training is shorter than published, and only the hardest split is run.",
        "The published values are given as pictures only: none stands beside ours.",
        ("The time is by the clock, beside much other work; by timed steps the runs take 1.8 hours of one core, 53 "
         "minutes of two (an estimate: mnemoscope study plan kerg-relational-basic)."),
    ),
))  # fmt: skip
