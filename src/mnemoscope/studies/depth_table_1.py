"""Depth, Tables 1 and 2: the Long Range Arena by S4 of several depths and one number of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from mnemoscope.studies.machinery import CurvesOf, Outcome, Ranked, Row, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.arena import CONFIGURATIONS, DEPTHS, arena_data, network

__all__ = ["STUDY"]


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    course = {"readout": "mean", "optimizer": "adamw", "weight_decay": 0.05, "lr_state_space": 1e-3}
    course |= {"schedule": "cosine", "warmup": 0.1, "seeds": list(range(scale["seeds"]))}
    found = []
    for name, own in CONFIGURATIONS.items():
        given = scale["tasks"].get(name, {"epochs": own.epochs, "batch_size": own.batch})
        data = {"task": own.task} if scale.get("files") else arena_data(own.task, scale)
        for depth in scale["depths"]:
            sizes = network(name, depth, scale.get("widths", own.widths)[depth], scale.get("order"))
            found.append(RunSpec("fit", {**sizes, **course, "lr": own.rate, **given, **data}))
    return found


def _rows(outcome: Outcome) -> list[Row]:
    given, found = outcome.spec.settings, outcome.summary
    task = {"smnist": "scifar"}.get(given["task"], given["task"])
    name = next(name for name, own in CONFIGURATIONS.items() if own.task == task)
    read = f"drawn {'texts' if task == 'retrieval' else 'pictures'}" if given.get("stand_in") else given["task"]
    depth = given["num_layers"]
    row = {"network": name, "L": depth, "H": given["hidden_size"], "parameters": found["parameters"], "read": read}
    scores = [0.0 if score is None else score for score in found["test_score"]]
    return [row | {"accuracy": scores, "published": CONFIGURATIONS[name].published[DEPTHS.index(depth)]}]


def _gains(task: str, claim: str, **more: Any) -> Ranked:
    names = {"accuracy": "test accuracy", "L": "depth", "network": "the task"}
    return Ranked(claim=claim, column="accuracy", by="L", groups=(2, 6), where={"network": task}, names=names, **more)


def _cut(iterations: int, batch: int, few: int, *settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return smaller tasks by name, without validation: what is tested is the last step's, where rates are zero."""
    course = {"iterations": iterations, "validate_every": 0}
    found = {name: {**course, "task_settings": own} for name, own in zip(CONFIGURATIONS, settings, strict=True)}
    sizes = {"Pathfinder": few, "Images": batch, "ListOps": batch, "Retrieval": few}
    found["ListOps"] |= {"data": "fresh", "test_size": 10 * iterations}
    return {name: {**own, "batch_size": sizes[name]} for name, own in found.items()}


STUDY = declared(Study(
    name="depth-table-1",
    title="Depth and the Long Range Arena", source="Depth, Tables 1 and 2",
    references=("lizaire2026", "tay2021", "gu2022"),
    claim="With equally many parameters deeper S4 networks are better on Pathfinder, on images and on ListOps; "
    "retrieval does not depend on depth.",
    scales={
        "smoke": {"depths": (2, 6), "seeds": 1, "widths": {2: 8, 6: 6}, "order": 4, "stand_in": True,
                  "tasks": _cut(2, 8, 8, {"side": 12, "dashes": 2, "distractors": 0, "examples": 64}, {"side": 4},
                                {"longest": 24, "shortest": 3}, {"length": 16})},
        "laptop": {"depths": (2, 6), "seeds": 3, "widths": {2: 34, 6: 18}, "order": 4,
                   "tasks": _cut(300, 32, 16, {"side": 12, "dashes": 2, "distractors": 1, "examples": 8000},
                                 {"side": 8}, {"longest": 64, "shortest": 8}, {"length": 64})},
        "paper": {"depths": DEPTHS, "seeds": 3, "files": True, "tasks": {}},
    },
    minutes={"smoke": 0.3, "laptop": 8, "paper": 3_000_000}, trained=True, runs=_runs, rows=_rows,
    rules=(
        _gains("Pathfinder", "Six layers are better than two on Pathfinder"),
        _gains("Images", "Six layers are better than two on images"),
        _gains("ListOps", "Six layers are better than two on ListOps"),
        _gains("Retrieval", "Six layers are no more than 0.01 better than two on retrieval", direction="falls",
               margin=-0.01),
    ),
    displays=(
        CurvesOf(name="accuracy", title="Accuracy by depth", x="L", y="accuracy", by="network", x_title="depth L",
                 y_title="test accuracy", section="Depth at one number of parameters",
                 alt="Test accuracy against depth, one curve for each task.",
                 how="Mean over seeds, band from the least to the largest."),
        TableOf(name="table", title="Measured and published", section="Every network", words=("network", "read"),
                columns={
            "task": "network", "read": "read", "depth": "L", "features": "H", "parameters": "parameters",
            "test accuracy": lambda row: mean(row["accuracy"]), "published": "published"}),
    ),
    entries={name: name for name in CONFIGURATIONS}, subjects=4,
    methods="Bidirectional S4 (LegS, GLU, N = 4 or 64, or as the table says) of depths {depths}, the "
    "mean over all steps read out; AdamW with weight decay 0.05, none on the state-space matrices, whose rate is 1e-3; "
    "rates of 0.01 (Pathfinder: 0.004), a cosine after 10% of warm-up; {seeds} seeds.",
    cut="300 steps of 32 sequences (Pathfinder and retrieval: 16), networks of 6,000 to 7,000 parameters, N = 4, "
    "depths {depths}; Pathfinder of 12 x 12 pixels with paths of two dashes, images of 8 x 8 pixels, ListOps of 9 to "
    "63 symbols, 64 bytes of each document; tested after the last step",
    caveats=(
        ("After 300 steps networks are compared by how fast they learn, and Pathfinder is not learned at all. That is "
         "the scale: two layers, trained with rates over 4,000 steps (one seed), were at chance on 1,000 pictures of "
         "validation after 500 steps, at 0.75 after 1,000, at 0.90 after 3,000. Six layers were not trained so long."),
        "Where CIFAR-10 is not there, images are digits of MNIST. The table says what was read.",
        "Where the pairs of the ACL Anthology Network are not there, retrieval is: are drawn texts about one subject?",
        ("Parameters are equal without the embedding, as in Table 2; bytes make it large beside a small network. By "
         "the widths of Table 2 a layer has 2 H more than there, a step and a skip for either direction: 0.1 to 0.5%."),
        "The rule on retrieval asks only that depth gains nothing; here it did harm, 0.12 at laptop scale.",
        "RMS norm stands before every layer; the document has batch norm, behind the layer for ListOps and images.",
        "Pathfinder's pictures are ours: the published ones are rendered by another program.",
    ),
))  # fmt: skip
