"""Kerg, chapter 5 Table 1, appendix C Table 2: relational games, learned on pentominoes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.studies.machinery import HeatMapOf, Holds, Outcome, Row, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.relational import ahead, relational_rows, relational_runs

__all__ = ["STUDY"]

_NETWORKS = ("CoRelNet", "CoRelNet-T", "ESBN", "PrediNet", "Transformer", "MNM", "LSTM", "NTM", "RN")
_TABLE = {
    ("same", "hexominoes"): (94.7, 98.7, 60.9, 99.1, 96.3, 97.3, 96.4, 97.2, 92.9),
    ("same", "stripes"): (90.4, 98.4, 60.5, 97.7, 93.6, 95.5, 90.3, 93.4, 83.7),
    ("between", "hexominoes"): (96.6, 91.9, 79.5, 94.4, 90.9, 93.6, 94.9, 96.3, 73.6),
    ("between", "stripes"): (93.1, 87.0, 82.5, 92.4, 87.5, 90.2, 91.7, 93.5, 54.5),
    ("occurs", "hexominoes"): (96.2, 91.6, 74.3, 92.9, 95.9, 84.9, 92.2, 93.5, 71.2),
    ("occurs", "stripes"): (88.7, 79.3, 73.3, 87.4, 88.7, 77.0, 79.8, 87.1, 54.6),
    ("xoccurs", "hexominoes"): (92.2, 91.7, 63.0, 67.2, 75.1, 73.8, 79.1, 84.2, 65.7),
    ("xoccurs", "stripes"): (83.6, 85.4, 64.7, 61.3, 69.4, 70.6, 77.2, 81.7, 61.7),
    ("row-matching", "hexominoes"): (97.7, 95.4, 81.1, 50.3, 50.3, 49.9, 50.1, 50.2, 50.5),
    ("row-matching", "stripes"): (94.8, 90.5, 76.8, 50.5, 50.4, 49.8, 50.2, 49.9, 50.4),
    ("colour-shape", "hexominoes"): (47.2, 49.6, 31.2, 74.9, 89.1, 75.7, 80.1, 88.0, 77.5),
    ("left-of", "hexominoes"): (99.2, 97.6, 49.9, 94.9, 96.0, 97.5, 97.2, 97.5, 51.0),
}
_PUBLISHED = {
    (network, f"games-{game}", test): value
    for (game, test), values in _TABLE.items()
    for network, value in zip(_NETWORKS, values, strict=True)
}


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    return relational_runs(scale, [(f"games-{game}", {}) for game in scale["games"]], scale["networks"])


def _rows(outcome: Outcome) -> list[Row]:
    return relational_rows(outcome, _PUBLISHED)


_GAMES = tuple(dict.fromkeys(game for game, _ in _TABLE))

STUDY = declared(Study(
    name="kerg-relational-games",
    title="Relational games with objects that training never showed",
    source="Kerg, ch. 5 Table 1; app. C Table 2", references=("kerg2022", "shanahan2020"),
    claim="CoRelNet alone, with its variant, matches the patterns of two rows; without sensory input it cannot tell "
    "colour from shape.",
    scales={
        "smoke": {"games": ("same",), "networks": ("CoRelNet", "Transformer"), "iterations": 4, "seeds": 1,
                  "test_size": 100},
        "laptop": {"games": _GAMES, "networks": _NETWORKS, "iterations": 800, "seeds": 1, "test_size": 2000},
        "paper": {"games": _GAMES, "networks": _NETWORKS, "iterations": 2500, "seeds": 10, "test_size": 10000},
    },
    minutes={"smoke": 0.2, "laptop": 40, "paper": 2500},
    trained=True, runs=_runs, rows=_rows,
    rules=(
        ahead("CoRelNet matches rows, which the Transformer cannot", network="CoRelNet", other="Transformer",
              margin=30.0, task="games-row-matching"),
        ahead("The Transformer tells colour from shape better than CoRelNet", network="Transformer",
              other="CoRelNet", margin=20.0, task="games-colour-shape"),
        Holds(claim="A symmetric measure learns left-of", where={"network": "CoRelNet", "task": "games-left-of"},
              left="mean", relation=">", right=90.0, names={"mean": "mean accuracy"}, scaled=True),
    ),
    displays=(
        HeatMapOf(name="accuracy", title="Accuracy on objects that training never showed", x="network", y="case",
                  value="mean", x_title="network", y_title="game (objects)", value_title="accuracy (%)",
                  alt="Test accuracy of every network on seven games with new objects, as colours.",
                  how="Mean over seeds.", section="New objects"),
        TableOf(name="table", title="Test accuracies beside the published ones", section="Every network",
                words=("game", "network"), columns={
                    "game": "case", "network": "network", "accuracy, mean": "mean", "published": "published"}),
    ),
    entries={name: name for name in _NETWORKS}, subjects=1,
    cut="{iterations} steps of 2500, seeds: {seeds} of 10",
    methods="Networks were trained for {iterations} steps (published: 2500) on fresh batches of 32 scenes with "
    "pentominoes, Adam at 5e-4, {seeds} seeds (published: 10), and tested on {test_size} scenes with hexominoes and "
    "stripes.",
    caveats=(
        "Where the document gives no rules, ours draw the games; between has the statistics of the published samples.",
        "Below paper scale training is shorter than published.",
    ),
))  # fmt: skip
