"""Kerg, Figure 4.1, appendix B Figures 8 and 9: attention of trained networks to their past states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.studies import STUDIES
from mnemoscope.studies.machinery import HeatMapOf, Holds, Outcome, Row, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.kerg import attentive_facts, attentive_run

__all__ = ["STUDY"]


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    copy, denoise = scale["copy"], scale["denoise"]
    cases = (("copy", copy["trained"], copy), ("denoise", denoise["lengths"][0], denoise))
    return [attentive_run("MemRNN", task, level, own) for task, level, own in cases] + [
        attentive_run("RelRNN", task, level, own, relevant=0) for task, level, own in cases
    ]


def _rows(outcome: Outcome) -> list[Row]:
    found, facts = outcome.summary["attention"], attentive_facts(outcome)
    shown = "full" if facts["network"] == "MemRNN" else "buffer"
    case, steps = f"{facts['task']}, {shown}", len(found["recall"])
    symbols = outcome.spec.settings["task_settings"].get("symbols", 10)
    early = sum(found["recall"][: symbols if facts["task"] == "copy" else steps - 2 * symbols])
    facts |= {"network": case, "case": case, "memory": shown, "learned": 100 * outcome.summary["test_score"][0]}
    numbers = {name: found[name] for name in ("relevant", "depth", "kappa", "largest")}
    result = {**facts, "kind": "result", "steps": steps, "early": early, "share": found["relevant"] / steps, **numbers}
    return [result, {**facts, "kind": "map", "cell": found["cell"], "weights": found["map"]}]


_NAMES = {"early": "share of attention on the steps with symbols while recalling", "task": "the task",
          "memory": "the memory",
          "share": "share of states that are relevant events", "kind": ""}  # fmt: skip
_FULL = {"kind": "result", "memory": "full"}


def _map(case: str, title: str, **more: Any) -> HeatMapOf:
    return HeatMapOf(name=case.replace(", ", "-"), title=title, x="cell", y="cell", value="weights",
                     x_title="state of step i", y_title="step t", value_title="weight", where={"kind": "map",
                         "case": case},
                     alt=f"{title}: weights of attention over steps and past states, as colours.",
                     how="One sequence, the trained network; where cells hold several weights, the largest.",
                     **more)  # fmt: skip


_SCALES = ("smoke", "laptop", "paper")

STUDY = declared(Study(
    name="kerg-fig-4-1",
    title="Few states matter when few events do", source="Kerg, Figure 4.1; appendix B Figures 8 and 9",
    references=("kerg2020",),
    claim="Trained on the copy and denoise tasks, full attention goes to few past states, those at which symbols were "
    "shown.",
    scales={scale: {"copy": STUDIES["kerg-table-4-1"].settings(scale),
                    "denoise": STUDIES["kerg-table-4-2"].settings(scale)}
            for scale in _SCALES},
    minutes={"smoke": 0.2, "laptop": 2, "paper": 8000}, trained=True, runs=_runs, rows=_rows,
    rules=(
        Holds(claim="Attention is sparse: fewer than half of the states are relevant events", left="share",
              relation="<",
              right=0.5, where=_FULL, names=_NAMES, scaled=True),
        Holds(claim="While copying, most attention goes to the steps with symbols", left="early", relation=">",
              right=0.5,
              where=_FULL | {"task": "copy"}, names=_NAMES, scaled=True),
    ),
    displays=(
        _map("copy, full", "Copy task, full attention", section="Attention to all states"),
        _map("denoise, full", "Denoise task, full attention"),
        _map("copy, buffer", "Copy task, attention to the buffer alone", section="Attention to the last states alone"),
        _map("denoise, buffer", "Denoise task, attention to the buffer alone"),
        TableOf(name="table", title="Relevant events", section="Numbers", words=("case",), where={"kind": "result"},
                columns={
            "case": "case", "steps": "steps", "accuracy, %": "learned", "relevant events": "relevant", "kappa": "kappa",
            "depth": "depth", "on symbols at recall": "early", "largest": "largest"}),
    ),
    entries={f"{task}, {shown}": f"{task}, {shown}" for task in ("copy", "denoise") for shown in ("full", "buffer")},
    subjects=4, cut="the MemRNNs of kerg-table-4-1 and kerg-table-4-2 at this scale, and RelRNN with rho = 0 trained "
    "alike",
    methods="MemRNN attends to all its past states; RelRNN with rho = 0 to the last 10 alone. A relevant event is a "
    "state that some later step gives more than 0.1 [o]; numbers are means over 8 sequences. Settings as in "
    "kerg-table-4-1 (copy) and kerg-table-4-2 (denoise).",
    caveats=("The table says how far a network had learned its task: attention before that says little.",
        ("The rule on copying looks at the five steps of recall alone, which is narrower than the published picture: "
         "during the delay MemRNN, at 100%, gives the steps with symbols 93% of its attention (sequence shown), at "
         "recall 13%, when its state has read them for 20 steps. So the picture is the document's, and the rule was "
         "ours. Recurrence alone can carry that far: with the last ten states RelRNN copies too, at 71% on denoise."),
    ),
))  # fmt: skip
