"""Ziv, section 1.2.2: soft constraints, full capacity and scoRNN on the tasks of the thesis."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from mnemoscope.studies.machinery import BarsOf, CurvesOf, Outcome, Ranked, Row, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.ziv import ziv_training

__all__ = ["STUDY"]

_NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "start": ("orth-rnn", {"nonlinearity": "modrelu"}),
    "soft": ("soft-orth", {"mode": "penalty"}),
    "full": ("full-urnn", {}),
    "scornn": ("scornn", {}),
}
_NAMES = {"accuracy": "test accuracy", "task": "the task", "network": "network"}


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    found = []
    for task, own in scale["tasks"].items():
        common = ziv_training({**scale, "iterations": own["iterations"]}, task=task, task_settings=own["settings"])
        common |= {"hidden_size": scale["width"], "num_layers": 1}
        found += [RunSpec("fit", {**common, "network": name, "options": more}) for name, more in _NETWORKS.values()]
    return found


def _rows(outcome: Outcome) -> list[Row]:
    given, found = outcome.spec.settings, outcome.summary
    key = next(key for key, one in _NETWORKS.items() if one == (given["network"], given["options"]))
    row = {"network": key, "task": given["task"], "parameters": found["parameters"], "rates": found["chosen_rate"]}
    scores = [0.0 if score is None else score for score in found["test_score"]]
    return [row | {"accuracy": scores, "steps": found["curve_steps"], "curve": found["curve_score"]}]


def _before(first: str, second: str, words: str) -> Ranked:
    return Ranked(claim=words, column="accuracy", by="network", groups=(first, second), cases=("task",), names=_NAMES)


def _curves(task: str) -> CurvesOf:
    return CurvesOf(
        name=f"training-{task}", title=f"{task.capitalize()} along training", x="steps", y="curve", by="network",
        x_title="steps of the optimiser", y_title="accuracy on validation", points=False, where={"task": task},
        alt=f"Accuracy on {task} along training, one curve for each network.",
        how="Each seed with the rate that was best on validation; mean over seeds, band from the least to the largest.",
    )  # fmt: skip


_SIMILARITY = {"length": 60, "symbols": 30, "alphabet": 32}
STUDY = declared(Study(
    name="ziv-section-1-2-2",
    title="How firmly orthogonality is held", source="Ziv, section 1.2.2",
    references=("ziv2020", "helfrich2018", "wisdom2016", "vorontsov2017"),
    claim="On every task of the thesis soft constraints do worse than the full-capacity network, and that worse than "
    "scoRNN.",
    scales={
        "smoke": {"width": 8, "rates": (1e-3,), "seeds": 1, "validate_every": 2, "held_out": (10, 10), "tasks": {
            "copying": {"settings": {"delay": 0, "symbols": 4, "alphabet": 4}, "iterations": 4},
            "start-end-similarity": {"settings": {"length": 8, "symbols": 4, "alphabet": 4}, "iterations": 4}}},
        "laptop": {"width": 76, "rates": (1e-3, 1e-4), "seeds": 2, "validate_every": 250, "held_out": (1000, 2000),
                   "tasks": {
                       "copying": {"settings": {"delay": 0, "symbols": 30, "alphabet": 32}, "iterations": 2000},
                       "start-end-similarity": {"settings": {"length": 16, "symbols": 4, "alphabet": 8},
                                                "iterations": 3000}}},
        "paper": {"width": 76, "rates": (1e-3, 1e-4, 1e-5), "seeds": 5, "validate_every": 1000,
                  "held_out": (5000, 10_000), "tasks": {
                      "copying": {"settings": {"delay": 0, "symbols": 30, "alphabet": 32}, "iterations": 200_000},
                      "start-end-similarity": {"settings": _SIMILARITY, "iterations": 200_000}}},
    },
    minutes={"smoke": 0.1, "laptop": 8, "paper": 6000}, trained=True, runs=_runs, rows=_rows,
    rules=(
        _before("soft", "scornn", "scoRNN is better than a penalty for leaving the orthogonal matrices"),
        _before("soft", "full", "So is the full-capacity network"),
        _before("full", "scornn", "scoRNN is better than the full-capacity network"),
    ),
    displays=(
        BarsOf(name="accuracy", title="Accuracy on test", group="task", y="accuracy", by="network", x_title="task",
               y_title="test accuracy", section="Accuracy by constraint",
               alt="Test accuracy on two tasks, one bar for each way to keep matrices orthogonal.",
               how="Mean over seeds, lines from the least to the largest."),
        _curves("copying"),
        _curves("start-end-similarity"),
        TableOf(name="table", title="Every network", words=("task", "network"), columns={
            "task": "task", "network": "network", "parameters": "parameters",
            "accuracy, mean": lambda row: mean(row["accuracy"]), "least": lambda row: min(row["accuracy"]),
            "largest": lambda row: max(row["accuracy"])}),
    ),
    entries={"start": "orthogonal at the start", "soft": "penalty", "full": "full capacity", "scornn": "scoRNN"},
    subjects=4,
    methods="Networks of {width} units and one layer, modReLU, were trained as the thesis trains (RMSprop, decay 0.9, "
    "batches of 128, rates {rates} by validation, a tenth of it for orthogonal maps), {seeds} seeds; tasks and "
    "iterations: {tasks}. The penalty is 0.01 |V^T V - I|^2.",
    cut="iterations and the length of similarity; {seeds} seeds; rates {rates}",
    caveats=(
        "The document gives no numbers for this claim, neither widths nor strengths of penalties: those are ours.",
        ("Orthogonal maps learn at a tenth of the rate, as the thesis has it for scoRNN, free matrices at the whole "
         "one; after so few iterations that alone may order them. scoRNN of one layer is at 0.72 to 0.78 of the "
         "copying task after 7,000 iterations, 0.85 after 14,000 (ziv-fig-3-1), so that its 0.43 here is no end."),
        "Widths are equal, so that the free matrices have more parameters than the orthogonal ones.",
    ),
))  # fmt: skip
