"""Kerg, appendix B Figures 5 and 7: full attention on text and on digits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.studies.machinery import HeatMapOf, Holds, Outcome, Row, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.kerg import digits, text

__all__ = ["STUDY"]


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    found = []
    for task in ("text", "digits"):
        # Windows of their own: the memory starts empty in each.
        data = {**text(scale), "data": "fixed"} if task == "text" else {**digits(scale), "task": "smnist"}
        options = {"core": "orth-rnn", "nonlinearity": "tanh"}
        looks = {"attention": {"sequences": 4}}
        course = {
            "network": "memrnn",
            "options": options,
            "optimizer": "adam",
            "clip_norm": 1.0,
            "seeds": [0],
            "looks": looks,
        }
        found.append(RunSpec("fit", {**course, **scale[task], **data}))
    return found


def _rows(outcome: Outcome) -> list[Row]:
    found, given = outcome.summary["attention"], outcome.spec.settings
    task = "digits" if given["task"] == "smnist" else "text"
    steps = len(found["recall"])
    facts = {"network": task, "task": task}
    numbers = {name: found[name] for name in ("relevant", "depth", "kappa", "largest")}
    share = outcome.summary["test_loss"][0] / outcome.summary["baseline"]
    result = {**facts, "kind": "result", "steps": steps, "share": found["relevant"] / steps, "loss": share, **numbers}
    return [result, {**facts, "kind": "map", "cell": found["cell"], "weights": found["map"]}]


def _map(task: str, title: str, **more: Any) -> HeatMapOf:
    return HeatMapOf(name=task, title=title, x="cell", y="cell", value="weights", x_title="state of step i",
                     y_title="step t",
                     value_title="weight", where={"kind": "map", "task": task},
                     alt=f"{title}: weights of attention over steps and past states, as colours.",
                     how="One sequence, the trained network; where cells hold several weights, the largest.",
                     **more)  # fmt: skip


_NAMES = {"kappa": "states that one step attends to", "steps": "the steps", "kind": ""}

STUDY = declared(Study(
    name="kerg-b-fig-5",
    title="Dense attention on text and digits", source="Kerg, appendix B Figures 5 and 7", references=("kerg2020",),
    claim="On text and on digits attention is dense: no small set of past states receives it.",
    scales={
        "smoke": {"stand_in": True, "text": {"hidden_size": 8, "iterations": 3, "batch_size": 4, "validate_every": 3,
                                             "lr": 1e-3,
                                             "task_settings": {"length": 8}},
                  "digits": {"hidden_size": 8, "iterations": 3, "batch_size": 20, "validate_every": 3, "lr": 1e-3,
                             "task_settings": {"side": 4, "recipe": "kerg", "pixels_per_step": 4}}},
        "laptop": {"text": {"hidden_size": 64, "iterations": 200, "batch_size": 32, "validate_every": 200, "lr": 2e-3,
                            "task_settings": {"length": 50}},
                   "digits": {"hidden_size": 64, "iterations": 300, "batch_size": 100, "validate_every": 300,
                              "lr": 1e-3,
                              "task_settings": {"side": 14, "recipe": "kerg", "pixels_per_step": 7}}},
        "paper": {"text": {"hidden_size": 1024, "epochs": 100, "batch_size": 10, "lr": 3e-4,
                           "task_settings": {"length": 125}},
                  "digits": {"hidden_size": 400, "epochs": 200, "batch_size": 10, "lr": 3e-4,
                             "task_settings": {"recipe": "kerg", "pixels_per_step": 7}}},
    },
    minutes={"smoke": 0.2, "laptop": 3, "paper": 200000}, trained=True, runs=_runs, rows=_rows,
    rules=(Holds(claim="Attention is dense: the largest weight of a step is below 0.5 in the mean", left="largest",
                 relation="<", right=0.5, where={"kind": "result"}, names={"largest": "largest weight of a step, in "
                 "the mean",
                                                                           **_NAMES}, scaled=True),),
    displays=(
        _map("text", "Text", section="Attention to all states"), _map("digits", "Digits, 7 pixels a step"),
        TableOf(name="table", title="Relevant events", section="Numbers", words=("task",), where={"kind": "result"},
                columns={
            "task": "task", "steps": "steps", "loss / baseline": "loss", "relevant events": "relevant",
            "kappa": "kappa",
            "dependency depth": "depth", "largest weight, mean": "largest"}),
    ),
    entries={"text": "text", "digits": "digits"}, subjects=2,
    cut="64 units, windows of 50 characters (published: 125), digits of 14 x 14 pixels, 200 and 300 updates, one seed",
    methods="MemRNN with full attention, Adam, gradients clipped at norm 1. Text: {text}. Digits, row by row, 7 pixels "
    "a step: {digits}. A relevant event is a state that some later step gives more than 0.1 [o].",
    caveats=("The text is Penn Treebank where its files are there, else Tiny Shakespeare.",
             "The published pictures have no numbers: what counts as dense is ours."),
))  # fmt: skip
